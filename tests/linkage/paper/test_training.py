import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import torch

from hilander.errors import SettingError
from hilander.linkage.paper.batches import gather_neighbourhood
from hilander.linkage.paper.losses import LossSettings
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.paper.training import (
    LearningSettings,
    learning_from_dict,
    make_network,
    plan_epoch,
    train_network,
)

QUICK = LearningSettings(epochs=4, batch_size=50, learning_rate=0.05)


def train(graphs, learning=QUICK, seed=0, **network):
    model = make_network(NetworkSettings(8, "concat", **{"hidden": 10, **network}), seed)
    history = train_network(model, graphs, learning, seed=seed, device="cpu")
    return [weight.detach().clone() for weight in model.parameters()], history


def equal(one, two):
    return all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("batch_size", [1, 13, 50, 10_000])
def test_an_epoch_visits_every_node_of_every_graph_once(training_graphs, batch_size):
    batches = plan_epoch(training_graphs, batch_size, np.random.default_rng(0))
    for number, graph in enumerate(training_graphs):
        seen = np.concatenate([rows for at, rows in batches if at == number])
        np.testing.assert_array_equal(np.sort(seen), np.arange(len(graph)))
    assert max(len(rows) for _, rows in batches) <= batch_size


def test_the_order_of_batches_differs_between_epochs(training_graphs):
    one = plan_epoch(training_graphs, 10, np.random.default_rng([0, 0]))
    two = plan_epoch(training_graphs, 10, np.random.default_rng([0, 1]))
    assert [rows.tolist() for _, rows in one] != [rows.tolist() for _, rows in two]
    assert [number for number, _ in one] != sorted(number for number, _ in one)


def test_nodes_of_one_identity_stay_together(training_graphs):
    graph = training_graphs[0]
    (_, order), *_ = plan_epoch([graph], 10_000, np.random.default_rng(0))
    changes = (np.diff(graph.identity[order]) != 0).sum()
    assert changes == len(np.unique(graph.identity)) - 1


@pytest.mark.parametrize(("optimizer", "encoder"), [("sgd", "attention"), ("adamw", "convolution")])
def test_the_same_seed_gives_the_same_weights_on_any_number_of_threads(
    training_graphs, torch_threads, optimizer, encoder
):
    loss = LossSettings(balance=True, focal_gamma=2.0)
    learning = LearningSettings(2, 60, optimizer, 0.01, loss=loss)
    # Multiples of a vector register: products of other widths may depend on the number of threads.
    settings = {"hidden": 16, "encoder": encoder, "dropout": 0.2, "layers": 2, "heads": 2}
    torch_threads(1)
    one, _ = train(training_graphs, learning, **settings)
    torch.manual_seed(99)  # the state of the global generator does not matter
    again, _ = train(training_graphs, learning, **settings)
    torch_threads(2)
    two, _ = train(training_graphs, learning, **settings)
    assert equal(one, again)
    assert equal(one, two)


@pytest.mark.parametrize("encoder", ["attention", "convolution"])
def test_a_batch_of_many_edges_has_the_same_gradient_on_any_number_of_threads(
    torch_threads, encoder
):
    # Only a large scatter is split between threads.
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(4000, 16)).astype(np.float32))
    neighbours = torch.from_numpy(rng.integers(4000, size=(4000, 10)))
    affinity = torch.rand(4000, 10, generator=torch.Generator().manual_seed(0))
    batch = gather_neighbourhood(neighbours, affinity, torch.arange(4000), 2)
    gradients = []
    for threads in (1, 2):
        torch_threads(threads)
        network = make_network(NetworkSettings(16, "identity", encoder, 16, 2), 0)
        network(x, batch).pow(2).sum().backward()
        gradients.append([weight.grad for weight in network.parameters()])
    assert equal(*gradients)


def test_training_does_not_change_the_global_generator(training_graphs):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(training_graphs, dropout=0.2)
    assert torch.equal(torch.rand(3), expected)


def test_another_seed_gives_other_weights(training_graphs):
    assert not equal(train(training_graphs)[0], train(training_graphs, seed=1)[0])


def test_the_order_of_batches_depends_on_the_seed(training_graphs):
    histories = []
    for seed in (0, 1):
        network = make_network(NetworkSettings(8, "concat", hidden=10), 0)
        histories.append(train_network(network, training_graphs, QUICK, seed=seed, device="cpu"))
    assert histories[0] != histories[1]


@pytest.mark.parametrize(
    "learning",
    [
        LearningSettings(25, 64, "sgd", 0.1),
        LearningSettings(25, 64, "adamw", 0.01),
        LearningSettings(25, 64, "sgd", 0.1, loss=LossSettings(True, 2.0)),
    ],
)
@pytest.mark.parametrize("encoder", ["attention", "convolution"])
def test_the_loss_falls(training_graphs, learning, encoder):
    _, history = train(training_graphs, learning, encoder=encoder)
    assert history[-1]["loss"] < 0.9 * history[0]["loss"]


def test_the_history_has_one_complete_record_for_each_epoch(training_graphs):
    _, history = train(training_graphs)
    assert [record["epoch"] for record in history] == [0, 1, 2, 3]
    for record in history:
        assert record["loss"] == record["connectivity_loss"] + record["density_loss"]
        assert math.isfinite(record["loss"])
    rates = [record["learning_rate"] for record in history]
    assert rates == sorted(rates, reverse=True)
    assert json.loads(json.dumps(history)) == history


def test_validation_scores_are_added_to_the_record_of_every_second_epoch(training_graphs):
    learning = LearningSettings(4, 50, validate_every=2)
    network = make_network(NetworkSettings(8, "concat", hidden=10), 0)
    history = train_network(
        network, training_graphs, learning, device="cpu", validate=lambda _: {"val": 1.0}
    )
    assert ["val" in record for record in history] == [False, True, False, True]
    never = LearningSettings(2, 50, validate_every=0)
    history = train_network(
        network, training_graphs, never, device="cpu", validate=lambda _: {"val": 1.0}
    )
    assert not any("val" in record for record in history)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs=0 must be a whole number >= 1"),
        ({"epochs": 1.5}, "epochs=1.5 must be a whole number >= 1"),
        ({"batch_size": 0}, "batch_size=0 must be"),
        ({"optimizer": "adam"}, "optimizer='adam' is not known; did you mean 'adamw'"),
        ({"learning_rate": 0}, "learning_rate=0 must be above 0"),
        ({"hierarchies": ()}, "hierarchies="),
        ({"hierarchies": ((0, 2),)}, "hierarchies="),
    ],
)
def test_an_invalid_setting_is_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        LearningSettings(**settings)


def test_settings_are_equal_after_json():
    learning = LearningSettings(np.int64(3), loss=LossSettings(True, 2.0), hierarchies=((4, 2),))
    assert learning_from_dict(json.loads(json.dumps(asdict(learning)))) == learning
