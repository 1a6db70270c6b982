import numpy as np
import pytest
import torch
from torch import nn

from hilander.errors import FileFormatError, OutputError
from hilander.learning.checkpoint import Checkpoint

HISTORY = [{"epoch": 0, "loss": 0.5}, {"epoch": 1, "loss": 0.25}]
OPTIMIZERS = {
    "sgd": lambda weights: torch.optim.SGD(weights, 0.01, momentum=0.9),
    "adamw": lambda weights: torch.optim.AdamW(weights, 0.01),
}
STATE = {"sgd": {"momentum_buffer"}, "adamw": {"step", "exp_avg", "exp_avg_sq"}}


def make_network(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(8, 10), nn.PReLU(10), nn.Linear(10, 2))


def trained(path, name="sgd", fingerprint="ours"):
    """A network and its optimizer after two steps, and their checkpoint."""
    network, checkpoint = make_network(0), Checkpoint(path, fingerprint)
    optimizer = OPTIMIZERS[name](network.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        network(torch.ones(3, 8)).square().sum().backward()
        optimizer.step()
    checkpoint.keep(network, optimizer, HISTORY)
    return network, optimizer, checkpoint


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_checkpoint_restores_weights_optimizer_state_and_history(tmp_path, name):
    network, optimizer, checkpoint = trained(tmp_path / "c", name)
    other = make_network(1)
    restored = OPTIMIZERS[name](other.parameters())
    assert checkpoint.restore(other, restored) == HISTORY
    for one, two in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)
    expected, found = (each.state_dict()["state"] for each in (optimizer, restored))
    assert len(found) == len(list(network.parameters()))
    for number, state in expected.items():
        assert set(found[number]) == STATE[name]
        assert all(torch.equal(value, found[number][key]) for key, value in state.items())


def test_without_a_file_there_is_no_history(tmp_path):
    network = make_network(0)
    optimizer = OPTIMIZERS["sgd"](network.parameters())
    assert Checkpoint(tmp_path / "none", "ours").restore(network, optimizer) == []


def test_a_checkpoint_of_another_run_is_ignored(tmp_path):
    trained(tmp_path / "c", fingerprint="theirs")
    fresh = make_network(3)
    before = [weight.clone() for weight in fresh.parameters()]
    optimizer = OPTIMIZERS["sgd"](fresh.parameters())
    assert Checkpoint(tmp_path / "c", "ours").restore(fresh, optimizer) == []
    assert all(torch.equal(*pair) for pair in zip(before, fresh.parameters(), strict=True))
    assert not optimizer.state_dict()["state"]


def test_a_checkpoint_cut_short_at_any_point_is_refused(tmp_path):
    network, optimizer, checkpoint = trained(tmp_path / "c")
    whole = checkpoint.path.read_bytes()
    for length in range(0, len(whole), 97):
        checkpoint.path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=r"not a checkpoint .* delete it to start again"):
            checkpoint.restore(network, optimizer)


def test_a_write_that_fails_keeps_the_previous_checkpoint(tmp_path, monkeypatch):
    network, optimizer, checkpoint = trained(tmp_path / "c")
    before = checkpoint.path.read_bytes()

    def fill_disk(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_bytes", fill_disk)
        with pytest.raises(OutputError, match="disk is full"):
            checkpoint.keep(network, optimizer, [*HISTORY, {"epoch": 2}])
    assert checkpoint.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [checkpoint.path]


def test_a_checkpoint_with_any_flipped_byte_is_never_used(tmp_path):
    network, optimizer, checkpoint = trained(tmp_path / "c")
    whole = (tmp_path / "c").read_bytes()
    rng = np.random.default_rng(0)
    before = [weight.detach().clone() for weight in network.parameters()]
    n_refused = 0
    for place in rng.choice(len(whole), 60, replace=False):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "c").write_bytes(damaged)
        try:
            history = checkpoint.restore(network, optimizer)
        except FileFormatError:
            n_refused += 1
        else:  # taken for the checkpoint of another run, or the byte says nothing
            assert history in ([], HISTORY)
        for weight, expected in zip(network.parameters(), before, strict=True):
            assert torch.equal(weight, expected)
    assert n_refused > 40
