"""The recipe of the default method: thresholds, training, checkpoints."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from hilander.errors import SettingError
from hilander.hierarchy.rules import Rules
from hilander.learning import loop
from hilander.linkage.evidence.background import measure_between_cosine
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.identities import make_identities
from hilander.training.clustering import cluster_points
from hilander.training.evidence import thresholds
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.evidence.recipe import learn_by_evidence
from hilander.training.evidence.thresholds import find_best
from hilander.training.stages import fingerprint

pytestmark = pytest.mark.usefixtures("small_steps")

RULES = Rules(k=6, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True)


@pytest.fixture(scope="module")
def learned(labelled, small_steps):
    """Trained by `plan()` without interruption; not to be changed."""
    return learn_by_evidence(*labelled, plan())


def plan(**changes):
    fields = {
        "network": EvidenceSettings(hidden=8),
        "learning": EvidenceLearning(epochs=3, batch_size=64, learning_rate=0.02, most_points=60),
        "rules": RULES,
        "device": "cpu",
    }
    return EvidencePlan(**{**fields, **changes})


def equal(one, two):
    ours, theirs = one.network.state_dict(), two.network.state_dict()
    return all(torch.equal(ours[key], theirs[key]) for key in ours)


def cluster(learned, features):
    return cluster_points(features, EvidenceScorer(learned.network, "cpu"), learned.rules)


# What is learned.


@pytest.mark.usefixtures("more_steps")
def test_new_identities_are_clustered_whatever_the_width_of_the_embeddings(labelled):
    learned = learn_by_evidence(*labelled, plan())
    for seed, dim in ((1, 16), (2, 50)):
        shape = {"n_identities": 15, "size": 9, "dim": dim, "spread": 0.35}
        features, labels = make_identities(**shape, seed=seed)
        assert bcubed_f(labels, cluster(learned, features)) > 0.9


def test_the_table_holds_every_try_and_the_choice(learned):
    table = learned.summary["validation"]
    grid, merge_grid = thresholds.P_TAU_GRID, thresholds.MERGE_GRID
    points, merges = table[: len(grid)], table[len(grid) :]
    assert [row["p_tau"] for row in points] == list(grid)
    assert [row["p_tau_merge"] for row in merges] == list(merge_grid)
    assert {row["p_tau_merge"] for row in points} == {plan().rules.p_tau_merge}
    assert {row["p_tau"] for row in merges} == {find_best(points, "p_tau")} == {learned.rules.p_tau}
    pull = thresholds._MERGE_PULL
    assert learned.rules.p_tau_merge == find_best(
        merges, "p_tau_merge", pull, plan().rules.p_tau_merge
    )
    for row in table:
        assert row["f"] == pytest.approx((row["pairwise_f"] + row["bcubed_f"]) / 2)
    chosen = {
        name: getattr(learned.rules, name)
        for name in ("p_tau", "p_tau_merge", "between_cosine", "training_points")
    }
    assert learned.rules == replace(RULES, **chosen)
    assert learned.summary["n_validation_identities"] == 4
    assert json.loads(json.dumps(learned.summary)) == learned.summary
    assert len({record["classifier"] for record in learned.history}) == 2
    assert len(learned.history) == 2 * 3


@pytest.mark.parametrize("changes", [{"tune": ()}, {"val_fraction": 0.0}, {"val_fraction": 0.1}])
def test_without_validation_the_given_thresholds_stay(labelled, changes):
    rules = replace(RULES, p_tau=0.7, p_tau_merge=0.8)
    learned = learn_by_evidence(*labelled, plan(rules=rules, **changes))
    between_cosine = measure_between_cosine(*labelled)
    assert learned.rules == replace(
        rules, between_cosine=between_cosine, training_points=len(labelled[1])
    )
    assert learned.rules.between_cosine < 0.2
    assert learned.summary["validation"] == []
    assert learned.summary["n_validation_identities"] == 0


def test_few_identities_are_not_held_out():
    features, labels = make_identities(n_identities=6, size=12, dim=8, seed=0)
    learned = learn_by_evidence(features, labels, plan())
    assert learned.summary["validation"] == []
    assert learned.rules == replace(RULES, training_points=learned.rules.training_points)


@pytest.mark.parametrize("most_points", [1, 5])
def test_an_episode_is_never_smaller_than_its_graph_needs(labelled, most_points):
    learning = EvidenceLearning(epochs=1, batch_size=16, most_points=most_points)
    learned = learn_by_evidence(*labelled, plan(learning=learning, tune=()))
    assert learned.history


# Reproducibility and checkpoints.


def test_the_same_seed_gives_the_same_model_and_another_seed_another(labelled, learned):
    again = learn_by_evidence(*labelled, plan())
    assert equal(learned, again)
    assert learned.history == again.history
    assert (learned.rules, learned.summary) == (again.rules, again.summary)
    assert not equal(learned, learn_by_evidence(*labelled, plan(seed=4, tune=())))


class Strike:
    """Raises like Ctrl-C in the n-th epoch of a run."""

    def __init__(self, at_epoch):
        self.count, self.at_epoch = 0, at_epoch
        self.real = loop.train_epoch

    def __call__(self, *arguments):
        self.count += 1
        if self.count == self.at_epoch:
            raise KeyboardInterrupt
        return self.real(*arguments)


@pytest.fixture
def one_thread():
    """One task after the other, so that epochs can be counted."""
    with threadpool_limits(1):
        yield


@pytest.mark.usefixtures("one_thread")
def test_an_interrupted_run_continues_to_the_same_model(labelled, learned, tmp_path, monkeypatch):
    # Two classifiers of 3 epochs in validation, as many in training; each run continues the last.
    for at_epoch, stage in (
        (2, "validate-1"),
        (4, "validate-2"),
        (2, "validate-2"),
        (3, "train-1"),
        (4, "train-2"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(loop, "train_epoch", Strike(at_epoch))
            with pytest.raises(KeyboardInterrupt):
                learn_by_evidence(*labelled, plan(), checkpoint_folder=tmp_path)
        assert (tmp_path / f"{stage}.safetensors").is_file()
    counter = Strike(None)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "train_epoch", counter)
        resumed = learn_by_evidence(*labelled, plan(), checkpoint_folder=tmp_path)
    assert counter.count == 12 - (1 + 3 + 1 + 2 + 3)
    assert equal(resumed, learned)
    assert resumed.rules == learned.rules
    assert resumed.history == learned.history
    assert resumed.summary == learned.summary


def test_a_checkpoint_of_another_run_is_not_used(labelled, learned, tmp_path):
    learn_by_evidence(*labelled, plan(seed=5, tune=()), checkpoint_folder=tmp_path)
    assert equal(learn_by_evidence(*labelled, plan(), checkpoint_folder=tmp_path), learned)


def test_every_setting_is_in_the_fingerprint(labelled):
    marks = {
        fingerprint(*labelled, plan(**changes))
        for changes in (
            {},
            {"seed": 1},
            {"network": EvidenceSettings(hidden=9)},
            {"learning": EvidenceLearning(epochs=2)},
            {"rules": replace(RULES, p_tau_merge=0.6)},
            {"start": "model"},
        )
    }
    assert len(marks) == 6
    assert fingerprint(*labelled, plan(seed=np.int64(0))) in marks


@pytest.mark.parametrize("changes", [{"val_fraction": 1.0}, {"tune": ("k",)}, {"seed": None}])
def test_an_impossible_plan_is_refused(changes):
    with pytest.raises(SettingError, match=next(iter(changes))):
        plan(**changes)
