"""`hilander doubts` and the file of cluster quality, on a run of the command line."""

import csv
import io
import json

import numpy as np
import pytest

from hilander.cli.main import main
from hilander.hierarchy.doubts import find_doubtful_merges, find_merge_candidates
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.quality import QUALITY_FILE, measure_quality
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.storage import (
    RUN_KIND,
    load_scored_graph,
    write_hierarchy,
    write_scored_graph,
)
from hilander.io.parquet import read_parquet_column
from hilander.io.writing import folder_writer
from hilander.synthetic.identities import make_identities
from tests.scorers import score_by_affinity


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory):
    """A run of several levels, whose merges have low linkage."""
    folder = tmp_path_factory.mktemp("doubtful") / "run"
    X, _ = make_identities(n_identities=20, size=15, dim=16, spread=0.8, seed=3)
    steps = list(walk_levels(X, score_by_affinity, Rules(k=2, p_tau=0.3)))
    ids = np.array([f"face-{number}" for number in range(len(X))])
    with folder_writer(folder, RUN_KIND) as inside:
        write_hierarchy(Hierarchy.of_steps(steps), inside, ids)
        write_scored_graph(steps[0], inside)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("doubts")
    X, y = make_identities(n_identities=20, size=10, dim=8, spread=1.0, seed=0)
    ids = np.array([f"face-{number}" for number in range(len(X))])
    np.savez(folder / "emb.npz", features=X, labels=y, ids=ids)
    common = [str(folder / "emb.npz"), "--quiet"]
    options = ["--method", "paper", "--epochs", "2", "--hidden", "8", "--k", "5", "--p-tau", "0.5"]
    assert main(["train", *common, "-o", str(folder / "model"), *options]) == 0
    assert main(["cluster", *common, "-m", str(folder / "model"), "-o", str(folder / "run")]) == 0
    return folder / "run"


def test_json_lists_the_doubts_of_the_library_by_id(doubtful, capsys):
    assert main(["doubts", str(doubtful), "--top", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    hierarchy = Hierarchy.load(doubtful)
    graph, scores = load_scored_graph(doubtful)
    merges = find_doubtful_merges(hierarchy, 5)
    pairs = find_merge_candidates(hierarchy, graph.neighbours, scores.linkage, 5)
    assert merges
    assert pairs
    assert len(found["merges"]) == len(merges)
    assert len(found["splits"]) == len(pairs)
    sizes = hierarchy.sizes(-1)
    for row, doubt in zip(found["merges"] + found["splits"], merges + pairs, strict=True):
        assert (row["a"], row["b"]) == (f"face-{doubt.a}", f"face-{doubt.b}")
        assert row["linkage"] == pytest.approx(doubt.linkage, abs=1e-4)
    for row in found["splits"]:
        assert row["cluster_a"] != row["cluster_b"]
        assert row["size_a"] == sizes[row["cluster_a"]]
    for row in found["merges"]:
        assert row["cluster_a"] == row["cluster_b"]


def test_csv_and_table_have_the_same_rows(doubtful, capsys):
    assert main(["doubts", str(doubtful), "--top", "3", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["kind"] for row in rows} <= {"merge", "split"}
    assert main(["doubts", str(doubtful), "--top", "3"]) == 0
    text = capsys.readouterr().out
    assert all(row["a"] in text and row["b"] in text for row in rows)
    assert "may be one identity" in text


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    assert main(["doubts", str(tmp_path)]) == 2
    assert "hilander: error" in capsys.readouterr().err


def test_a_run_without_its_graph_is_refused(doubtful, tmp_path, capsys):
    import shutil

    copy = tmp_path / "run"
    shutil.copytree(doubtful, copy)
    (copy / "graph.npz").unlink()
    assert main(["doubts", str(copy)]) == 2
    assert "graph.npz" in capsys.readouterr().err


def test_the_run_holds_the_quality_of_each_final_cluster(run):
    graph, scores = load_scored_graph(run)
    hierarchy = Hierarchy.load(run)
    measured = measure_quality(graph.neighbours, scores.linkage, hierarchy.labels(-1))
    written = read_parquet_column(run / QUALITY_FILE, "quality", ())
    np.testing.assert_array_equal(written, measured.quality)
    peaks = read_parquet_column(run / QUALITY_FILE, "peak", ())
    assert list(peaks) == [f"face-{point}" for point in hierarchy.peaks(-1)]


def test_cluster_applies_the_decoder_and_records_it(run, capsys):
    folder = run.parent
    there = ["-m", str(folder / "model"), "-o", str(folder / "other"), "--decoder", "contract"]
    assert main(["cluster", str(folder / "emb.npz"), "--quiet", *there]) == 0
    found = json.loads((folder / "other" / "run.json").read_text(encoding="utf-8"))
    assert found["settings"]["decoder"] == "contract"
    before = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert before["settings"]["decoder"] == "parents"
