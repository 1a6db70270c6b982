import numpy as np
import pytest

from hilander.errors import FileFormatError, GraphError, HiLanderError
from hilander.graph.knn_graph import KnnGraph


def some_graph(n_nodes=30, k=4, seed=0):
    rng = np.random.default_rng(seed)
    neighbours = np.array(
        [rng.permutation(np.delete(np.arange(n_nodes), i))[:k] for i in range(n_nodes)]
    )
    affinity = -np.sort(-rng.uniform(-1, 1, size=(n_nodes, k)), axis=1)
    return neighbours, affinity


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


def test_any_integer_and_float_type_is_accepted():
    neighbours, affinity = some_graph()
    graph = KnnGraph(neighbours.astype(np.uint16), np.asfortranarray(affinity))
    assert (graph.n_nodes, graph.k) == (30, 4)
    assert graph.neighbours.dtype == np.int64
    assert graph.affinity.dtype == np.float32
    assert graph.affinity.flags.c_contiguous
    np.testing.assert_array_equal(graph.neighbours, neighbours)
    np.testing.assert_array_equal(KnnGraph(neighbours.tolist(), affinity).affinity, graph.affinity)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda i, a: (i.astype(float), a), "must be integers, got float64"),
        (lambda i, a: (i[:, :3], a), r"one shape .* got \(30, 3\) and \(30, 4\)"),
        (lambda i, a: (i[:-1], a), "one shape"),
        (lambda i, a: (i.ravel(), a.ravel()), "one shape"),
        (lambda i, a: (i[:, :0], a[:, :0]), "one shape"),
        (lambda i, a: (i[:0], a[:0]), "one shape"),
        (lambda i, a: (changed(i, (3, 1), -1), a), r"lie in \[0, 29\], got -1"),
        (lambda i, a: (changed(i, (3, 1), 30), a), r"lie in \[0, 29\], got 30"),
        (lambda i, a: (changed(i, (7, 2), 7), a), "node 7 is listed as its own neighbour"),
        (lambda i, a: (changed(i, (5, 3), i[5, 0]), a), "node 5 lists a neighbour twice"),
        (lambda i, a: (i, changed(a, (2, 0), np.nan)), "node 2 holds NaN or infinity"),
        (lambda i, a: (i, changed(a, (4, 3), np.inf)), "node 4 holds NaN or infinity"),
        (lambda i, a: (i, changed(a, (4, 3), 1.5)), "cosine in .* got 1.5"),
        (lambda i, a: (i, changed(a, (4, 3), -2)), "cosine in .* got 2"),
    ],
)
def test_a_malformed_graph_is_refused(change, message):
    with pytest.raises(GraphError, match=message):
        KnnGraph(*change(*some_graph()))


def test_a_cosine_above_one_by_rounding_is_accepted():
    neighbours, affinity = some_graph()
    assert KnnGraph(neighbours, changed(affinity, (0, 0), 1 + 1e-6)).n_nodes == 30


def test_save_then_load_is_bit_equal(tmp_path):
    graph = KnnGraph(*some_graph())
    path = graph.save(tmp_path / "graph.npz")
    again = KnnGraph.load(path)
    assert again.neighbours.tobytes() == graph.neighbours.tobytes()
    assert again.affinity.tobytes() == graph.affinity.tobytes()
    assert list(tmp_path.iterdir()) == [path]


def test_the_csr_export_is_the_dense_definition():
    graph = KnnGraph(*some_graph())
    dense = np.zeros((graph.n_nodes, graph.n_nodes), dtype=np.float32)
    for node in range(graph.n_nodes):
        for place in range(graph.k):
            dense[node, graph.neighbours[node, place]] = graph.affinity[node, place]
    matrix = graph.to_csr()
    assert matrix.format == "csr"
    assert matrix.nnz == graph.n_nodes * graph.k
    assert matrix.has_sorted_indices
    np.testing.assert_array_equal(matrix.toarray(), dense)


def test_changing_the_csr_export_does_not_change_the_graph():
    graph = KnnGraph(*some_graph())
    before = graph.affinity.copy(), graph.neighbours.copy()
    matrix = graph.to_csr()
    matrix.data[:] = 0
    matrix.indices[:] = 0
    np.testing.assert_array_equal(graph.affinity, before[0])
    np.testing.assert_array_equal(graph.neighbours, before[1])


def test_a_missing_graph_file_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"none\.npz does not exist"):
        KnnGraph.load(tmp_path / "none.npz")


def test_a_truncated_graph_file_is_refused(tmp_path):
    path = KnnGraph(*some_graph()).save(tmp_path / "graph.npz")
    whole = path.read_bytes()
    for length in range(0, len(whole), 53):
        path.write_bytes(whole[:length])
        with pytest.raises(HiLanderError):
            KnnGraph.load(path)


def test_a_file_of_another_format_is_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "other.npz", features=np.zeros(3))
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "folder.npz").mkdir()
    for name in ("array.npy", "other.npz", "text.npz", "folder.npz"):
        with pytest.raises(
            FileFormatError,
            match=r"is not a k-NN graph|expected \.npz with the arrays neighbours and affinity",
        ):
            KnnGraph.load(tmp_path / name)
