"""Approximate search against the exact one, on data small enough for both."""

import numpy as np
import pytest

from hilander.arrays.row_source import RowSource
from hilander.engines.threads import Workers, open_workers
from hilander.errors import GraphError
from hilander.knn import search as search_module
from hilander.knn.block_join import Joiner
from hilander.knn.block_plan import BlockPlan
from hilander.knn.cell_search import SampleDraw, plan_cells, search_cells
from hilander.knn.cells import find_probes, learn_centres
from hilander.knn.nearest_lists import NearestLists
from hilander.knn.recall import sample_rows, search_rows, share_found
from hilander.knn.search import build_knn_graph
from hilander.synthetic.face_like import make_face_like
from hilander.synthetic.identities import make_identities


@pytest.fixture
def cells_for_all(monkeypatch):
    """Let cells be chosen for small data, and whatever they cost."""
    monkeypatch.setattr(search_module, "_EXACT_UP_TO", 0)
    monkeypatch.setattr(search_module, "_SAMPLE", 400)
    monkeypatch.setattr(search_module, "_DEAREST_CELLS", np.inf)


@pytest.fixture(scope="module")
def faces():
    """6,000 face-like points."""
    features, labels = make_face_like("imdb", scale=0.005)
    return features[:6_000], labels[:6_000]


def even_points(seed=0, n_points=3_000, dim=6):
    points = np.random.default_rng(seed).standard_normal((n_points, dim)).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.mark.usefixtures("cells_for_all")
@pytest.mark.parametrize("target", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("k", [3, 10])
def test_cells_find_the_wished_share_and_say_how_much(faces, k, target):
    features, labels = faces
    graph = build_knn_graph(features, k, recall=target)
    exact = build_knn_graph(features, k, recall=1.0)
    assert exact.search.method == "exact"
    assert graph.search.method == "cells"
    assert graph.search.n_lists > 1
    assert graph.search.n_probes >= 1
    true = share_found(graph.neighbours, exact.neighbours)
    assert graph.search.recall >= target
    assert abs(true - graph.search.recall) < 0.03
    same = labels[exact.neighbours] == labels[:, None]
    hit = (exact.neighbours[:, :, None] == graph.neighbours[:, None, :]).any(axis=2)
    assert hit[same].mean() >= true  # those of one identity are the easier ones


@pytest.mark.usefixtures("cells_for_all")
def test_even_points_without_clusters_are_found_too():
    features = even_points()
    graph = build_knn_graph(features, 8)
    exact = build_knn_graph(features, 8, recall=1.0)
    assert graph.search.method == "cells"
    assert share_found(graph.neighbours, exact.neighbours) > 0.92


def test_where_cells_would_cost_more_than_all_pairs_the_search_is_exact(monkeypatch):
    monkeypatch.setattr(search_module, "_EXACT_UP_TO", 1_000)
    features = even_points(dim=64, n_points=2_000)
    graph = build_knn_graph(features, 5)
    assert (graph.search.method, graph.search.recall) == ("exact", 1.0)
    exact = build_knn_graph(features, 5, recall=1.0)
    np.testing.assert_array_equal(graph.neighbours, exact.neighbours)


@pytest.mark.usefixtures("cells_for_all")
def test_what_is_found_has_its_true_affinity_in_falling_order(faces):
    features, _ = faces
    graph = build_knn_graph(features, 7)
    expected = np.einsum("ikd,id->ik", features[graph.neighbours], features)
    np.testing.assert_allclose(graph.affinity, expected, atol=1e-6)
    assert (np.diff(graph.affinity, axis=1) <= 0).all()


@pytest.mark.usefixtures("cells_for_all")
def test_a_seed_gives_one_graph_and_another_seed_another(faces):
    features, _ = faces
    one, again, other = (build_knn_graph(features, 6, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.neighbours, again.neighbours)
    np.testing.assert_array_equal(one.affinity, again.affinity)
    assert (one.neighbours != other.neighbours).any()


@pytest.mark.usefixtures("cells_for_all")
@pytest.mark.parametrize("target", [0.9, 1.0])
def test_the_number_of_workers_does_not_show(faces, monkeypatch, target):
    features, _ = faces
    several = build_knn_graph(features, 6, recall=target)
    monkeypatch.setattr(search_module, "_ALONE_BELOW", len(features) + 1)
    alone = build_knn_graph(features, 6, recall=target)
    np.testing.assert_array_equal(several.neighbours, alone.neighbours)
    np.testing.assert_array_equal(several.affinity, alone.affinity)


@pytest.mark.usefixtures("cells_for_all")
@pytest.mark.parametrize("target", [0.95, 1.0])
def test_half_precision_and_a_mapped_file_give_nearly_the_same_graph(faces, tmp_path, target):
    features, _ = faces
    graph = build_knn_graph(features, 6, recall=target)
    np.save(tmp_path / "features.npy", features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    from_file = build_knn_graph(mapped, 6, recall=target)
    np.testing.assert_array_equal(from_file.neighbours, graph.neighbours)
    np.testing.assert_array_equal(from_file.affinity, graph.affinity)
    half = build_knn_graph(features.astype(np.float16), 6, recall=target)
    assert half.affinity.dtype == np.float32
    assert share_found(half.neighbours, graph.neighbours) > 0.95


@pytest.mark.usefixtures("cells_for_all")
def test_thousands_of_copies_are_found_and_cost_nothing(monkeypatch):
    """EqualRows are searched for once: all pairs of them are never looked at."""
    features, _ = make_identities(n_identities=100, size=10, dim=16, seed=0)
    rng = np.random.default_rng(0)
    copy_of = rng.permutation(np.concatenate([np.arange(1_000), np.full(20_000, 17)]))
    seen = []
    monkeypatch.setattr(
        search_module, "NearestLists", lambda n, count: seen.append(n) or NearestLists(n, count)
    )
    graph = build_knn_graph(features[copy_of], 5)
    assert seen == [1_000]
    copies = np.flatnonzero(copy_of == 17)
    assert np.isin(graph.neighbours[copies], copies).all()
    np.testing.assert_allclose(graph.affinity[copies], 1, atol=1e-6)
    # The first of the copies, by index, but the row itself.
    np.testing.assert_array_equal(graph.neighbours[copies[-1]], copies[:5])
    np.testing.assert_array_equal(graph.neighbours[copies[0]], copies[1:6])


@pytest.mark.usefixtures("cells_for_all")
def test_a_crowd_of_near_copies_is_searched_like_any_other():
    rng = np.random.default_rng(1)
    crowd = np.array([1.0] + [0.0] * 15) + 1e-3 * rng.standard_normal((3_000, 16))
    others, _ = make_identities(n_identities=100, size=10, dim=16, seed=0)
    features = np.concatenate([crowd, others]).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    graph = build_knn_graph(features, 5)
    assert graph.search.recall > 0.9
    assert (graph.neighbours[:3_000] < 3_000).all()


def filled_lists(features, plan, margin_of=None):
    """Lists filled by cells, with a margin of one's choice."""
    source = RowSource(features)
    with open_workers() as workers:
        known = search_rows(source, sample_rows(len(features), 300, 0), 5, workers)
        cells = plan_cells(source, known, 0.9, workers, SampleDraw())
        if margin_of is not None:
            cells = margin_of(cells)
        joiner = Joiner(source, NearestLists(len(features), 6), workers, plan.batch)
        for _ in search_cells(joiner, cells, plan):
            pass
    return joiner.lists


def test_rows_held_a_few_at_a_time_give_the_same_lists(faces):
    features, _ = faces
    whole = filled_lists(features, BlockPlan(block=1_024, batch=64, pairs=10**9))
    pieces = filled_lists(features, BlockPlan(block=100, batch=3, pairs=5_000))
    assert share_found(pieces.column, whole.column) > 0.9999


def test_rows_that_meet_too_few_others_are_searched_exactly():
    """Two rows far from all others have no company in any cell."""
    features, _ = make_identities(n_identities=40, size=20, dim=16, seed=2)
    features = np.concatenate([features, -features[:2]])
    lists = filled_lists(features, BlockPlan(256, 8, 10**9))
    assert (lists.column >= 0).all()
    assert np.isfinite(lists.value).all()


def test_search_of_some_rows_is_exact(faces):
    features, _ = faces
    exact = build_knn_graph(features, 5, recall=1.0)
    rows = sample_rows(len(features), 50, 7)
    assert len(np.unique(rows)) == 50
    known = search_rows(RowSource(features), rows, 5, Workers())
    np.testing.assert_array_equal(known.neighbours, exact.neighbours[rows])
    np.testing.assert_allclose(known.affinity, exact.affinity[rows], atol=1e-6)


@pytest.mark.parametrize("recall", [0, -0.1, 1.01, float("nan")])
def test_a_recall_that_is_no_share_is_refused(recall):
    with pytest.raises(GraphError, match="is not a share; use a number above 0, at most 1"):
        build_knn_graph(even_points(n_points=10), 3, recall=recall)


def test_what_lies_beyond_a_margin_and_what_lies_within_are_all_the_probes(faces):
    source, workers = RowSource(faces[0][:2_000]), Workers()
    centres = learn_centres(source.take(np.arange(1_000)), 64, workers, 0)

    def looked(margin, beyond=None):
        probes = find_probes(source, centres, margin, None, workers, beyond=beyond)
        return set(zip(probes.row.tolist(), probes.cell.tolist(), strict=True))

    near, ring, far = looked(0.05), looked(0.15, 0.05), looked(0.15)
    assert near
    assert ring
    assert not near & ring
    assert near | ring == far
