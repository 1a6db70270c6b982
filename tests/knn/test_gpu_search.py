import numpy as np
import pytest

from hilander.knn import search as search_module
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities


class StandIn:
    """A stand-in for the GPU index of faiss."""

    def __init__(self):
        self.rows = []

    def add(self, block):
        assert block.dtype == np.float32
        self.rows.append(block)

    def search(self, points, count):
        cosine = points @ np.concatenate(self.rows).T
        best = np.argsort(-cosine, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(cosine, best, axis=1), best


@pytest.fixture
def a_card(monkeypatch):
    faiss = pytest.importorskip("faiss")
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", lambda index: StandIn(), raising=False)
    monkeypatch.setattr(search_module, "_EXACT_UP_TO", 0)
    monkeypatch.setattr("hilander.knn.gpu_search._BLOCK", 100)


@pytest.mark.usefixtures("a_card")
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_gpu_search_gives_the_graph_of_the_cpu_search(dtype, monkeypatch):
    features, _ = make_identities(n_identities=30, size=11, dim=16, seed=0)
    features = np.concatenate([features, features[:40]]).astype(dtype)
    on_card = build_knn_graph(features, 6)
    assert on_card.search.method == "gpu"
    assert on_card.search.recall == 1
    monkeypatch.setattr(search_module, "_EXACT_UP_TO", 10_000)
    here = build_knn_graph(features, 6)
    assert here.search.method == "exact"
    np.testing.assert_array_equal(on_card.neighbours, here.neighbours)
    np.testing.assert_array_equal(on_card.affinity, here.affinity)


@pytest.mark.usefixtures("a_card")
def test_the_search_falls_back_to_the_cpu_if_the_rows_do_not_fit_the_gpu(monkeypatch):
    def fail(self, block):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(StandIn, "add", fail)
    features, _ = make_identities(n_identities=30, size=11, dim=16, seed=0)
    assert build_knn_graph(features, 6, recall=1.0).search.method == "exact"


def test_without_a_gpu_none_is_used():
    features, _ = make_identities(n_identities=30, size=11, dim=16, seed=0)
    assert build_knn_graph(features, 6).search.method == "exact"
