import json
import time

import numpy as np
import pytest

from benchmarks import scale, scale_worker
from benchmarks.rows import read_rows
from benchmarks.scale_data import (
    HUGE,
    PURITY_K,
    find_exact_neighbours,
    make_points,
    make_training,
    sample_rows,
)
from benchmarks.scale_page import PAGE, TEXT, find, latest, render
from hilander import HiLander
from hilander.comparison.runner import Limits
from hilander.knn.search import build_knn_graph

LIMITS = Limits(300, 4 * 2**30, 1)


def test_the_page_of_scale_is_drawn_from_its_rows():
    text = render(read_rows(scale.ROWS), TEXT.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == text, "run python -m benchmarks.scale render"


def test_the_points_of_every_row_are_as_pure_as_real_faces():
    for row in read_rows(scale.ROWS):
        if "purity" in row:
            assert 0.85 <= row["purity"] <= 0.95, row["dataset"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("scale")


@pytest.fixture(scope="module")
def points(place):
    return make_points(900, folder=place)


@pytest.fixture(scope="module")
def model(place):
    features, labels = make_training(600, 128)
    HiLander(epochs=1, hidden=8, k=8, p_tau=0.5, whiten=False).fit(features, labels).save(
        place / "model"
    )
    return place / "model"


def test_points_are_made_once_and_described(points, place):
    again = make_points(900, folder=place)
    assert again.facts == points.facts
    features = np.load(points.features)
    labels = np.load(points.labels)
    graph = build_knn_graph(features, PURITY_K)
    rows = sample_rows(len(features))
    purity = (labels[graph.neighbours[rows]] == labels[rows, None]).mean()
    assert points.facts["purity"] == pytest.approx(purity, abs=0.002)
    assert points.facts["within"][2] > points.facts["between"][4]


def test_exact_neighbours_are_found_block_by_block(points, monkeypatch):
    features = np.load(points.features)
    expected = build_knn_graph(features, 6)
    monkeypatch.setattr("hilander.arrays.rows._BLOCK_VALUES", 900 * 8 * 100)
    rows, found = find_exact_neighbours(features, 6)
    np.testing.assert_array_equal(found, expected.neighbours[rows])


def test_the_huge_set_is_written_in_parts_of_other_identities(place, monkeypatch):
    monkeypatch.setattr("benchmarks.scale_data.HUGE_PART", 700)
    huge = make_points(1_500, huge=True, folder=place)
    features, labels = np.load(huge.features), np.load(huge.labels)
    assert features.dtype == np.float16
    assert features.shape == (1_500, HUGE.dim)
    parts = [set(labels[start : start + 700].tolist()) for start in (0, 700, 1_400)]
    assert not parts[0] & parts[1]
    assert not parts[1] & parts[2]
    assert labels.max() + 1 == sum(map(len, parts))


def test_ours_gives_a_row_with_stages_memory_recall_and_scores(points, model):
    row = scale.measure("hilander (default)", points, LIMITS, model=model, memory="8GB")
    assert row["error"] is None
    assert {"prepare", "search", "score", "decode", "pool", "write"} <= set(row["stages"])
    assert sum(row["stages"].values()) == pytest.approx(row["seconds"], rel=0.5)
    assert (row["recall"], row["same_recall"]) == (1.0, 1.0)
    assert row["peak_memory"] > 10**8
    assert 0 < row["bcubed_f"] <= 1
    assert {"commit", "machine", "dataset_hash", "cpu_seconds", "purity", "threads"} <= set(row)
    json.dumps(row)


def test_the_first_run_of_a_rival_that_compiles_itself_is_measured_apart(points, monkeypatch):
    seen = []

    def cluster(job, features, watch):
        seen.append((len(features), job["n_identities"]))
        time.sleep(0.05)
        return np.zeros(len(features), dtype=np.int64), {}

    monkeypatch.setattr(scale_worker, "cluster_by_rival", cluster)
    monkeypatch.setattr(scale_worker, "_FIRST_POINTS", 300)
    job = {
        "kind": "rival",
        "method": "fast_hdbscan",
        "features": str(points.features),
        "n_identities": 70,
    }
    assert scale_worker.measure_compilation(job) >= 0.05
    assert seen == [(300, 20)]
    assert scale_worker.measure_compilation(job | {"method": "EVoC"}) == 0
    assert len(seen) == 1


def test_a_rival_gives_a_row_and_one_that_passes_a_limit_an_error(points):
    row = scale.measure("FINCH", points, LIMITS, model=None)
    assert row["error"] is None
    assert row["n_clusters"] > 1
    row = scale.measure("FINCH", points, Limits(0.2, 4 * 2**30, 1), model=None)
    assert row["error"] == "time limit: more than 0 s"


def test_unknown_options_of_the_command_are_refused(capsys):
    with pytest.raises(SystemExit):
        scale.main(["run", "--methods", "magic"])
    assert "invalid choice" in capsys.readouterr().err


ROW = {
    "dataset": "imdb-like-200000", "dataset_hash": "x", "method": "hilander (paper)", "n": 200_000,
    "d": 128, "n_identities": 8_000, "purity": 0.9, "within": [0.4] * 5, "between": [0.0] * 5,
    "k": 10, "seconds": 30.0, "cpu_seconds": 60.0, "peak_memory": 10**9, "recall": 0.96,
    "same_recall": 0.99, "pairwise_f": 0.7, "bcubed_f": 0.8, "nmi": 0.9, "n_clusters": 9_000,
    "stages": {"search": 20.0, "score": 9.0, "decode": 1.0}, "stage_memory": {"search": 10**9},
    "commit": "c", "machine": "m", "threads": 2, "load": 1.0, "memory_budget": None, "error": None,
}  # fmt: skip


def test_the_last_row_counts_but_an_error_does_not_replace_a_result():
    newer, failed = {**ROW, "seconds": 20.0}, {**ROW, "error": "time limit"}
    assert latest([ROW, newer, failed]) == [newer]
    assert latest([failed, ROW]) == [ROW]
    assert find([failed], ROW["method"], 0, 10**9) is None


def test_the_table_of_targets_holds_values_of_the_rows():
    larger = {**ROW, "n": 1_270_000, "dataset": "imdb-like-1270000", "seconds": 240.0}
    larger = {**larger, "cpu_seconds": 450.0, "peak_memory": 4 * 10**9}
    larger = {**larger, "stages": {"score": 63.5, "decode": 2.54}}
    finch = {**ROW, "method": "FINCH", "seconds": 20.0, "k": None, "recall": None}
    huge = {**ROW, "n": 5_200_000, "dataset": "ms1m-like-5200000", "seconds": 3_600.0}
    text = render([ROW, larger, finch, huge], "# Scale")
    assert "1/11.5 (60 CPU-s), recall 0.960" in text
    assert "hilander (paper): 4.0 min, 4.0 GB" in text
    assert "50 s and 2.0 s" in text
    assert "time 8.0 times (CPU-seconds 7.5), memory 4.0 times" in text
    assert "1.50 of FINCH" in text
    assert "hilander (paper): 60 min (1 CPU-min), 0.9 GiB" in text
    assert "| training on 100 k x 128 | at most 15 minutes | not measured yet |" in text


def test_a_page_without_rows_has_a_note():
    assert render([], "# Scale").endswith("No run has been recorded yet.\n")


def test_the_chart_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks.scale_page import draw_chart

    draw_chart([ROW, {**ROW, "n": 20_000, "dataset": "imdb-like-20000"}], tmp_path / "c.png")
    assert (tmp_path / "c.png").stat().st_size > 10_000
