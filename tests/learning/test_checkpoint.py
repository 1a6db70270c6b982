import pytest
import torch

from hilander.errors import FileFormatError, OutputError
from hilander.learning.checkpoint import Checkpoint
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.paper.training import (
    LearningSettings,
    make_network,
    make_optimizer,
    train_network,
)

SETTINGS = NetworkSettings(8, "concat", hidden=10)


def trained(graphs, optimizer_name, path, fingerprint="ours"):
    """A network and its optimizer after two epochs, whose end was kept."""
    learning = LearningSettings(2, 64, optimizer_name, 0.01)
    network = make_network(SETTINGS, 0)
    checkpoint = Checkpoint(path, fingerprint)
    history = train_network(network, graphs, learning, device="cpu", checkpoint=checkpoint)
    return network, learning, checkpoint, history


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_a_checkpoint_gives_back_weights_memory_and_history(training_graphs, tmp_path, name):
    network, learning, checkpoint, history = trained(training_graphs, name, tmp_path / "c")
    other = make_network(SETTINGS, 1)
    optimizer = make_optimizer(other, learning)
    assert checkpoint.restore(other, optimizer) == history
    for one, two in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
    memory = optimizer.state_dict()["state"]
    assert len(memory) == len(list(network.parameters()))
    names = {"sgd": {"momentum_buffer"}, "adamw": {"step", "exp_avg", "exp_avg_sq"}}[name]
    assert all(set(one) == names for one in memory.values())
    checkpoint.keep(other, optimizer, history)
    again = make_optimizer(other, learning)
    checkpoint.restore(other, again)
    for number, one in memory.items():
        for key, value in one.items():
            assert torch.equal(value, again.state_dict()["state"][number][key])


def test_without_a_file_there_is_nothing_to_take_up(tmp_path):
    network = make_network(SETTINGS, 0)
    optimizer = make_optimizer(network, LearningSettings())
    assert Checkpoint(tmp_path / "none", "ours").restore(network, optimizer) == []


def test_a_checkpoint_of_another_run_is_not_taken_up(training_graphs, tmp_path):
    _, learning, _, _ = trained(training_graphs, "sgd", tmp_path / "c", "theirs")
    fresh = make_network(SETTINGS, 3)
    before = [weight.clone() for weight in fresh.parameters()]
    optimizer = make_optimizer(fresh, learning)
    assert Checkpoint(tmp_path / "c", "ours").restore(fresh, optimizer) == []
    assert all(torch.equal(*pair) for pair in zip(before, fresh.parameters(), strict=True))
    assert not optimizer.state_dict()["state"]


def test_a_checkpoint_cut_short_at_any_point_is_refused(training_graphs, tmp_path):
    network, learning, checkpoint, _ = trained(training_graphs, "sgd", tmp_path / "c")
    whole = checkpoint.path.read_bytes()
    for length in range(0, len(whole), 211):
        checkpoint.path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=r"not a checkpoint .* delete it to start anew"):
            checkpoint.restore(network, make_optimizer(network, learning))


def test_a_write_that_fails_keeps_the_checkpoint_before(training_graphs, tmp_path, monkeypatch):
    network, learning, checkpoint, history = trained(training_graphs, "sgd", tmp_path / "c")
    before = checkpoint.path.read_bytes()

    def fill_disk(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_bytes", fill_disk)
        with pytest.raises(OutputError, match="disk is full"):
            checkpoint.keep(network, make_optimizer(network, learning), [*history, {"epoch": 2}])
    assert checkpoint.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [checkpoint.path]
