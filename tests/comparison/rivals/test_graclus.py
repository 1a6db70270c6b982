import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hilander.comparison.protocol import make_graph
from hilander.comparison.rival import Problem
from hilander.comparison.rivals.graclus import (
    build_weights,
    cluster_by_cuts,
    cut_graph,
    match_nodes,
    refine_cut,
)
from hilander.synthetic.identities import make_identities


def random_weights(n_nodes: int, seed: int) -> csr_matrix:
    rng = np.random.default_rng(seed)
    weights = rng.random((n_nodes, n_nodes)) * (rng.random((n_nodes, n_nodes)) < 0.5)
    weights = np.triu(weights, 1)
    weights[np.arange(n_nodes - 1), np.arange(1, n_nodes)] += 0.1  # connected
    return csr_matrix(weights + weights.T)


def cut_by_definition(weights: csr_matrix, labels: np.ndarray) -> float:
    dense = weights.toarray()
    total = 0.0
    for label in np.unique(labels):
        inside = labels == label
        total += dense[inside][:, ~inside].sum() / dense[inside].sum()
    return total


def best_cut(weights: csr_matrix, n_clusters: int) -> float:
    """The lowest normalised cut of all partitions into exactly so many clusters."""
    n_nodes = weights.shape[0]
    lowest = np.inf
    for rest in itertools.product(range(n_clusters), repeat=n_nodes - 1):
        labels = np.array((0, *rest))
        if len(np.unique(labels)) == n_clusters:
            lowest = min(lowest, cut_by_definition(weights, labels))
    return lowest


def test_cuts_of_tiny_graphs_are_near_the_best_of_all() -> None:
    ratios = []
    for seed in range(12):
        weights = random_weights(8, seed)
        labels = cut_graph(weights, 2)
        assert len(np.unique(labels)) == 2
        ratios.append(cut_by_definition(weights, labels) / best_cut(weights, 2))
    assert min(ratios) >= 1 - 1e-9
    assert np.mean(ratios) < 1.12
    assert np.mean(np.isclose(ratios, 1)) >= 0.5


def test_two_cliques_with_one_weak_link_are_cut_there() -> None:
    weights = np.zeros((10, 10))
    weights[:5, :5] = weights[5:, 5:] = 1
    np.fill_diagonal(weights, 0)
    weights[0, 9] = weights[9, 0] = 0.1
    labels = cut_graph(csr_matrix(weights), 2)
    np.testing.assert_array_equal(labels, [0] * 5 + [1] * 5)


@pytest.mark.parametrize("seed", range(5))
def test_refining_never_raises_the_cut_and_never_empties_a_cluster(seed: int) -> None:
    weights = random_weights(30, seed)
    start = np.random.default_rng(seed).permutation(np.arange(30) % 5)
    end = refine_cut(weights, start)
    assert cut_by_definition(weights, end) <= cut_by_definition(weights, start) + 1e-12
    assert len(np.unique(end)) == 5


def test_a_matching_pairs_neighbours_and_no_node_twice() -> None:
    weights = random_weights(25, 3)
    merged = match_nodes(weights, 100)
    assert merged is not None
    sizes = np.bincount(merged)
    assert sizes.max() == 2
    for label in np.flatnonzero(sizes == 2):
        left, right = np.flatnonzero(merged == label)
        assert weights[left, right] > 0
    few = match_nodes(weights, 3)
    assert few is not None
    assert few.max() + 1 == 25 - 3


def test_a_graph_without_edges_keeps_its_nodes_apart() -> None:
    assert len(np.unique(cut_graph(csr_matrix((5, 5)), 2))) == 5


def test_well_separated_identities_are_found() -> None:
    features, labels = make_identities(n_identities=12, size=20, spread=0.3, seed=1)
    problem = Problem(features, make_graph(features, 20))
    params = {"k": 10, "mean_size": 20.0}
    found = cluster_by_cuts(problem, build_weights(problem, None, params), params)
    assert len(set(zip(found.tolist(), labels.tolist(), strict=True))) == 12
