import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from hilander.arrays.rows import unit_rows
from hilander.graph import edges
from hilander.graph.edges import dot_edges, edge_matrix, logit_of, look_up, overlap_rows
from hilander.graph.knn_graph import KnnGraph


def random_graph(rng, n_nodes, k):
    others = [np.delete(np.arange(n_nodes), node) for node in range(n_nodes)]
    neighbours = np.stack([rng.permutation(row)[:k] for row in others])
    affinity = -np.sort(-rng.uniform(-1, 1, size=(n_nodes, k)), axis=1)
    return KnnGraph(neighbours, affinity.astype(np.float32))


def every_edge(graph):
    for node, row in enumerate(graph.neighbours):
        for place, other in enumerate(row):
            yield node, place, other


def test_the_edge_matrix_holds_each_value_at_its_edge_and_no_others():
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 12, 4)
    values = rng.normal(size=(12, 4)).astype(np.float32)
    dense = np.zeros((12, 12), dtype=np.float32)
    for node, place, other in every_edge(graph):
        dense[node, other] = values[node, place]
    np.testing.assert_array_equal(edge_matrix(graph, values).toarray(), dense)


@pytest.mark.parametrize("seed", range(3))
def test_a_lookup_gives_the_dense_entry_and_0_for_none(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 15, 6)
    matrix = csr_matrix(random_array((15, 15), density=0.3, rng=rng))
    for sparse in (matrix, matrix.T.tocsr(), csr_matrix((15, 15))):
        found = look_up(sparse, graph)
        assert found.dtype == np.float32
        dense = sparse.toarray().astype(np.float32)
        for node, place, other in every_edge(graph):
            assert found[node, place] == dense[node, other]


def test_a_lookup_works_with_unsorted_columns():
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 10, 9)
    values = rng.normal(size=(10, 9)).astype(np.float32)
    starts = np.arange(0, 91, 9)
    loose = csr_matrix((values.ravel(), graph.neighbours.ravel(), starts), (10, 10), copy=True)
    np.testing.assert_array_equal(look_up(loose, graph), values)


@pytest.mark.parametrize("hub", [1, 5, 1_000])
@pytest.mark.parametrize("block", [1, 40, 10**6])
def test_an_overlap_is_the_product_of_two_rows_for_any_block_size(monkeypatch, hub, block):
    monkeypatch.setattr(edges, "_HUB", hub)
    monkeypatch.setattr(edges, "_ENTRY_BLOCK", block)
    rng = np.random.default_rng(4)
    graph = random_graph(rng, 25, 7)
    left, right = np.where(rng.random((2, 25, 25)) < 0.25, rng.normal(size=(2, 25, 25)), 0)
    for dense in (left, right):  # long rows on both sides, and an empty one
        dense[[3, 4, rng.integers(6, 25)]] = rng.normal(size=(3, 25))
        dense[5] = 0
    found = overlap_rows(csr_matrix(left), csr_matrix(right), graph)
    for node, place, other in every_edge(graph):
        assert found[node, place] == pytest.approx(left[node] @ right[other], abs=1e-5)


def test_a_hub_is_not_copied_for_each_of_its_edges(monkeypatch):
    """All nodes list node 0: copying its row of n entries for each edge gives n * n entries."""
    n_nodes = 3_000
    neighbours = np.zeros((n_nodes, 1), dtype=np.int64)
    neighbours[0] = 1
    graph = KnnGraph(neighbours, np.ones((n_nodes, 1), dtype=np.float32))
    listed = edge_matrix(graph, np.ones((n_nodes, 1), dtype=np.float32))
    known = listed.maximum(listed.T).tocsr()
    taken = []
    real = csr_matrix.__getitem__

    def weigh(matrix, key):
        found = real(matrix, key)
        taken.append(found.nnz)
        return found

    monkeypatch.setattr(type(known), "__getitem__", weigh)
    overlap = overlap_rows(known, known, graph)
    assert sum(taken) < 10 * n_nodes
    np.testing.assert_array_equal(overlap, 0)  # 0 is not its own neighbour


def test_dot_edges_multiplies_both_ends_of_each_edge():
    rng = np.random.default_rng(5)
    graph = random_graph(rng, 20, 5)
    left, right = rng.normal(size=(2, 20, 3)).astype(np.float32)
    found = dot_edges(left, right, graph)
    for node, place, other in every_edge(graph):
        assert found[node, place] == pytest.approx(left[node] @ right[other], abs=1e-5)


def test_unit_rows_have_unit_length_and_a_zero_row_stays_zero():
    rng = np.random.default_rng(6)
    vectors = rng.normal(size=(6, 4)).astype(np.float32) * 10.0 ** np.arange(-3, 3)[:, None]
    vectors[2] = 0
    length = np.linalg.norm(unit_rows(vectors.astype(np.float32)), axis=1)
    np.testing.assert_allclose(length, [1, 1, 0, 1, 1, 1], atol=1e-6)


def test_the_logit_inverts_the_sigmoid_and_is_finite_at_0_and_1():
    logit = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(logit_of(1 / (1 + np.exp(-logit))), logit, atol=1e-6)
    low, high = logit_of(np.array([0.0, 1.0], dtype=np.float32))
    assert low == pytest.approx(-high, rel=1e-3)
    assert 5 < high < 50
