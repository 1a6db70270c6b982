"""Files that are not as they were written are refused."""

import json

import pytest

from hilander.errors import FileFormatError
from hilander.io import digests
from hilander.io.digests import skip_verification
from hilander.io.writing import MARKER, folder_writer, open_stored_folder, write_json


@pytest.fixture
def folder(tmp_path):
    with folder_writer(tmp_path / "run", "run") as inside:
        (inside / "a").write_bytes(bytes(range(200)))
        (inside / "sub").mkdir()
        (inside / "sub" / "b").write_text("b")
    return tmp_path / "run"


def test_size_and_digest_of_every_file_are_listed(folder):
    listed = json.loads((folder / MARKER).read_text())["files"]
    assert {name: entry["size"] for name, entry in listed.items()} == {"a": 200, "sub/b": 1}
    files = open_stored_folder(folder, "run")
    for name in listed:
        assert files.check(name) == folder / name


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_changed_file_is_refused_and_named(folder, damage):
    content = bytearray((folder / "a").read_bytes())
    content[100] ^= 1
    if damage == "remove":
        (folder / "a").unlink()
    else:
        (folder / "a").write_bytes(content if damage == "flip" else content[:150])
    with pytest.raises(FileFormatError, match=r"run/a .*restore the folder or write it again"):
        open_stored_folder(folder, "run").check("a")
    open_stored_folder(folder, "run").check("sub/b")
    with skip_verification():
        assert open_stored_folder(folder, "run").check("a") == folder / "a"
    with skip_verification(False), pytest.raises(FileFormatError):
        open_stored_folder(folder, "run").check("a")


def test_a_folder_that_is_replaced_while_it_is_read_is_found_out(folder):
    files = open_stored_folder(folder, "run")
    with folder_writer(folder, "run") as inside:
        (inside / "a").write_text("of another run")
    with pytest.raises(FileFormatError, match="run/a is damaged or was changed"):
        files.check("a")


def test_folders_without_digests_and_files_of_the_user_are_read(folder):
    (folder / "mine").write_text("mine")
    open_stored_folder(folder, "run").check("mine")
    write_json(folder / MARKER, {"hilander": "run", "format": 1, "files": ["a"]})
    (folder / "a").write_text("changed")
    open_stored_folder(folder, "run").check("a")
    write_json(folder / MARKER, {"hilander": "run", "format": 1})
    open_stored_folder(folder, "run").check("a")


def test_a_file_is_digested_once(folder, monkeypatch):
    files = open_stored_folder(folder, "run")
    files.check("a")
    monkeypatch.setattr(digests, "digest_file", pytest.fail)
    files.check("a")


@pytest.mark.parametrize(
    "files", [3, [1], {"a": 3}, {"a": {"size": "1", "blake2b": "x"}}, {"a": {"size": 1}}]
)
def test_a_marker_of_another_form_is_refused(folder, files):
    write_json(folder / MARKER, {"hilander": "run", "format": 1, "files": files})
    with pytest.raises(FileFormatError, match=r"hilander.json does not hold what it should"):
        open_stored_folder(folder, "run")
