import numpy as np
import pytest

from hilander.knn.block_join import Joiner
from hilander.knn.search import build_knn_graph
from hilander.knn.search_progress import StoredSearch
from hilander.synthetic.identities import make_identities


class StopError(Exception):
    """Simulates a kill: whatever is not in a file is lost."""


class StoppedSearch(StoredSearch):
    def __init__(self, path, after):
        super().__init__(path, every=0.0)
        self.left = after

    def note(self, lists):
        self._every = 0.0
        super().note(lists)
        self.left -= 1
        if self.left == 0:
            raise StopError


@pytest.fixture(params=["exact", "cells"])
def method(request, monkeypatch):
    """Exact search or cells, in many small batches."""
    monkeypatch.setattr("hilander.knn.block_plan._BLOCK", 64)
    monkeypatch.setattr("hilander.knn.block_plan._BATCH", 8)
    if request.param == "cells":
        monkeypatch.setattr("hilander.knn.search._EXACT_UP_TO", 100)
        monkeypatch.setattr("hilander.knn.search._DEAREST_CELLS", 1e9)
    return request.param


@pytest.fixture
def features():
    return make_identities(n_identities=60, size=20, dim=16, seed=3)[0]


def test_an_interrupted_search_continues_and_gives_the_same_graph(
    method, features, tmp_path, monkeypatch
):
    whole = build_knn_graph(features, 7)
    assert whole.search.method == method
    compared = []
    compare = Joiner._compare
    monkeypatch.setattr(
        Joiner, "_compare", lambda self, block: compared.append(1) or compare(self, block)
    )
    build_knn_graph(features, 7)
    in_all = len(compared)
    compared.clear()
    path = tmp_path / "lists.npz"
    stops = 0
    while True:
        try:
            graph = build_knn_graph(features, 7, progress=StoppedSearch(path, after=3))
            break
        except StopError:
            stops += 1
    assert stops >= 3
    assert len(compared) <= in_all
    np.testing.assert_array_equal(graph.neighbours, whole.neighbours)
    np.testing.assert_array_equal(graph.affinity, whole.affinity)


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_damaged_or_other_lists_are_not_used(damage, features, tmp_path):
    path = tmp_path / "lists.npz"
    with pytest.raises(StopError):
        build_knn_graph(features, 5, progress=StoppedSearch(path, after=1))
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    k = 5 if damage == "cut" else 6
    graph = build_knn_graph(features, k, progress=StoredSearch(path))
    np.testing.assert_array_equal(graph.neighbours, build_knn_graph(features, k).neighbours)


def test_a_quick_search_stores_nothing(features, tmp_path):
    build_knn_graph(features, 5, progress=StoredSearch(tmp_path / "lists.npz"))
    assert not list(tmp_path.iterdir())
