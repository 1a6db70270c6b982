import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hilander.graph.knn_graph import KnnGraph
from hilander.linkage.evidence import common_neighbours
from hilander.linkage.evidence.common_neighbours import (
    CommonLinks,
    compare_lists,
    link_both_ways,
    rank_back,
)


def random_graph(seed, n_nodes, k):
    rng = np.random.default_rng(seed)
    others = [np.delete(np.arange(n_nodes), node) for node in range(n_nodes)]
    neighbours = np.stack([rng.permutation(row)[:k] for row in others])
    affinity = -np.sort(-rng.uniform(-1, 1, size=(n_nodes, k)), axis=1)
    return KnnGraph(neighbours, affinity.astype(np.float32))


def every_edge(graph):
    for node, row in enumerate(graph.neighbours):
        for place, other in enumerate(row):
            yield node, place, other


@pytest.mark.parametrize("block", [1, 7, 10**6])
def test_common_neighbours_are_those_of_the_sets(monkeypatch, block):
    monkeypatch.setattr(common_neighbours, "_SMALLEST_BLOCK", block)
    monkeypatch.setattr(common_neighbours, "_SINGLE_THREAD", 0)
    graph = random_graph(0, 30, 6)
    found = compare_lists(graph, 3)
    lists = graph.neighbours.tolist()
    for node, place, other in every_edge(graph):
        back = lists[other].index(node) + 1 if node in lists[other] else 0
        assert found.back[node, place] == back
        assert found.shared[node, place] == len(set(lists[node]) & set(lists[other]))
        close = len(set(lists[node][:3]) & set(lists[other][:3]))
        assert found.shared_close[node, place] == close
    assert 0 < (found.back > 0).mean() < 1
    np.testing.assert_array_equal(rank_back(graph), found.back)


def symmetric_links(seed, n_nodes, long_rows):
    rng = np.random.default_rng(seed)
    some = np.where(rng.random((n_nodes, n_nodes)) < 0.2, rng.random((n_nodes, n_nodes)), 0)
    some[list(long_rows)] = rng.random((len(long_rows), n_nodes))
    dense = np.maximum(some, some.T)
    dense[4], dense[:, 4] = 0, 0  # and an empty one
    return dense.astype(np.float32)


def test_edges_are_linked_both_ways_with_the_larger_value():
    graph, dense = random_graph(3, 12, 4), np.zeros((12, 12), dtype=np.float32)
    value = np.random.default_rng(3).uniform(0.1, 1, (12, 4)).astype(np.float32)
    for node, place, other in every_edge(graph):
        dense[node, other] = value[node, place]
    links = link_both_ways(graph, value, rank_back(graph))
    np.testing.assert_array_equal(links.toarray(), np.maximum(dense, dense.T))
    assert links.has_sorted_indices


@pytest.mark.parametrize("long_rows", [(), (2, 7)])
def test_sums_over_common_links_are_those_of_the_dense_rows(long_rows):
    graph, dense = random_graph(1, 25, 7), symmetric_links(2, 25, long_rows)
    common = CommonLinks(csr_matrix(dense), graph)
    for rows in (slice(0, 25), slice(0, 9), slice(9, 10), slice(10, 25)):
        found = common.of(rows)
        for node in range(rows.start, rows.stop):
            for place, other in enumerate(graph.neighbours[node]):
                both = (dense[node] > 0) & (dense[other] > 0)
                expected = (
                    both.sum(),
                    dense[node][both].sum(),
                    dense[other][both].sum(),
                    dense[node] @ dense[other],
                )
                got = [sums[node - rows.start, place] for sums in found]
                assert got == pytest.approx(expected, abs=1e-5)


def test_the_long_row_of_a_hub_is_searched():
    """Node 0 is a neighbour of all nodes but one: its row is searched for their few entries."""
    n_nodes, k = 300, 3
    neighbours = (np.arange(n_nodes)[:, None] + np.arange(1, k + 1)) % n_nodes
    neighbours[4:-k, 0] = 0
    graph = KnnGraph(neighbours, np.ones((n_nodes, k), dtype=np.float32))
    value = np.random.default_rng(0).uniform(0.1, 1, (n_nodes, k)).astype(np.float32)
    links = link_both_ways(graph, value, rank_back(graph))
    dense = links.toarray()
    found = CommonLinks(links, graph).of(slice(0, n_nodes))
    i, j = np.repeat(np.arange(n_nodes), k), neighbours.ravel()
    both = (dense[i] > 0) & (dense[j] > 0)
    expected = both.sum(1), (dense[i] * both).sum(1), (dense[j] * both).sum(1)
    for got, wanted in zip(found[:3], expected, strict=True):
        np.testing.assert_allclose(got.ravel(), wanted, rtol=1e-5)
    np.testing.assert_allclose(found[3].ravel(), (dense[i] * dense[j]).sum(1), rtol=1e-5)
