"""Run folders: complete, minimal and damaged ones."""

import json
import shutil

import numpy as np
import pytest

from hilander.errors import FileFormatError, SettingError
from hilander.explorer.run.images import NoImages, ThumbnailArray
from hilander.explorer.run.mapped_npz import map_npz
from hilander.explorer.run.run_folder import Attachments, open_run
from hilander.io.writing import read_json


def test_an_uncompressed_npz_is_mapped_and_a_compressed_one_read(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.normal(size=(7, 3)).astype(np.float32),
        "b/c": np.arange(5),
        "none": np.empty((0, 4)),
        "one": np.array(3),
        "f": np.asfortranarray(rng.normal(size=(4, 6))),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **arrays)
        found = map_npz(tmp_path / "x.npz")
        assert set(found) == set(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
        assert isinstance(found["a"], np.memmap) == (save is np.savez)


def test_python_objects_in_an_npz_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.array([{}], dtype=object))
    with pytest.raises(FileFormatError, match="damaged"):
        map_npz(tmp_path / "x.npz")


def test_a_run_without_optional_files_opens(make_run):
    run = open_run(make_run("bare", bare=True))
    assert run.graph is None
    assert run.peak_features is None
    assert run.items.labels is None
    assert isinstance(run.images, NoImages)
    assert run.notes == ()


def test_a_complete_run_has_graph_labels_images_and_features(run_folder):
    run = open_run(run_folder)
    assert run.graph.k == 6
    assert len(run.items.labels.names) == 14
    assert isinstance(run.images, ThumbnailArray)
    points, features = run.peak_features
    np.testing.assert_array_equal(points, run.hierarchy.peaks(0))
    assert features.shape == (len(points), 12)


@pytest.mark.parametrize("name", ["graph.npz", "run.json", "thumbs.npy"])
def test_a_damaged_optional_file_becomes_a_note(run_folder, name):
    (run_folder / name).write_bytes(b"\x00 not this")
    run = open_run(run_folder)
    assert len(run.notes) == 1
    assert name in run.notes[0]


@pytest.mark.parametrize("name", ["hierarchy.npz", "clusters.parquet", "hilander.json"])
def test_a_damaged_required_file_is_an_error(run_folder, name):
    (run_folder / name).write_bytes(b"\x00 not this")
    with pytest.raises(FileFormatError, match=name.replace(".", r"\.")):
        open_run(run_folder)


@pytest.mark.parametrize("array", ["parent", "labels"])
def test_a_hierarchy_with_an_index_out_of_range_is_refused(run_folder, array):
    with np.load(run_folder / "hierarchy.npz") as arrays:
        kept = dict(arrays)
    not_a_peak = int(np.setdiff1d(np.arange(len(kept["0/labels"])), kept["0/peaks"])[0])
    kept[f"0/{array}"][not_a_peak] = 10_000
    np.savez(run_folder / "hierarchy.npz", **kept)
    with pytest.raises(FileFormatError, match="points outside"):
        open_run(run_folder)


def test_a_table_of_other_length_is_refused(run_folder, make_run):
    other = make_run("other", bare=True, ids=None, seed=3)
    import pyarrow.parquet as parquet

    shorter = parquet.read_table(other / "clusters.parquet").slice(0, 10)
    parquet.write_table(shorter, run_folder / "clusters.parquet")
    with pytest.raises(FileFormatError, match="10 rows"):
        open_run(run_folder)


def test_images_given_by_the_user_must_match_the_points(run_folder, tmp_path):
    np.save(tmp_path / "few.npy", np.zeros((3, 4, 4), dtype=np.uint8))
    with pytest.raises(FileFormatError, match="3 images"):
        open_run(run_folder, Attachments(thumbs=tmp_path / "few.npy"))
    np.save(tmp_path / "real.npy", np.zeros((252, 4, 4)))
    with pytest.raises(SettingError, match="uint8"):
        open_run(run_folder, Attachments(thumbs=tmp_path / "real.npy"))


def test_the_fingerprint_depends_on_the_clustering_alone(make_run, tmp_path):
    first = open_run(make_run("a", seed=1))
    copied = tmp_path / "b"
    shutil.copytree(first.folder, copied)
    described = read_json(copied / "run.json")
    (copied / "run.json").write_text(json.dumps({**described, "more": 1}))
    assert open_run(copied).fingerprint == first.fingerprint
    assert open_run(make_run("c", seed=1, p_tau=0.9)).fingerprint != first.fingerprint


def test_exact_ids_are_found_before_ids_that_contain_the_text(run_folder):
    items = open_run(run_folder).items
    assert items.find("item-0012", 5) == [12]
    assert items.find("ITEM-001", 3) == [10, 11, 12]
    assert items.find("nothing", 3) == []
