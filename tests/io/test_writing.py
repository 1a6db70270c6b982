import errno
import json
import os

import numpy as np
import pytest

from hilander.errors import FileFormatError, OutputError
from hilander.io import swapping
from hilander.io.writing import (
    check_folder_kind,
    claim_folder,
    folder_writer,
    read_json,
    write_atomically,
    write_json,
)


def fail_with(number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    return fail


def listing(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_complete_and_no_temporary_remains(tmp_path):
    target = tmp_path / "a.csv"
    with write_atomically(target) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".csv"
        temporary.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert listing(tmp_path) == ["a.csv"]


@pytest.mark.parametrize(
    ("number", "fix"),
    [
        (errno.ENOSPC, "disk is full; free some space"),
        (errno.EROFS, "read-only; write elsewhere"),
        (errno.EACCES, "permission is denied"),
        (errno.EIO, "write elsewhere"),
    ],
)
@pytest.mark.parametrize("where", ["in the block", "at the end"])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, number, fix, where):
    target = tmp_path / "a.txt"
    target.write_text("old")
    fail = fail_with(number)

    def write():
        with write_atomically(target) as temporary:
            temporary.write_text("half")
            if where == "in the block":
                fail()

    if where == "at the end":
        monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OutputError, match=f"a.txt cannot be written.*{fix}"):
        write()
    assert target.read_text() == "old"
    assert listing(tmp_path) == ["a.txt"]


def test_an_error_of_the_caller_is_passed_on_and_no_file_remains(tmp_path):
    def write():
        with write_atomically(tmp_path / "a.txt") as temporary:
            temporary.write_text("half")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        write()
    assert listing(tmp_path) == []


def test_the_target_of_a_link_is_written(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    with write_atomically(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_path_that_cannot_be_a_file_is_refused(tmp_path):
    def write(path):
        with write_atomically(path) as temporary:
            temporary.write_text("x")

    with pytest.raises(OutputError, match="is not a regular file"):
        write(tmp_path)
    with pytest.raises(OutputError, match="folder above it does not exist"):
        write(tmp_path / "no" / "a.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="a part of the path is a file"):
        write(tmp_path / "file" / "a.txt")


def test_a_new_empty_or_own_folder_is_claimed(tmp_path):
    for folder in (tmp_path / "a" / "b", tmp_path / "empty"):
        if folder.name == "empty":
            folder.mkdir()
        for _ in range(2):
            assert claim_folder(folder, "run") == folder
        assert check_folder_kind(folder, "run") == folder


@pytest.mark.parametrize("use", ["claim", "write"])
def test_a_folder_of_another_program_is_refused(tmp_path, use):
    def take(path, kind):
        if use == "claim":
            claim_folder(path, kind)
        else:
            with folder_writer(path, kind):
                pass

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="not written by hilander; choose another folder or emp"):
        take(foreign, "run")
    (foreign / "hilander.json").write_text("[1]")
    with pytest.raises(OutputError, match="not written by hilander"):
        take(foreign, "run")
    assert (foreign / "thesis.tex").read_text() == "years of work"
    claim_folder(tmp_path / "model", "model")
    with pytest.raises(OutputError, match="is a model folder, expected a run folder"):
        take(tmp_path / "model", "run")
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="is a file, expected a folder"):
        take(tmp_path / "file", "run")


def write_model(path, **files):
    with folder_writer(path, "model") as inside:
        for name, text in files.items():
            (inside / name).write_text(text)


def test_a_replaced_folder_keeps_only_files_of_others(tmp_path):
    target = tmp_path / "m"
    write_model(target, weights="1", extra="1")
    (target / "notes").write_text("mine")
    (target / "plots").mkdir()
    (target / "plots" / "a").write_text("mine")
    write_model(target, weights="2")
    assert listing(target) == ["hilander.json", "notes", "plots", "weights"]
    assert (target / "weights").read_text() == "2"
    assert (target / "plots" / "a").read_text() == "mine"
    assert listing(tmp_path) == ["m"]
    check_folder_kind(target, "model")


@pytest.mark.parametrize("where", ["in the block", "exchange", "first rename", "second rename"])
def test_a_failed_folder_leaves_the_old_one_unchanged(tmp_path, monkeypatch, where):
    target = tmp_path / "m"
    write_model(target, weights="old", other="old")
    before = {path.name: path.read_text() for path in target.iterdir()}
    real, calls = os.rename, []

    def rename(source, destination):
        calls.append(source)
        if len(calls) == {"first rename": 1, "second rename": 2}.get(where):
            fail_with(errno.ENOSPC)()
        real(source, destination)

    monkeypatch.setattr(os, "rename", rename)
    exchange = fail_with(errno.ENOSPC) if where == "exchange" else lambda *_: False
    monkeypatch.setattr(swapping, "exchange", exchange)

    def write():
        with folder_writer(target, "model") as inside:
            (inside / "weights").write_text("new")
            if where == "in the block":
                fail_with(errno.ENOSPC)()

    with pytest.raises(OutputError, match="disk is full"):
        write()
    assert {path.name: path.read_text() for path in target.iterdir()} == before
    assert listing(tmp_path) == ["m"]


def test_a_folder_of_another_kind_is_not_read(tmp_path):
    with pytest.raises(FileFormatError, match="does not exist, expected a model folder"):
        check_folder_kind(tmp_path / "no", "model")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileFormatError, match="is a file, expected a model folder"):
        check_folder_kind(tmp_path / "file", "model")
    with pytest.raises(FileFormatError, match=r"has no hilander.json"):
        check_folder_kind(tmp_path, "model")
    folder = claim_folder(tmp_path / "run", "run")
    with pytest.raises(FileFormatError, match="is a run folder, expected a model folder"):
        check_folder_kind(folder, "model")
    write_json(folder / "hilander.json", {"hilander": "run", "format": 99})
    with pytest.raises(FileFormatError, match=r"has format 99.*upgrade"):
        check_folder_kind(folder, "run")


def test_json_has_plain_numbers_and_null_for_nan(tmp_path):
    content = {"a": np.float32(0.5), "b": np.arange(2), "c": float("nan"), "d": ("é", None, True)}
    write_json(tmp_path / "a.json", content)
    expected = {"a": 0.5, "b": [0, 1], "c": None, "d": ["é", None, True]}
    assert read_json(tmp_path / "a.json") == expected
    json.loads((tmp_path / "a.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"\xff\xfe", b"[" * 200_000])
def test_damaged_json_is_refused(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"a.json is damaged"):
        read_json(tmp_path / "a.json")


def test_missing_json_is_refused(tmp_path):
    with pytest.raises(FileFormatError, match="does not exist"):
        read_json(tmp_path / "a.json")
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_json(tmp_path)
