"""Finding pictures: folders, lists, links, names of all kinds."""

import os

import pytest

from hilander.embedders.listing import list_pictures
from hilander.errors import MissingFileError
from hilander.io.writing import MARKER


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def test_folders_are_read_with_those_below_in_the_order_of_their_names(tmp_path):
    touch(tmp_path / "b.jpg", tmp_path / "a" / "c.PNG", tmp_path / "a" / "d" / "e.webp")
    listing = list_pictures([tmp_path])
    assert listing.names == ["a/c.PNG", "a/d/e.webp", "b.jpg"]
    assert listing.root == str(tmp_path)


def test_other_and_hidden_files_are_counted_and_left_out(tmp_path):
    touch(tmp_path / "a.jpg", tmp_path / "b.txt", tmp_path / ".c.jpg", tmp_path / ".d" / "e.jpg")
    listing = list_pictures([tmp_path])
    assert listing.names == ["a.jpg"]
    assert listing.n_ignored == 3


def test_a_folder_that_is_reached_twice_is_read_once(tmp_path):
    touch(tmp_path / "a" / "b.jpg")
    (tmp_path / "a" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "z").symlink_to(tmp_path / "a", target_is_directory=True)
    assert len(list_pictures([tmp_path]).names) == 1


def test_what_this_program_wrote_is_not_a_picture_of_the_user(tmp_path):
    touch(tmp_path / "a.jpg", tmp_path / "run" / MARKER, tmp_path / "run" / "x.png")
    touch(tmp_path / "run.explorer" / "thumbs" / "y.jpg")
    assert list_pictures([tmp_path]).names == ["a.jpg"]


def test_names_that_are_not_utf_8_are_found(tmp_path):
    name = os.fsdecode(b"caf\xe9.jpg")
    touch(tmp_path / name)
    assert list_pictures([tmp_path]).names == [name]


def test_a_list_names_files_relative_to_its_folder(tmp_path):
    touch(tmp_path / "x" / "a.jpg", tmp_path / "b.png")
    names = tmp_path / "x" / "list.txt"
    names.write_text(f"a.jpg\n\n../b.png\n{tmp_path}/x/a.jpg\n")
    listing = list_pictures([names])
    assert listing.names == ["b.png", "x/a.jpg"]
    assert listing.root == str(tmp_path)


def test_a_list_with_nul_may_hold_names_with_newlines(tmp_path):
    touch(tmp_path / "two\nlines.jpg", tmp_path / "b.jpg")
    (tmp_path / "list.txt").write_bytes(b"two\nlines.jpg\0b.jpg\0")
    assert list_pictures([tmp_path / "list.txt"]).names == ["b.jpg", "two\nlines.jpg"]


def test_several_paths_have_their_common_folder_as_root(tmp_path):
    touch(tmp_path / "x" / "a.jpg", tmp_path / "y" / "b.jpg")
    listing = list_pictures([tmp_path / "x", tmp_path / "y" / "b.jpg"])
    assert listing.root == str(tmp_path)
    assert listing.names == ["x/a.jpg", "y/b.jpg"]


def test_a_folder_that_cannot_be_read_is_skipped_with_its_reason(tmp_path, monkeypatch):
    touch(tmp_path / "a.jpg", tmp_path / "locked" / "b.jpg")
    scan = os.scandir

    def refuse(path):
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    listing = list_pictures([tmp_path])
    assert listing.names == ["a.jpg"]
    assert "Permission denied" in listing.skips[0].reason


def test_a_missing_path_is_an_error(tmp_path):
    with pytest.raises(MissingFileError, match=r"does not exist, expected pictures"):
        list_pictures([tmp_path / "none"])
