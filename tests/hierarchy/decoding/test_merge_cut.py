"""The threshold of merges that a set of an unknown kind gets."""

import numpy as np
import pytest

from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.nodes import start_nodes
from hilander.graph.same_identity import estimate_by_links
from hilander.hierarchy.decoding import merge_cut
from hilander.hierarchy.decoding.link_merges import merge_by_links
from hilander.hierarchy.decoding.merge_cut import choose_cut, mean_silhouette, measure_modularity
from hilander.hierarchy.pooling import link_trees, merge_nodes
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities
from tests.scorers import score_by_affinity


def make_fragments(spread, seed=0, n_parts=4):
    """Each of 12 identities of 30 points in some random parts, with the links between the parts."""
    features, truth = make_identities(n_identities=12, size=30, dim=16, spread=spread, seed=seed)
    parts = np.random.default_rng(seed).integers(n_parts, size=len(truth))
    labels = np.unique(truth * n_parts + parts, return_inverse=True)[1]
    points, graph = start_nodes(features), build_knn_graph(features, 8)
    peaks = np.unique(labels, return_index=True)[1]
    links = link_trees(points, graph, score_by_affinity(graph, points), labels, len(peaks))
    nodes = merge_nodes(points, labels, peaks, links)
    return nodes, LinkedPairs.of_links(links, nodes.size), truth[nodes.point], features, labels


@pytest.fixture
def any_size(monkeypatch):
    monkeypatch.setattr(merge_cut, "_SMALL_SET", 0)


@pytest.mark.usefixtures("any_size")
def test_the_partition_is_that_of_the_threshold():
    nodes, pairs, *_ = make_fragments(0.5)
    labels, threshold = choose_cut(nodes, pairs, estimate_by_links)
    assert threshold in merge_cut.CUTS
    np.testing.assert_array_equal(labels, merge_by_links(pairs, estimate_by_links, threshold))


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("shift", [-2.0, 2.0])
def test_fragments_of_identities_that_are_apart_merge_though_the_estimate_is_off(shift):
    nodes, pairs, truth, *_ = make_fragments(0.3)

    def estimate(some):
        same = estimate_by_links(some)
        return 1 / (1 + np.exp(-np.log(same / (1 - same)) - shift))

    labels, _ = choose_cut(nodes, pairs, estimate)
    assert len(np.unique(np.stack([labels, truth]), axis=1).T) == labels.max() + 1 == 12


def test_a_small_set_has_the_typical_threshold():
    nodes, pairs, *_ = make_fragments(0.5)
    labels, threshold = choose_cut(nodes, pairs, estimate_by_links)
    assert threshold == 0.7
    np.testing.assert_array_equal(labels, merge_by_links(pairs, estimate_by_links, 0.7))


def test_the_silhouette_of_nodes_is_the_mean_over_their_points():
    nodes, _, _, features, labels = make_fragments(0.6, n_parts=1)
    all_pairs = np.triu_indices(12, 1)
    ones = np.ones(len(all_pairs[0]))
    linked = LinkedPairs(*all_pairs, ones, ones, nodes.size, np.ones((2, 12)), 8)
    found = mean_silhouette(nodes, linked, np.arange(12))
    sums = np.stack([features[labels == one].sum(axis=0) for one in range(12)])
    centres = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    others = np.array([np.delete(centres @ sums[one] / 30, one).max() for one in range(12)])
    rest = [features[labels == one] for one in range(12)]
    own = np.array([
        np.mean([x @ (s - x) for x in points])
        / np.sqrt(s @ s - 2 * np.mean(points @ s) + 1)
        for points, s in zip(rest, sums, strict=True)
    ])  # fmt: skip
    expected = (own - np.maximum(others, 0)) / (1 - np.minimum(own, np.maximum(others, 0)))
    assert found == pytest.approx(expected.mean(), abs=1e-4)


def test_the_right_clusters_have_a_higher_silhouette_than_halves_or_pairs_of_them():
    nodes, pairs, truth, *_ = make_fragments(0.3)
    apart, pairwise = np.arange(len(nodes)), truth // 2
    right = mean_silhouette(nodes, pairs, truth)
    assert right > mean_silhouette(nodes, pairs, apart)
    assert right > mean_silhouette(nodes, pairs, pairwise)


def test_points_that_are_all_alone_have_a_silhouette_of_0():
    features = make_identities(n_identities=6, size=1, dim=8, spread=0.5, seed=0)[0]
    points, graph = start_nodes(features), build_knn_graph(features, 3)
    scores = score_by_affinity(graph, points)
    links = link_trees(points, graph, scores, np.arange(6), 6)
    pairs = LinkedPairs.of_links(links, points.size)
    assert mean_silhouette(points, pairs, np.arange(6)) == 0


def test_modularity_is_the_linkage_inside_less_what_chance_would_give():
    size, inside = np.array([4.0, 4.0]), np.array([[10.0, 10], [8, 8]])
    pairs = LinkedPairs(np.array([0]), np.array([1]), np.ones(1), np.array([4.0]), size, inside, 5)
    assert measure_modularity(pairs) == pytest.approx(16 / 20 - 2 * 0.5**2)
    one = LinkedPairs(*np.zeros((4, 0), int), np.array([8.0]), np.array([[20.0], [16]]), 5)
    assert measure_modularity(one) == pytest.approx(0)
    assert measure_modularity(LinkedPairs(*np.zeros((4, 0), int), size, 0 * inside, 5)) == 0
