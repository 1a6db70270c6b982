import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.decoding.contraction import contract_edges
from hilander.hierarchy.decoding.decode import attach_within, decode, find_communities
from hilander.hierarchy.decoding.parents import choose_parents
from hilander.hierarchy.decoding.trees import label_trees
from hilander.knn.search import build_knn_graph


def random_scores(seed, n_nodes=40, k=5, n_densities=None):
    """A random graph with random scores, of few different densities if asked."""
    rng = np.random.default_rng(seed)
    others = [np.delete(np.arange(n_nodes), node) for node in range(n_nodes)]
    neighbours = np.stack([rng.permutation(row)[:k] for row in others])
    graph = KnnGraph(neighbours, np.full((n_nodes, k), 0.5, dtype=np.float32))
    density = rng.uniform(-1, 1, size=n_nodes)
    if n_densities:
        density = np.floor(density * n_densities) / n_densities
    linkage = rng.uniform(size=(n_nodes, k)).astype(np.float32)
    return graph, EdgeScores(linkage, density.astype(np.float32)), rng


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


@pytest.mark.parametrize("n_densities", [None, 2, 1])
@pytest.mark.parametrize("seed", range(4))
def test_the_trees_within_a_partition_are_that_partition(seed, n_densities):
    graph, scores, rng = random_scores(seed, n_densities=n_densities)
    labels = rng.integers(9, size=40)
    parents = attach_within(graph, scores, labels, 0.5)
    trees, peaks = label_trees(parents.index)
    assert same_partition(trees, labels)
    for peak in peaks:
        members = np.flatnonzero(labels == labels[peak])
        assert scores.density[peak] == scores.density[members].max()
        assert parents.index[peak] == peak
        assert np.isnan(parents.linkage[peak])


@pytest.mark.parametrize("n_densities", [None, 2])
@pytest.mark.parametrize("seed", range(4))
def test_parents_are_the_most_probable_of_the_denser_neighbours_inside(seed, n_densities):
    graph, scores, rng = random_scores(seed, n_densities=n_densities)
    labels = rng.integers(4, size=40)
    parents = attach_within(graph, scores, labels, 0.5)
    assert (scores.density[parents.index] >= scores.density).all()
    hung = 0
    for node in range(40):
        inside = [
            (scores.linkage[node, place], other)
            for place, other in enumerate(graph.neighbours[node])
            if labels[other] == labels[node]
        ]
        own = (scores.density[node], -node)
        denser = [(p, other) for p, other in inside if (scores.density[other], -other) > own]
        members = np.flatnonzero(labels == labels[node])
        peak = max(members, key=lambda member: (scores.density[member], -member))
        if node == peak:
            assert parents.index[node] == node
        elif denser:
            assert (parents.linkage[node], parents.index[node]) == max(denser)
        else:
            hung += 1
            assert parents.index[node] == peak
            listing = (graph.neighbours == node) & (labels == labels[node])[:, None]
            seen = [p for p, _ in inside] or scores.linkage[listing].tolist()
            assert parents.linkage[node] == max(seen, default=0)
    assert hung


@pytest.mark.parametrize("decoder", ["parents", "contract", "leiden"])
def test_the_parents_know_the_threshold_they_were_chosen_by(decoder):
    graph, scores, _ = random_scores(6)
    assert decode(graph, scores, 0.37, decoder).p_tau == 0.37


def test_contracting_gives_the_trees_of_the_contracted_log_odds():
    graph, scores, _ = random_scores(5)
    for p_tau in (0.3, 0.6, 0.9):
        parents = decode(graph, scores, p_tau, "contract")
        weights = np.log(scores.linkage / (1 - scores.linkage)) - np.log(p_tau / (1 - p_tau))
        assert same_partition(label_trees(parents.index)[0], contract_edges(graph, weights))


def test_a_higher_threshold_leaves_more_clusters():
    graph, scores, _ = random_scores(6, n_nodes=80)
    n_clusters = [
        len(label_trees(decode(graph, scores, p_tau, "contract").index)[1])
        for p_tau in (0.0, 0.5, 0.7, 0.9, 1.0)
    ]
    assert n_clusters == sorted(n_clusters)
    assert n_clusters[0] == 1
    assert n_clusters[-1] == 80


def test_the_papers_decoder_is_choose_parents():
    graph, scores, _ = random_scores(7)
    for found in (decode(graph, scores, 0.4), decode(graph, scores, 0.4, "parents")):
        expected = choose_parents(graph, scores, 0.4)
        np.testing.assert_array_equal(found.index, expected.index)
        np.testing.assert_array_equal(found.linkage, expected.linkage)


def test_an_unknown_decoder_is_refused_with_the_known_ones_named():
    graph, scores, _ = random_scores(8)
    with pytest.raises(SettingError, match=r"decoder='rank' is not known.*parents, contract"):
        decode(graph, scores, 0.5, "rank")


def test_a_member_that_only_others_list_is_attached_by_the_most_probable_of_their_edges():
    # Nodes 0, 1, 2 are one cluster; 2 lists only 3 and 4, but 0 and 1 list it.
    neighbours = np.array([[1, 2], [0, 2], [3, 4], [4, 0], [3, 0]])
    linkage = np.array([[0.9, 0.6], [0.9, 0.7], [0.1, 0.1], [0.8, 0.1], [0.8, 0.1]])
    graph = KnnGraph(neighbours, np.full((5, 2), 0.5, dtype=np.float32))
    density = np.array([0.9, 0.8, 0.1, 0.5, 0.4], dtype=np.float32)
    scores = EdgeScores(linkage.astype(np.float32), density)
    parents = attach_within(graph, scores, np.array([0, 0, 0, 1, 1]), 0.5)
    assert parents.index.tolist() == [0, 0, 0, 3, 3]
    np.testing.assert_allclose(parents.linkage[[1, 2, 4]], [0.9, 0.7, 0.8])


def test_leiden_cuts_large_even_clusters_but_joins_no_two_of_them():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 400)
    features = rng.normal(size=(2, 64))[labels] + 0.5 * rng.normal(size=(800, 64))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    graph = build_knn_graph(features.astype(np.float32), 15)
    weights = np.ones(graph.neighbours.shape, dtype=np.float32)
    found = find_communities(graph, weights, "leiden")
    n_parts = len(np.unique(found))
    assert n_parts > 30  # merges by links join them
    assert len(np.unique(np.stack([found, labels]), axis=1).T) == n_parts
