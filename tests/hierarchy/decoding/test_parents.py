import numpy as np
import pytest

from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.decoding.parents import choose_parents
from hilander.hierarchy.decoding.trees import find_roots


def random_case(seed, n_nodes=80, k=6, distinct=None):
    """A random graph with random scores; few distinct values make many ties."""
    rng = np.random.default_rng(seed)
    neighbours = np.array(
        [rng.permutation(np.delete(np.arange(n_nodes), i))[:k] for i in range(n_nodes)]
    )
    affinity = -np.sort(-rng.uniform(-1, 1, size=(n_nodes, k)), axis=1)
    if distinct is None:
        linkage, density = rng.uniform(size=(n_nodes, k)), rng.uniform(-1, 1, size=n_nodes)
    else:
        linkage = rng.integers(distinct + 1, size=(n_nodes, k)) / distinct
        density = rng.integers(distinct + 1, size=n_nodes) / distinct
    scores = EdgeScores(linkage.astype(np.float32), density.astype(np.float32))
    return KnnGraph(neighbours, affinity), scores


def choose_by_loop(graph, scores, p_tau, strict):
    """Equations 5 and 6, node by node."""
    chosen, linkage = [], []
    for i in range(graph.n_nodes):
        candidates = []
        for place, j in enumerate(graph.neighbours[i]):
            p, d_i, d_j = scores.linkage[i, place], scores.density[i], scores.density[j]
            if strict:
                allowed = d_i < d_j and p > p_tau
            else:
                allowed = (d_i < d_j or (d_i == d_j and j < i)) and p >= p_tau
            if allowed:
                candidates.append((-p, place, j))
        best = min(candidates, default=(np.nan, None, i))
        chosen.append(best[2])
        linkage.append(-best[0])
    return np.array(chosen), np.array(linkage, dtype=np.float32)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("distinct", [None, 1, 2, 4])
@pytest.mark.parametrize("p_tau", [0.0, 0.5, 1.0])
def test_parents_are_those_of_the_equations(strict, distinct, p_tau):
    for seed in range(5):
        graph, scores = random_case(seed, distinct=distinct)
        parents = choose_parents(graph, scores, p_tau, strict=strict)
        index, linkage = choose_by_loop(graph, scores, p_tau, strict)
        np.testing.assert_array_equal(parents.index, index)
        np.testing.assert_array_equal(parents.linkage, linkage)
        assert parents.n_edges == (index != np.arange(graph.n_nodes)).sum()


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("distinct", [None, 1, 3])
def test_every_parent_is_at_least_as_dense_and_none_comes_back(strict, distinct):
    for seed in range(20):
        graph, scores = random_case(seed, distinct=distinct)
        index = choose_parents(graph, scores, 0.3, strict=strict).index
        linked = index != np.arange(graph.n_nodes)
        rise = scores.density[index] - scores.density
        assert (rise >= 0).all()
        if strict:
            assert (rise[linked] > 0).all()
        roots = find_roots(index)  # raises on a cycle
        np.testing.assert_array_equal(index[roots], roots)


def test_equal_densities_everywhere_still_merge_and_never_cycle():
    graph, scores = random_case(0)
    even = EdgeScores(np.ones_like(scores.linkage), np.full_like(scores.density, 0.25))
    index = choose_parents(graph, even, 0.5).index
    linked = index != np.arange(graph.n_nodes)
    assert linked.sum() > graph.n_nodes // 2
    assert (index[linked] < np.flatnonzero(linked)).all()
    assert choose_parents(graph, even, 0.5, strict=True).n_edges == 0


def test_a_linkage_of_exactly_p_tau_links_unless_strict():
    graph = KnnGraph(np.array([[1], [0]]), np.array([[0.5], [0.5]]))
    scores = EdgeScores(np.full((2, 1), 0.5, np.float32), np.array([0, 1], np.float32))
    assert choose_parents(graph, scores, 0.5).index.tolist() == [1, 1]
    assert choose_parents(graph, scores, 0.5, strict=True).index.tolist() == [0, 1]


def test_of_equally_probable_candidates_the_most_similar_is_taken():
    graph = KnnGraph(np.array([[2, 1], [2, 0], [1, 0]]), np.tile([[0.9, 0.1]], (3, 1)))
    scores = EdgeScores(np.ones((3, 2), np.float32), np.array([0, 1, 1], np.float32))
    assert choose_parents(graph, scores, 0.5).index[0] == 2


def test_renumbering_the_nodes_renumbers_the_parents():
    for seed in range(10):
        graph, scores = random_case(seed)
        parents = choose_parents(graph, scores, 0.4)
        new_name = np.random.default_rng(seed + 100).permutation(graph.n_nodes)
        old_name = np.argsort(new_name)
        renamed = KnnGraph(new_name[graph.neighbours[old_name]], graph.affinity[old_name])
        rescored = EdgeScores(scores.linkage[old_name], scores.density[old_name])
        again = choose_parents(renamed, rescored, 0.4)
        np.testing.assert_array_equal(again.index[new_name], new_name[parents.index])
        np.testing.assert_array_equal(again.linkage[new_name], parents.linkage)


def test_a_peak_has_no_linkage():
    graph, scores = random_case(3)
    parents = choose_parents(graph, scores, 0.6)
    peak = parents.index == np.arange(graph.n_nodes)
    assert peak.any()
    np.testing.assert_array_equal(np.isnan(parents.linkage), peak)
    assert (parents.linkage[~peak] >= 0.6).all()
