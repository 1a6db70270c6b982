import numpy as np
import pytest

from hilander.errors import FileFormatError, GraphError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.search_report import SearchReport
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities


def test_the_search_report_is_stored_with_the_graph(tmp_path):
    features, _ = make_identities(n_identities=5, size=6, dim=8, seed=0)
    graph = build_knn_graph(features, 3)
    assert graph.search.method == "exact"
    assert graph.search.seconds > 0
    assert KnnGraph.load(graph.save(tmp_path / "graph.npz")).search == graph.search
    report = SearchReport("cells", recall=0.961, n_lists=512, n_probes=4.25, seconds=3.5)
    other = KnnGraph(graph.neighbours, graph.affinity, report)
    assert KnnGraph.load(other.save(tmp_path / "other.npz")).search == report


def test_a_graph_without_a_search_report_is_read(tmp_path):
    graph = KnnGraph(np.array([[1], [0]]), np.ones((2, 1)))
    assert graph.search is None
    assert KnnGraph.load(graph.save(tmp_path / "graph.npz")).search is None
    np.savez(tmp_path / "old.npz", neighbours=graph.neighbours, affinity=graph.affinity)
    assert KnnGraph.load(tmp_path / "old.npz").search is None


def test_a_damaged_report_is_refused(tmp_path):
    path = tmp_path / "graph.npz"
    np.savez(path, neighbours=np.array([[1], [0]]), affinity=np.ones((2, 1)), search="{")
    with pytest.raises(FileFormatError, match="is not a k-NN graph"):
        KnnGraph.load(path)


def test_an_invalid_report_is_refused():
    with pytest.raises(GraphError, match="search method 'magic' is not known; use one of exact"):
        SearchReport("magic")
    with pytest.raises(GraphError, match=r"recall=1.5 is not a share; give a number in \[0, 1\]"):
        SearchReport("cells", recall=1.5)
