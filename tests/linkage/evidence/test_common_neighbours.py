import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hilander.graph import knn_graph
from hilander.graph.edges import edge_matrix
from hilander.graph.knn_graph import KnnGraph
from hilander.linkage.evidence import common_neighbours
from hilander.linkage.evidence.common_neighbours import CommonLinks, compare_lists, rank_back


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


@pytest.mark.parametrize("all_pairs", [0, 32])
@pytest.mark.parametrize("numbers", [1, 200, 10**6])
def test_common_neighbours_are_those_of_the_sets(monkeypatch, all_pairs, numbers):
    monkeypatch.setattr(common_neighbours, "_ALL_PAIRS", all_pairs)
    monkeypatch.setattr(common_neighbours, "_SINGLE_THREAD", 0)
    monkeypatch.setattr(knn_graph, "_CACHED_NUMBERS", numbers)
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


def symmetric_links(seed, n_nodes):
    rng = np.random.default_rng(seed)
    some = np.where(rng.random((n_nodes, n_nodes)) < 0.2, rng.random((n_nodes, n_nodes)), 0)
    some[[2, 7]] = rng.random((2, n_nodes))  # long rows
    dense = np.maximum(some, some.T)
    dense[4], dense[:, 4] = 0, 0  # and an empty one
    return dense.astype(np.float32)


@pytest.mark.parametrize("hub", [1, 8, 1_000])
@pytest.mark.parametrize("block", [3, 10**6])
def test_sums_over_common_links_are_those_of_the_dense_rows(monkeypatch, hub, block):
    monkeypatch.setattr(common_neighbours, "_HUB", hub)
    monkeypatch.setattr(common_neighbours, "_ENTRY_BLOCK", block)
    graph, dense = random_graph(1, 25, 7), symmetric_links(2, 25)
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


def test_the_row_of_a_hub_is_not_copied_for_each_of_its_edges(monkeypatch):
    """Node 0 is a neighbour of all nodes. Its row of n entries for each edge would be n * n."""
    n_nodes = 3_000
    neighbours = np.zeros((n_nodes, 1), dtype=np.int64)
    neighbours[0] = 1
    graph = KnnGraph(neighbours, np.ones((n_nodes, 1), dtype=np.float32))
    listed = edge_matrix(graph, np.ones((n_nodes, 1), dtype=np.float32))
    links = listed.maximum(listed.T).tocsr()
    taken = []
    real = csr_matrix.__getitem__

    def count_entries(matrix, key):
        found = real(matrix, key)
        taken.append(found.nnz)
        return found

    monkeypatch.setattr(type(links), "__getitem__", count_entries)
    sums = CommonLinks(links, graph).of(slice(0, n_nodes))
    assert sum(taken) < 10 * n_nodes
    np.testing.assert_array_equal(sums, 0)  # 0 is not its own neighbour
