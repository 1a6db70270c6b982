import json

import numpy as np
import pyarrow.parquet
import pytest

from hilander import Hierarchy
from hilander.errors import FileFormatError, OutputError
from hilander.hierarchy.storage import HIERARCHY_FILE


@pytest.fixture
def run(hierarchy, tmp_path):
    return hierarchy.save(tmp_path / "run")


def test_save_then_load_is_bit_equal(hierarchy, run):
    again = Hierarchy.load(run)
    assert again.n_levels == hierarchy.n_levels
    for one, two in zip(hierarchy.levels, again.levels, strict=True):
        for name in ("parent", "linkage", "density", "labels", "peaks"):
            assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
            assert getattr(one, name).dtype == getattr(two, name).dtype
        assert one.stops_early is two.stops_early
    np.testing.assert_array_equal(again.confidence, hierarchy.confidence)


def test_a_run_folder_has_one_row_for_each_point(hierarchy, tmp_path):
    ids = [f"p{i}" for i in range(hierarchy.n_points)]
    folder = hierarchy.save(tmp_path / "run", ids)
    table = pyarrow.parquet.read_table(folder / "clusters.parquet")
    assert table["id"].to_pylist() == ids
    np.testing.assert_array_equal(table["cluster"].to_numpy(), hierarchy.labels())


def test_saving_again_replaces_and_leaves_nothing_beside(hierarchy, run):
    hierarchy.save(run)
    assert [item.name for item in run.parent.iterdir()] == ["run"]
    assert Hierarchy.load(run).n_levels == hierarchy.n_levels


def test_a_folder_of_someone_else_is_not_written_to(hierarchy, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(OutputError, match="was not written by hilander"):
        hierarchy.save(tmp_path / "thesis")
    assert [item.name for item in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"nowhere does not exist"):
        Hierarchy.load(tmp_path / "nowhere")


def test_a_foreign_folder_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="expected a run folder written by hilander"):
        Hierarchy.load(tmp_path)


def test_a_model_folder_is_not_a_run(run):
    marker = run / "hilander.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "hilander": "model"}))
    with pytest.raises(FileFormatError, match="is a model folder, expected a run folder"):
        Hierarchy.load(run)


def test_a_run_without_its_hierarchy_is_refused(run):
    (run / HIERARCHY_FILE).unlink()
    with pytest.raises(FileFormatError, match=r"hierarchy\.npz does not exist"):
        Hierarchy.load(run)


def test_a_hierarchy_cut_short_at_any_point_is_refused(run):
    path = run / HIERARCHY_FILE
    whole = path.read_bytes()
    for length in range(0, len(whole), 251):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match="is damaged"):
            Hierarchy.load(run)


@pytest.mark.parametrize("name", ["0/labels", "0/peaks", "1/parent"])
def test_arrays_that_do_not_fit_each_other_are_refused(run, name):
    path = run / HIERARCHY_FILE
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, name: arrays[name][:-1]})
    with pytest.raises(FileFormatError, match="is damaged"):
        Hierarchy.load(run)
