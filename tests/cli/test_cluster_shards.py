"""``hilander cluster`` of a folder of shards, and the commands that read such a run."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilander import HiLander
from hilander.cli.main import main
from hilander.engines.ray_engine import RayEngine
from hilander.engines.thread_engine import ThreadEngine
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.linkage.storage import PRETRAINED
from hilander.sharded.stage_log import StageLog
from hilander.synthetic import make_identities


@pytest.fixture(scope="module")
def labelled():
    return make_identities(n_identities=30, seed=4)


@pytest.fixture(scope="module")
def shards(labelled, tmp_path_factory):
    """Three Parquet shards with ids."""
    folder, rows = tmp_path_factory.mktemp("shards"), labelled[0]
    names = np.array([f"picture {n}" for n in range(len(rows))])
    for number, part in enumerate(np.array_split(np.arange(len(rows)), 3)):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows[part].ravel()), rows.shape[1])
        table = pa.table({"id": names[part], "embedding": vectors})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=50)
    return folder


@pytest.fixture(scope="module")
def run_folder(shards, tmp_path_factory):
    target = tmp_path_factory.mktemp("runs") / "RUN"
    assert main(["cluster", str(shards), "-o", str(target), "--workers", "2"]) == 0
    return target


def test_clusters_are_those_of_one_file_and_have_the_ids_of_the_shards(run_folder, labelled):
    expected = HiLander.load(PRETRAINED).cluster(labelled[0])
    parts = sorted((run_folder / "clusters").glob("*.parquet"))
    assert [one.name for one in parts] == [f"{n:06}-part-{n}.parquet" for n in range(3)]
    table = pa.concat_tables([pq.read_table(one) for one in parts])
    assert table.column("id").to_pylist()[:2] == ["picture 0", "picture 1"]
    assert np.array_equal(table.column("cluster").to_numpy(), expected.labels(-1))
    assert np.array_equal(table.column("level_0").to_numpy(), expected.labels(0))
    assert np.array_equal(Hierarchy.load(run_folder).labels(-1), expected.labels(-1))


def test_score_info_and_doubts_read_the_run(run_folder, labelled, tmp_path, capsys):
    order = np.random.default_rng(0).permutation(len(labelled[1]))
    lines = [f"picture {n},{labelled[1][n]}" for n in order]
    (tmp_path / "labels.csv").write_text("\n".join(["id,label", *lines]))
    labels = str(tmp_path / "labels.csv")
    assert main(["score", str(run_folder), "--labels", labels, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bcubed_f"] > 0.9
    assert main(["info", str(run_folder)]) == 0
    assert "600" in capsys.readouterr().out
    assert main(["doubts", str(run_folder), "--json"]) == 0
    assert "picture" in capsys.readouterr().out


def test_the_explorer_reads_the_ids_of_all_shards(run_folder):
    from hilander.explorer.run.items import read_items

    items = read_items(run_folder, 600)
    assert items.row_by_id["picture 599"] == 599


def test_run_json_has_rows_seconds_bytes_and_memory_of_stages_and_workers(run_folder):
    found = json.loads((run_folder / "run.json").read_text())
    assert found["input"]["shards"] == 3
    stages = {one["stage"]: one for one in found["engine"]["stages"]}
    assert set(stages) == {"prepare", "search", "score", "pool", "write"}
    assert stages["search"]["rows"] >= 600
    assert all(one["peak_bytes"] > 0 and one["seconds"] > 0 for one in stages.values())
    assert found["engine"]["driver_peak_bytes"] > 0


def test_quality_names_clusters_by_the_ids_of_their_peaks(run_folder):
    table = pq.read_table(run_folder / "cluster_quality.parquet")
    peaks = Hierarchy.load(run_folder).peaks(-1)
    assert table.column("peak").to_pylist() == [f"picture {n}" for n in peaks]


def test_ray_gives_the_same_run(shards, run_folder, tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'hilander[ray]'")
    target = tmp_path / "RUN"
    options = ["--engine", "ray", "--workers", "1", "--worker-memory", "200KB", "--quiet"]
    assert main(["cluster", str(shards), "-o", str(target), *options]) == 0
    for name in ("hierarchy.npz", "graph.npz"):
        with np.load(target / name) as found, np.load(run_folder / name) as expected:
            assert set(found.files) == set(expected.files)
            for one in set(expected.files) - {"search"}:
                np.testing.assert_array_equal(found[one], expected[one])
    import ray

    assert not ray.is_initialized()  # it was started for the run


def test_a_run_that_was_stopped_goes_on_from_the_stages_that_were_done(
    shards, run_folder, tmp_path, monkeypatch, capsys
):
    target, whole = tmp_path / "RUN", StageLog.run

    def stop_at_pool(self, stage, *args):
        if stage == "pool":
            raise KeyboardInterrupt
        return whole(self, stage, *args)

    monkeypatch.setattr(StageLog, "run", stop_at_pool)
    assert main(["cluster", str(shards), "-o", str(target)]) != 0
    assert not target.exists()
    monkeypatch.setattr(StageLog, "run", whole)
    assert main(["cluster", str(shards), "-o", str(target)]) == 0
    assert "resuming from" in capsys.readouterr().out
    found = json.loads((target / "run.json").read_text())
    assert "search" not in {one["stage"] for one in found["engine"]["stages"]}
    assert not target.with_name("RUN.work").exists()
    with (
        np.load(target / "hierarchy.npz") as one,
        np.load(run_folder / "hierarchy.npz") as other,
    ):
        for name in other.files:
            np.testing.assert_array_equal(one[name], other[name])


def test_options_for_one_file_are_refused(shards, tmp_path, capsys):
    for option in (["--graph", "g.npz"], ["--memory", "4GB"], ["--early-stop"]):
        assert main(["cluster", str(shards), "-o", str(tmp_path / "R"), *option]) == 2
        assert option[0] in capsys.readouterr().err
    assert main(["cluster", str(shards), "-o", str(tmp_path / "R"), "--address", "auto"]) == 2
    assert "--engine ray" in capsys.readouterr().err


def test_a_shard_that_cannot_be_read_is_named_and_nothing_is_written(shards, tmp_path, capsys):
    folder = tmp_path / "shards"
    folder.mkdir()
    for one in shards.iterdir():
        (folder / one.name).write_bytes(one.read_bytes())
    (folder / "part-1.parquet").write_bytes(b"PAR1 is all that is left")
    assert main(["cluster", str(folder), "-o", str(tmp_path / "R")]) == 2
    assert "part-1.parquet cannot be read" in capsys.readouterr().err
    assert not list(tmp_path.glob("R*"))


def test_python_clusters_a_folder_or_an_array_on_an_engine(shards, labelled):
    model = HiLander.load(PRETRAINED)
    expected = model.cluster(labelled[0])
    two, one = ThreadEngine(2), ThreadEngine(1)
    for source, engine in ((str(shards), None), (shards, two), (labelled[0], one)):
        found = model.cluster(source, engine=engine)
        assert np.array_equal(found.labels(-1), expected.labels(-1))
        assert np.array_equal(found.cut(p=0.5), expected.cut(p=0.5))
    with pytest.raises(ValueError, match="memory cannot be used"):
        model.cluster(shards, memory="4GB")


def test_engines_take_the_memory_of_a_worker():
    assert ThreadEngine(worker_memory="2GB").worker_memory == 2_000_000_000
    assert RayEngine(worker_memory="1GiB").worker_memory == 1 << 30
