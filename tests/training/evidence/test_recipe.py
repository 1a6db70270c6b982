import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from hilander.errors import SettingError
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import score_with_labels, walk_levels
from hilander.hierarchy.rules import Rules
from hilander.knn.search import build_knn_graph
from hilander.learning import loop
from hilander.linkage.evidence import training as evidence_learning
from hilander.linkage.evidence.background import measure_between_cosine
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.registry import feature_names
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import EvidenceLearning, make_evidence_network
from hilander.metrics.scores import bcubed_f
from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities
from hilander.training.evidence import recipe as evidence_training
from hilander.training.evidence import thresholds as evidence_judging
from hilander.training.evidence.recipe import (
    CLUSTERING_VARIANTS,
    EvidencePlan,
    learn_by_evidence,
    majority_identity,
    make_cluster_examples,
    make_point_examples,
)
from hilander.training.evidence.thresholds import ThresholdSearch, find_peak, take_careful
from hilander.training.paper.recipe import fingerprint

RULES = Rules(k=6, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True)
P_TAU_GRID = (0.3, 0.45, 0.6, 0.75)
MERGE_GRID = (0.6, 0.9)


@pytest.fixture(scope="module", autouse=True)
def small_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence_learning, "_STEPS_PER_EPOCH", 5)
        patch.setattr(evidence_training, "Judge", partial(ThresholdSearch, most_points=100))
        patch.setattr(evidence_judging, "P_TAU_GRID", P_TAU_GRID)
        patch.setattr(evidence_judging, "MERGE_GRID", MERGE_GRID)
        yield


@pytest.fixture(scope="module")
def learned(labelled, small_steps):
    """As `plan()` learns without being disturbed; not to be changed."""
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
    score = EvidenceScorer(learned.network, "cpu")
    return Hierarchy.of_steps(walk_levels(features, score, learned.rules)).labels(-1)


# What is learned.


def test_identities_it_has_never_seen_are_grouped_whatever_the_width(labelled, monkeypatch):
    monkeypatch.setattr(evidence_learning, "_STEPS_PER_EPOCH", 25)
    learned = learn_by_evidence(*labelled, plan())
    for seed, dim in ((1, 16), (2, 50)):
        shape = {"n_identities": 15, "size": 9, "dim": dim, "spread": 0.35}
        features, labels = make_identities(**shape, seed=seed)
        assert bcubed_f(labels, cluster(learned, features)) > 0.9


def test_the_table_holds_every_try_and_the_choice(learned):
    table = learned.summary["validation"]
    points, merges = table[: len(P_TAU_GRID)], table[len(P_TAU_GRID) :]
    assert [row["p_tau"] for row in points] == list(P_TAU_GRID)
    assert [row["p_tau_merge"] for row in merges] == list(MERGE_GRID)
    assert {row["p_tau_merge"] for row in points} == {max(MERGE_GRID)}
    assert {row["p_tau"] for row in merges} == {find_peak(points)} == {learned.rules.p_tau}
    assert learned.rules.p_tau_merge == take_careful(merges, "p_tau_merge")
    for row in table:
        assert row["f"] == pytest.approx((row["pairwise_f"] + row["bcubed_f"]) / 2)
    chosen = {
        name: getattr(learned.rules, name) for name in ("p_tau", "p_tau_merge", "between_cosine")
    }
    assert learned.rules == replace(RULES, **chosen)
    assert learned.summary["n_validation_identities"] == 4
    assert json.loads(json.dumps(learned.summary)) == learned.summary
    assert len({record["classifier"] for record in learned.history}) == 4
    assert len(learned.history) == 4 * 3


@pytest.mark.parametrize("changes", [{"tune": ()}, {"val_fraction": 0.0}, {"val_fraction": 0.1}])
def test_without_validation_the_given_thresholds_stay(labelled, changes):
    rules = replace(RULES, p_tau=0.7, p_tau_merge=0.8)
    learned = learn_by_evidence(*labelled, plan(rules=rules, **changes))
    assert learned.rules == replace(rules, between_cosine=measure_between_cosine(*labelled))
    assert learned.rules.between_cosine < 0.2
    assert learned.summary["validation"] == []
    assert learned.summary["n_validation_identities"] == 0


def test_few_identities_are_not_split():
    features, labels = make_identities(n_identities=6, size=12, dim=8, seed=0)
    learned = learn_by_evidence(features, labels, plan())
    assert learned.summary["validation"] == []
    assert learned.rules == RULES


def test_where_no_super_nodes_could_be_learnt_from_none_are_merged(labelled, monkeypatch):
    monkeypatch.setattr(evidence_training, "make_cluster_examples", lambda *_: iter(()))
    learned = learn_by_evidence(*labelled, plan(tune=()))
    assert {record["classifier"] for record in learned.history} == {
        "train-points-1",
        "train-points-2",
    }
    steps = list(walk_levels(labelled[0], EvidenceScorer(learned.network, "cpu"), RULES))
    assert len(steps) == 2
    assert steps[1].scores.linkage.max() < 0.01


@pytest.mark.parametrize("most_points", [1, 5])
def test_an_episode_is_never_smaller_than_its_graph_needs(labelled, most_points):
    learning = EvidenceLearning(epochs=1, batch_size=16, most_points=most_points)
    learned = learn_by_evidence(*labelled, plan(learning=learning, tune=()))
    assert learned.history


# Always the same.


def test_the_same_seed_gives_the_same_model_and_another_seed_another(labelled, learned):
    again = learn_by_evidence(*labelled, plan())
    assert equal(learned, again)
    assert learned.history == again.history
    assert (learned.rules, learned.summary) == (again.rules, again.summary)
    assert not equal(learned, learn_by_evidence(*labelled, plan(seed=4, tune=())))


class Strike:
    """Like Ctrl-C in the n-th epoch of a run."""

    def __init__(self, at_epoch):
        self.count, self.at_epoch = 0, at_epoch
        self.real = loop.train_epoch

    def __call__(self, *arguments):
        self.count += 1
        if self.count == self.at_epoch:
            raise KeyboardInterrupt
        return self.real(*arguments)


@pytest.fixture
def in_turn():
    """One course after the other, so that epochs can be counted."""
    with threadpool_limits(1):
        yield


@pytest.mark.usefixtures("in_turn")
def test_a_killed_fit_goes_on_to_the_same_model(labelled, learned, tmp_path, monkeypatch):
    # 4 looks of 3 epochs in validation, as many in training; each goes on from the one before.
    for at_epoch, stage in (
        (2, "validate-points-1"),
        (4, "validate-points-2"),
        (7, "validate-clusters-2"),
        (4, "train-points-1"),
        (8, "train-clusters-1"),
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
    assert counter.count == 24 - (1 + 3 + 6 + 3 + 7)
    assert equal(resumed, learned)
    assert resumed.rules == learned.rules
    assert resumed.history == learned.history
    assert resumed.summary == learned.summary


def test_a_checkpoint_of_another_run_is_not_taken_up(labelled, learned, tmp_path):
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val_fraction": 1.0}, r"val_fraction=1.0 must be in \[0, 1\)"),
        ({"val_fraction": -0.1}, r"val_fraction=-0.1 must be in"),
        ({"tune": ("k",)}, "tune=.*k.* is not known"),
        ({"seed": -1}, "seed=-1 must be a whole number >= 0"),
        ({"seed": None}, "seed=None must be a whole number >= 0"),
    ],
)
def test_a_plan_that_means_nothing_is_refused(changes, message):
    with pytest.raises(SettingError, match=message):
        plan(**changes)


# What the looks learn from.


def test_points_teach_which_of_their_edges_join_one_identity(labelled):
    episode = Episode(*labelled, 0.3)
    sight = make_point_examples(episode, 6)
    assert sight.examples.weight == 0.3
    assert sight.examples.edge_features.shape[:2] == sight.examples.same.shape == (160, 6)
    for node in range(160):
        for place, other in enumerate(sight.graph.neighbours[node]):
            same = labelled[1][node] == labelled[1][other]
            assert sight.examples.same[node, place] == same


def test_a_cluster_is_of_the_identity_that_most_of_its_points_are():
    features, labels = make_identities(n_identities=6, size=12, dim=6, spread=1.0, seed=0)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(72) < 0.2, rng.integers(6, size=72), labels)
    step = next(walk_levels(features, score_with_labels(noisy), Rules(k=5)))
    found = majority_identity(step, labels)
    mixed = 0
    for tree, identity in enumerate(found):
        members = labels[step.labels == tree]
        mixed += len(set(members.tolist())) > 1
        assert (members == identity).sum() == np.bincount(members).max()
    assert mixed


def oracle(labels, seed=0):
    """Judges blocks of points: right in all but some edges, of which it is not quite sure."""

    def predict(graph, evidence):
        if evidence.super_nodes:
            return np.full(graph.affinity.shape, 0.1, dtype=np.float32)
        same = labels[graph.neighbours] == labels[:, None]
        linkage = np.where(same, 0.95, 0.02).astype(np.float32)
        linkage[::5, 0] = 0.6
        return linkage

    return predict


def test_clusters_are_made_by_the_network_in_each_of_its_own_ways(labelled, monkeypatch):
    episode, graph = Episode(*labelled), build_knn_graph(labelled[0], 6)
    network = make_evidence_network(EvidenceSettings(hidden=8), seed=0)
    network.predict = oracle(labelled[1])
    ways, walk = [], walk_levels

    def watch(features, score, rules, **rest):
        ways.append((rules.decoder, rules.p_tau))
        return walk(features, score, rules, **rest)

    monkeypatch.setattr(evidence_training, "walk_levels", watch)
    for decoder in ("contract", "leiden"):  # what is learned from does not hang on the choice
        rules = replace(RULES, decoder=decoder)
        graph_examples = list(make_cluster_examples(network, [(episode, graph)], plan(rules=rules)))
        assert tuple(ways) == CLUSTERING_VARIANTS
        ways.clear()
        assert len(graph_examples) == len(CLUSTERING_VARIANTS)
        for sight in graph_examples:
            assert 20 <= len(sight.graph.neighbours) < 160
            assert sight.examples.edge_features.shape[:2] == sight.examples.same.shape
            assert sight.examples.edge_features.shape[-1] > 24


def test_the_second_look_at_clusters_learns_in_the_context_of_their_set(labelled):
    shape = EvidenceSettings(hidden=8, relative_sizes=True, set_context=True)
    network = learn_by_evidence(*labelled, plan(network=shape, tune=(), val_fraction=0)).network
    _, second = network.classifiers(super_nodes=True)
    names = feature_names("set context")
    context = dict(zip(names, second.centre[-len(names) :].tolist(), strict=True))
    # What it was measured by are numbers of the training sets, not the zeros it began with.
    assert 0 < context["probability_of_clusters"] < 1
    assert context["share_of_clusters"] < 0
    shown = network.points[1].centre
    assert len(shown) == len(feature_names("edge", "second stage"))  # points have no context


def test_the_pieces_that_communities_make_of_a_large_identity_are_learnt_to_be_one():
    features, labels = make_identities(sizes=[500] + [8] * 20, dim=16, spread=0.35, seed=0)
    episode, graph = Episode(features, labels), build_knn_graph(features, 6)
    network = make_evidence_network(EvidenceSettings(hidden=8), seed=0)
    network.predict = oracle(labels)
    graph_examples = list(make_cluster_examples(network, [(episode, graph)], plan()))
    pairs = {
        decoder: sum(
            sight.examples.same.sum()
            for sight, way in zip(graph_examples, CLUSTERING_VARIANTS, strict=True)
            if way[0] == decoder
        )
        for decoder in ("contract", "leiden")
    }
    assert pairs["leiden"] > 20
    assert pairs["leiden"] > 2 * pairs["contract"]
