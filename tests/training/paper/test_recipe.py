import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from hilander.errors import FileFormatError, SettingError
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.linkage.paper import training as learning_module
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.paper.training import LearningSettings
from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities
from hilander.training.paper.plan import PaperPlan
from hilander.training.paper.recipe import build_training_graphs, learn_to_cluster
from hilander.training.paper.settings_search import SettingsSearch, take_best
from hilander.training.stages import fingerprint


@pytest.fixture(scope="module")
def labelled():
    return make_identities(n_identities=20, size=9, dim=8, spread=0.5, seed=0)


def plan(**changes):
    learning = LearningSettings(
        epochs=4, batch_size=64, learning_rate=0.05, hierarchies=((4, 2), (3, 2))
    )
    learning = replace(learning, **changes.pop("learning", {}))
    fields = {
        "network": NetworkSettings(8, "concat", "convolution", 16),
        "learning": learning,
        "rules": Rules(k=4),
        "device": "cpu",
    }
    return PaperPlan(**{**fields, **changes})


def weights(learned):
    return [weight.detach() for weight in learned.network.parameters()]


def equal(one, two):
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(two), strict=True))


def purity(features, labels, as_released):
    """Share of the points that are of the identity of their node, at the last training level."""
    score = LabelScorer(labels, as_released=as_released)
    rules = Rules(4, 0.0 if as_released else 0.5, as_released=as_released)
    of_point = np.arange(len(labels))
    for step in walk_levels(features, score, rules, max_levels=3):
        identity = labels[step.nodes.point]
        share = (identity[of_point] == labels).mean()
        of_point = step.labels[of_point]
    return share


def test_nodes_of_the_training_hierarchy_are_pure_unless_as_released():
    features, labels = make_identities(n_identities=20, size=9, dim=8, spread=1.0, seed=0)
    assert purity(features, labels, as_released=False) == 1
    assert purity(features, labels, as_released=True) < 0.9


def test_training_graphs_are_the_levels_of_the_ground_truth(labelled):
    features, labels = labelled
    graphs = list(build_training_graphs(features, labels, plan()))
    assert [len(graph) for graph in graphs].count(len(features)) == 2  # the first level of each k
    assert {graph.neighbours.shape[1] for graph in graphs} == {4, 3}
    for graph in graphs:
        ends = graph.identity[graph.neighbours.numpy()]
        np.testing.assert_array_equal(graph.targets.same, ends == graph.identity[:, None])
        density = graph.targets.density
        expected = density[:, None] <= density[graph.neighbours]
        assert torch.equal(graph.targets.counted, expected)


def test_an_edge_between_equally_dense_nodes_is_counted():
    # Mirror images: two points of one identity that see each other and nothing else alike.
    features = np.eye(6, dtype=np.float32).repeat(2, axis=0)
    rules = {"rules": Rules(k=1), "learning": {"hierarchies": ((1, 1),)}}
    (graph,) = build_training_graphs(features, np.arange(6).repeat(2), plan(**rules))
    assert (graph.targets.density == 1).all()
    assert graph.targets.counted.all()


def test_the_released_training_graphs_are_other_graphs():
    features, labels = make_identities(n_identities=20, size=9, dim=8, spread=1.0, seed=0)
    ours = list(build_training_graphs(features, labels, plan()))
    theirs = list(build_training_graphs(features, labels, plan(learning={"as_released": True})))
    assert [len(graph) for graph in ours] != [len(graph) for graph in theirs]


def test_the_best_row_has_the_highest_f_and_of_equals_the_middle_one():
    rows = [{"p_tau": tau, "f": f} for tau, f in [(0.1, 0.5), (0.2, 0.9), (0.3, 0.9), (0.4, 0.9)]]
    assert take_best(rows)["p_tau"] == 0.3
    assert take_best(rows[:2])["p_tau"] == 0.2


def test_tuning_takes_the_best_row_of_its_table(labelled):
    learned = learn_to_cluster(*labelled, plan(tune=("p_tau", "k")))
    table = learned.summary["validation"]
    best = take_best(table)
    assert best["f"] == max(row["f"] for row in table) > 0
    assert (learned.rules.p_tau, learned.rules.k) == (best["p_tau"], best["k"])
    assert len({row["k"] for row in table}) > 1
    assert len({row["p_tau"] for row in table}) > 10
    assert learned.summary["n_validation_identities"] == 4
    for row in table:
        assert row["f"] == pytest.approx((row["pairwise_f"] + row["bcubed_f"]) / 2)


def test_tuning_the_features_tries_all_three(labelled):
    learned = learn_to_cluster(*labelled, plan(tune=("features",), learning={"epochs": 2}))
    table = learned.summary["validation"]
    assert {row["features"] for row in table} == {"identity", "average", "concat"}
    best = max(table, key=lambda row: row["f"])
    assert learned.network.settings.features == best["features"]
    assert learned.rules.search_average == (best["features"] == "average")


def test_without_tuning_the_given_settings_stay(labelled):
    learned = learn_to_cluster(*labelled, plan(tune=(), rules=Rules(k=5, p_tau=0.7)))
    assert learned.rules == Rules(k=5, p_tau=0.7)
    assert learned.summary["validation"] == []


def test_a_try_scores_like_clustering_from_scratch(labelled):
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.linkage.paper.scorer import LanderScorer
    from hilander.metrics.scores import bcubed_f, pairwise_f

    features, labels = labelled
    learned = learn_to_cluster(features, labels, plan(tune=()))
    rows = SettingsSearch(Episode(features, labels), plan()).try_settings(learned.network)
    for row in rows[::5]:
        rules = Rules(k=row["k"], p_tau=row["p_tau"])
        steps = walk_levels(
            features, LanderScorer(learned.network, "cpu", join_equal_rows=True), rules
        )
        found = Hierarchy.of_steps(steps).labels()
        assert row["pairwise_f"] == pairwise_f(labels, found)
        assert row["bcubed_f"] == bcubed_f(labels, found)


def test_validation_is_recorded_every_few_epochs_if_set(labelled):
    learned = learn_to_cluster(*labelled, plan(learning={"validate_every": 2}))
    history = learned.summary["validation_history"]
    assert ["val_bcubed_f" in record for record in history] == [False, True, False, True]
    assert json.loads(json.dumps(learned.summary)) == learned.summary


class Interrupt:
    """Raises like Ctrl-C at the n-th batch of a run, in the middle of an epoch."""

    def __init__(self, at_batch):
        self.left, self.loss = at_batch, learning_module.lander_loss

    def __call__(self, *arguments):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return self.loss(*arguments)


def count_batches(labelled, whole, monkeypatch):
    counter = Interrupt(0)
    with monkeypatch.context() as patch:
        patch.setattr(learning_module, "lander_loss", counter)
        learned = learn_to_cluster(*labelled, whole)
    return -counter.left, learned


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_an_interrupted_run_continues_to_the_same_weights(
    labelled, tmp_path, monkeypatch, optimizer
):
    loss = learning_module.LossSettings(balance=True)
    whole = plan(
        network=NetworkSettings(8, "concat", "convolution", 16, dropout=0.1),
        learning={"optimizer": optimizer, "learning_rate": 0.01, "loss": loss},
    )
    n_batches, uninterrupted = count_batches(labelled, whole, monkeypatch)
    folder = tmp_path / "checkpoint"
    # Once in validation, twice in the final training; each continues from the one before.
    for at_batch, stage in ((n_batches // 3, "validate"), (n_batches // 2, "train"), (7, "train")):
        with monkeypatch.context() as patch:
            patch.setattr(learning_module, "lander_loss", Interrupt(at_batch))
            with pytest.raises(KeyboardInterrupt):
                learn_to_cluster(*labelled, whole, checkpoint_folder=folder)
        assert (folder / f"{stage}.safetensors").is_file()
    counter = Interrupt(0)
    with monkeypatch.context() as patch:
        patch.setattr(learning_module, "lander_loss", counter)
        resumed = learn_to_cluster(*labelled, whole, checkpoint_folder=folder)
    assert -counter.left < n_batches // 2  # it did not start again
    assert equal(resumed, uninterrupted)
    assert resumed.history == uninterrupted.history
    assert resumed.summary == uninterrupted.summary
    assert resumed.rules == uninterrupted.rules


def test_a_finished_run_is_not_trained_again(labelled, tmp_path, monkeypatch):
    first = learn_to_cluster(*labelled, plan(), checkpoint_folder=tmp_path)
    monkeypatch.setattr(learning_module, "lander_loss", Interrupt(1))
    again = learn_to_cluster(*labelled, plan(), checkpoint_folder=tmp_path)
    assert equal(first, again)


def test_a_checkpoint_of_other_data_or_settings_is_not_used(labelled, tmp_path):
    features, labels = labelled
    learn_to_cluster(features, labels, plan(seed=5), checkpoint_folder=tmp_path)
    fresh = learn_to_cluster(features, labels, plan())
    assert equal(learn_to_cluster(features, labels, plan(), checkpoint_folder=tmp_path), fresh)


def test_everything_that_matters_is_in_the_fingerprint(labelled):
    features, labels = labelled
    other_features, other_labels = features.copy(), labels.copy()
    other_features[0, 0] += 1e-6
    other_labels[0] = 19 - other_labels[0]
    marks = [
        fingerprint(features, labels, plan()),
        fingerprint(other_features, labels, plan()),
        fingerprint(features, other_labels, plan()),
        fingerprint(features, labels, plan(seed=1)),
        fingerprint(features, labels, plan(learning={"epochs": 5})),
        fingerprint(features, labels, plan(rules=Rules(k=5))),
        fingerprint(features, labels, plan(network=NetworkSettings(8, hidden=18))),
    ]
    assert len(set(marks)) == len(marks)
    assert fingerprint(np.asfortranarray(features), labels, plan()) == marks[0]


@pytest.mark.parametrize("stage", ["validate", "train"])
def test_a_truncated_checkpoint_is_named(labelled, tmp_path, stage):
    learn_to_cluster(*labelled, plan(learning={"epochs": 1}), checkpoint_folder=tmp_path)
    path = tmp_path / f"{stage}.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileFormatError, match=rf"{stage}\.safetensors is not a checkpoint"):
        learn_to_cluster(*labelled, plan(learning={"epochs": 1}), checkpoint_folder=tmp_path)


@pytest.mark.parametrize("changes", [{"val_fraction": 1.0}, {"tune": ("colour",)}, {"seed": -1}])
def test_an_impossible_plan_is_refused(changes):
    with pytest.raises(SettingError, match=next(iter(changes))):
        plan(**changes)
