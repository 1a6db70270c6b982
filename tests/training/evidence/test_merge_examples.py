"""Examples of merges: pairs of the network's own clusters, labelled by their majorities."""

import numpy as np
import pytest

from hilander.graph.linked_pairs import LinkedPairs
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.merge_features import N_MERGE_FEATURES
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities
from hilander.training.evidence.merge_examples import (
    draw_pairs,
    majority_identity,
    make_merge_examples,
)
from hilander.training.evidence.plan import EvidencePlan
from tests.scorers import score_by_affinity

PLAN = EvidencePlan(
    network=EvidenceSettings(hidden=8, learned_merges=True),
    learning=EvidenceLearning(epochs=2),
    rules=Rules(k=5, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True),
)


def test_the_identity_of_a_cluster_is_that_of_most_of_its_points():
    labels = np.array([0, 0, 0, 1, 1, 2])
    truth = np.array([4, 4, 1, 0, 0, 3])
    assert majority_identity(labels, truth).tolist() == [4, 0, 3]


def test_pairs_of_clusters_of_one_identity_are_examples_of_merges():
    episode = Episode(*make_identities(n_identities=12, size=40, dim=16, spread=0.8, seed=0))
    graph = build_knn_graph(episode.features, 5)
    examples = make_merge_examples(score_by_affinity, episode, graph, PLAN)
    assert examples.edge_features.shape[1:] == (1, N_MERGE_FEATURES)
    assert examples.same.shape == examples.edge_features.shape[:2]
    assert 0.05 < examples.same.mean() < 0.95
    again = make_merge_examples(score_by_affinity, episode, graph, PLAN)
    np.testing.assert_array_equal(again.edge_features, examples.edge_features)
    # More links between two clusters are evidence for one identity.
    coverage, same = examples.edge_features[:, 0, 1], examples.same[:, 0]
    assert coverage[same].mean() > coverage[~same].mean()


def test_without_linked_clusters_there_are_no_examples():
    X, y = make_identities(n_identities=4, size=6, dim=16, spread=0.01, seed=0)
    graph = build_knn_graph(X, 5)
    assert make_merge_examples(LabelScorer(y), Episode(X, y), graph, PLAN) is None


def test_pairs_of_large_clusters_are_drawn_more_often(monkeypatch):
    from hilander.training.evidence import merge_examples

    monkeypatch.setattr(merge_examples, "_MOST_PAIRS", 300)
    size = np.repeat([1.0, 400.0], 500)
    low, high = np.arange(0, 1000, 2), np.arange(1, 1000, 2)
    ones = np.ones(500)
    pairs = LinkedPairs(low, high, ones, ones, size, np.ones((2, 1000)), 5)
    features, same = draw_pairs(pairs, np.arange(1000), np.random.default_rng(0))
    assert len(features) == len(same) == 300
    assert not same.any()
    assert np.mean(features[:, 2] > np.log(100)) == pytest.approx(20 / 21, abs=0.1)
