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
from hilander.knn.recall import sample_rows, search_rows
from hilander.knn.search import build_knn_graph
from hilander.synthetic.face_like import make_face_like
from hilander.synthetic.identities import make_identities
from tests.knn.overlap import share_found


@pytest.fixture(scope="module")
def faces():
    """6,000 face-like points."""
    features, labels = make_face_like("imdb", scale=0.005)
    return features[:6_000], labels[:6_000]


def uniform_points(seed=0, n_points=3_000, dim=6):
    points = np.random.default_rng(seed).standard_normal((n_points, dim)).astype(np.float32)
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.mark.usefixtures("cells_for_all")
@pytest.mark.parametrize("target", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("k", [3, 10])
def test_cells_reach_the_recall_and_report_it(faces, k, target):
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
    assert hit[same].mean() >= true  # neighbours of the same identity are found more easily


@pytest.mark.usefixtures("cells_for_all")
def test_cells_also_work_on_points_without_clusters():
    features = uniform_points()
    graph = build_knn_graph(features, 8)
    exact = build_knn_graph(features, 8, recall=1.0)
    assert graph.search.method == "cells"
    assert share_found(graph.neighbours, exact.neighbours) > 0.92


def test_the_search_is_exact_if_cells_would_cost_more_than_all_pairs(monkeypatch):
    monkeypatch.setattr(search_module, "_EXACT_UP_TO", 1_000)
    features = uniform_points(dim=64, n_points=2_000)
    graph = build_knn_graph(features, 5)
    assert (graph.search.method, graph.search.recall) == ("exact", 1.0)
    exact = build_knn_graph(features, 5, recall=1.0)
    np.testing.assert_array_equal(graph.neighbours, exact.neighbours)


@pytest.mark.usefixtures("cells_for_all")
def test_neighbours_have_their_true_affinity_in_descending_order(faces):
    features, _ = faces
    graph = build_knn_graph(features, 7)
    expected = np.einsum("ikd,id->ik", features[graph.neighbours], features)
    np.testing.assert_allclose(graph.affinity, expected, atol=1e-6)
    assert (np.diff(graph.affinity, axis=1) <= 0).all()


@pytest.mark.usefixtures("cells_for_all")
def test_the_graph_depends_on_the_seed_alone(faces):
    features, _ = faces
    one, again, other = (build_knn_graph(features, 6, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.neighbours, again.neighbours)
    np.testing.assert_array_equal(one.affinity, again.affinity)
    assert (one.neighbours != other.neighbours).any()


@pytest.mark.usefixtures("cells_for_all")
@pytest.mark.parametrize("target", [0.9, 1.0])
def test_the_graph_does_not_depend_on_the_number_of_workers(faces, monkeypatch, target):
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
def test_thousands_of_equal_rows_are_searched_once(monkeypatch):
    """All pairs of equal rows are never compared."""
    features, _ = make_identities(n_identities=100, size=10, dim=16, seed=0)
    rng = np.random.default_rng(0)
    distinct_of = rng.permutation(np.concatenate([np.arange(1_000), np.full(20_000, 17)]))
    seen = []
    monkeypatch.setattr(
        search_module, "NearestLists", lambda n, count: seen.append(n) or NearestLists(n, count)
    )
    graph = build_knn_graph(features[distinct_of], 5)
    assert seen == [1_000]
    equal = np.flatnonzero(distinct_of == 17)
    assert np.isin(graph.neighbours[equal], equal).all()
    np.testing.assert_allclose(graph.affinity[equal], 1, atol=1e-6)
    # The first of the equal rows by index, without the row itself.
    np.testing.assert_array_equal(graph.neighbours[equal[-1]], equal[:5])
    np.testing.assert_array_equal(graph.neighbours[equal[0]], equal[1:6])


@pytest.mark.usefixtures("cells_for_all")
def test_a_dense_cluster_of_nearly_equal_rows_is_searched_by_cells_too():
    rng = np.random.default_rng(1)
    dense = np.array([1.0] + [0.0] * 15) + 1e-3 * rng.standard_normal((3_000, 16))
    others, _ = make_identities(n_identities=100, size=10, dim=16, seed=0)
    features = np.concatenate([dense, others]).astype(np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    graph = build_knn_graph(features, 5)
    assert graph.search.recall > 0.9
    assert (graph.neighbours[:3_000] < 3_000).all()


def filled_lists(features, plan):
    """Lists filled by a search by cells."""
    source = RowSource(features)
    with open_workers() as workers:
        known = search_rows(source, sample_rows(len(features), 300, 0), 5, workers)
        cells = plan_cells(source, known, 0.9, workers, SampleDraw())
        joiner = Joiner(source, NearestLists(len(features), 6), workers, plan.batch)
        for _ in search_cells(joiner, cells, plan):
            pass
    return joiner.lists


def test_the_lists_do_not_depend_on_the_block_sizes(faces):
    features, _ = faces
    whole = filled_lists(features, BlockPlan(block=1_024, batch=64, pairs=10**9))
    pieces = filled_lists(features, BlockPlan(block=100, batch=3, pairs=5_000))
    assert share_found(pieces.column, whole.column) > 0.9999


def test_rows_compared_with_too_few_others_are_searched_exactly():
    """Two rows far from all others are alone in their cell."""
    features, _ = make_identities(n_identities=40, size=20, dim=16, seed=2)
    features = np.concatenate([features, -features[:2]])
    lists = filled_lists(features, BlockPlan(256, 8, 10**9))
    assert (lists.column >= 0).all()
    assert np.isfinite(lists.value).all()


def test_the_search_of_a_sample_is_exact(faces):
    features, _ = faces
    exact = build_knn_graph(features, 5, recall=1.0)
    rows = sample_rows(len(features), 50, 7)
    assert len(np.unique(rows)) == 50
    known = search_rows(RowSource(features), rows, 5, Workers())
    np.testing.assert_array_equal(known.neighbours, exact.neighbours[rows])
    np.testing.assert_allclose(known.affinity, exact.affinity[rows], atol=1e-6)


@pytest.mark.parametrize("recall", [0, -0.1, 1.01, float("nan")])
def test_a_recall_outside_0_to_1_is_refused(recall):
    with pytest.raises(GraphError, match="is not a share; use a number above 0, at most 1"):
        build_knn_graph(uniform_points(n_points=10), 3, recall=recall)


def test_probes_within_a_margin_and_beyond_it_are_all_probes(faces):
    source, workers = RowSource(faces[0][:2_000]), Workers()
    centres = learn_centres(source.take(np.arange(1_000)), 64, workers, 0)

    def probed(margin, beyond=None):
        probes = find_probes(source, centres, margin, None, workers, beyond=beyond)
        return set(zip(probes.row.tolist(), probes.cell.tolist(), strict=True))

    near, ring, far = probed(0.05), probed(0.15, 0.05), probed(0.15)
    assert near
    assert ring
    assert not near & ring
    assert near | ring == far
