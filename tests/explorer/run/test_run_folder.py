"""Run folders: complete, minimal and damaged ones."""

import json
import shutil

import numpy as np
import pytest

from hilander.errors import FileFormatError, SettingError
from hilander.explorer.run.images import NoImages, ThumbnailArray
from hilander.explorer.run.run_folder import Attachments, open_run
from hilander.io.digests import skip_verification
from hilander.io.writing import read_json


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
    with skip_verification(), pytest.raises(FileFormatError, match="points outside"):
        open_run(run_folder)


def test_a_table_of_other_length_is_refused(run_folder, make_run):
    other = make_run("other", bare=True, ids=None, seed=3)
    import pyarrow.parquet as parquet

    shorter = parquet.read_table(other / "clusters.parquet").slice(0, 10)
    parquet.write_table(shorter, run_folder / "clusters.parquet")
    with skip_verification(), pytest.raises(FileFormatError, match="10 rows"):
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
