"""Sharded runs: the same result on both engines, for any number of workers and of partitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilander.engines.thread_engine import ThreadEngine
from hilander.errors import FileFormatError, SettingError
from hilander.hierarchy.work import Work
from hilander.io.shards import list_shards
from hilander.sharded import cells, dealing, pooling, scorer
from hilander.sharded import run as module
from hilander.sharded.points import ShardedPoints
from hilander.sharded.run import ShardedSettings, walk_sharded
from hilander.sharded.stage_log import StageLog
from hilander.synthetic import make_identities
from hilander.synthetic.face_like import make_face_like
from tests.sharded.sharded_runs import assert_same, run, write_shards


def make_cone_with_repeats():
    """Embeddings in a narrow cone, so that they are centred; one row in ten is repeated."""
    rng = np.random.default_rng(3)
    rows, _ = make_identities(n_identities=60, seed=5)
    rows = rows + 2 * np.eye(1, rows.shape[1], dtype=np.float32)
    return rows[np.sort(rng.integers(len(rows), size=len(rows) * 11 // 10))]


SETS = {
    "identities": lambda: make_identities(n_identities=70, seed=1)[0],
    "faces": lambda: make_face_like("imdb", scale=0.0012, seed=2)[0],
    "cone": make_cone_with_repeats,
}


@pytest.fixture(scope="module", params=SETS)
def rows(request):
    return np.asarray(SETS[request.param](), dtype=np.float32)


@pytest.fixture
def few_cells(monkeypatch):
    """Search by cells however few points there are."""
    monkeypatch.setattr(cells, "EXACT_UP_TO", 100)


def test_threads_give_what_one_array_gives(model, threads, rows, tmp_path):
    found, first, _ = run(model, write_shards(tmp_path, rows), threads, n_parts=7)
    expected = list(model.walk(rows))
    np.testing.assert_array_equal(first.graph.neighbours, expected[0].graph.neighbours)
    np.testing.assert_array_equal(first.graph.affinity, expected[0].graph.affinity)
    np.testing.assert_array_equal(first.scores.linkage, expected[0].scores.linkage)
    assert_same(found, model.cluster(rows))


@pytest.mark.parametrize("by_cells", [False, True], ids=["exact", "cells"])
def test_engines_workers_and_partitions_do_not_change_the_result(
    model, threads, ray_engine, rows, by_cells, tmp_path, monkeypatch
):
    if by_cells:
        monkeypatch.setattr(cells, "EXACT_UP_TO", 100)
    folder = write_shards(tmp_path, rows)
    expected, first, _ = run(model, folder, threads, n_parts=1)
    assert first.graph.search.method == ("cells" if by_cells else "exact")
    single, four = ThreadEngine(1), ThreadEngine(4)
    for engine, n_parts in (
        (threads, 20),
        (single, 5),
        (four, 20),
        (ray_engine, 1),
        (ray_engine, 20),
    ):
        found, other, _ = run(model, folder, engine, n_parts=n_parts)
        assert_same(found, expected)
        np.testing.assert_array_equal(other.graph.neighbours, first.graph.neighbours)
        np.testing.assert_array_equal(other.scores.linkage, first.scores.linkage)
    single.close()
    four.close()


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    n_points=st.integers(6, 60),
    dim=st.integers(4, 9),
    steps=st.integers(2, 30),
    seed=st.integers(0, 1_000),
    n_parts=st.integers(2, 20),
    n_shards=st.integers(1, 5),
)
def test_small_sets_with_many_ties_do_not_depend_on_partitions(
    model, threads, tmp_path_factory, n_points, dim, steps, seed, n_parts, n_shards
):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-steps, steps + 1, (n_points, dim)).astype(np.float32)
    rows[~rows.any(axis=1)] = 1
    folder = write_shards(tmp_path_factory.mktemp("shards"), rows, n_shards)
    expected, first, _ = run(model, folder, threads, n_parts=1)
    found, other, _ = run(model, folder, threads, n_parts=n_parts)
    np.testing.assert_array_equal(other.graph.neighbours, first.graph.neighbours)
    assert_same(found, expected)


def test_small_memory_changes_the_blocks_and_not_the_result(
    model, threads, few_cells, tmp_path, monkeypatch
):
    rows = SETS["faces"]()
    folder = write_shards(tmp_path, rows)
    expected, _, _ = run(model, folder, threads, n_parts=4)
    monkeypatch.setattr(scorer, "_SMALLEST", 16)
    monkeypatch.setattr(pooling, "_LARGE", 4)
    found, _, log = run(model, folder, threads, worker_memory=200_000)
    assert log.costs["score"].tasks > 10
    assert_same(found, expected)


def test_the_search_finds_the_share_of_neighbours_that_it_has_to(
    model, threads, few_cells, tmp_path
):
    rows = SETS["faces"]()
    _, first, _ = run(model, write_shards(tmp_path, rows), threads, n_parts=3)
    exact = next(iter(model.walk(rows))).graph
    assert first.graph.search.recall >= module.RECALL
    is_found = (first.graph.neighbours[:, :, None] == exact.neighbours[:, None]).any(axis=1)
    assert is_found.mean() > module.RECALL - 0.03


def test_partitions_follow_from_the_memory_of_a_worker():
    assert dealing.count_parts(1_000_000, 128, 4_000_000_000) == 1
    many = dealing.count_parts(100_000_000, 256, 4_000_000_000)
    assert 100_000_000 * 256 * 4 / many <= dealing.PART_SHARE * 4_000_000_000


def test_a_row_that_is_no_embedding_is_named_before_any_work(model, threads, tmp_path):
    rows = SETS["identities"]()
    folder = write_shards(tmp_path, rows)
    broken = np.load(folder / "part-001.npy")
    broken[7, 2] = np.nan
    np.save(folder / "part-001.npy", broken)
    with pytest.raises(FileFormatError, match=r"part-001\.npy.*row 7"):
        run(model, folder, threads)
    broken[7] = 0
    np.save(folder / "part-001.npy", broken)
    with pytest.raises(FileFormatError, match=r"part-001\.npy: row 7 is all zeros"):
        run(model, folder, threads)


def test_stages_are_recorded_with_rows_seconds_bytes_and_peaks(model, threads, tmp_path):
    rows = SETS["identities"]()
    _, _, log = run(model, write_shards(tmp_path, rows), threads, n_parts=3)
    found = log.to_dict()
    assert {one["stage"] for one in found["stages"]} == {"prepare", "search", "score", "pool"}
    assert found["engine"] == "threads"
    for one in found["stages"]:
        assert one["rows"] >= len(rows)
        assert one["bytes_moved"] > rows.nbytes / 10
        assert one["peak_bytes"] >= max(w["peak_bytes"] for w in one["workers"].values()) > 1e6


def test_the_published_method_is_refused(model, threads, tmp_path):
    log = StageLog(threads)
    points = ShardedPoints.of_shards(
        log, list_shards(str(write_shards(tmp_path, SETS["identities"]())))
    )
    settings = model.run_settings()
    wrong = type(settings)(method="paper")
    with pytest.raises(SettingError, match="'paper' cannot cluster shards"):
        walk_sharded(model.model_, points, wrong, ShardedSettings(), Work())


def test_neither_the_order_of_rows_nor_the_shards_change_the_result(
    model, threads, few_cells, tmp_path
):
    rows = SETS["identities"]()
    found, _, _ = run(model, write_shards(tmp_path / "a", rows), threads, n_parts=3)
    order = np.random.default_rng(5).permutation(len(rows))
    other, _, _ = run(model, write_shards(tmp_path / "b", rows[order], 5), threads, n_parts=2)
    for level in range(found.n_levels):
        np.testing.assert_array_equal(found.labels(level)[order], other.labels(level))
