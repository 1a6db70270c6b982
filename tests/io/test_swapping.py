"""A folder is replaced in one step, and what killed writers left is removed."""

import errno
import os
import threading

import pytest

from hilander.io import swapping
from hilander.io.hidden_names import find_temporaries, lock_path, temporary_sibling
from hilander.io.swapping import exchange, put_in_place, recover_output
from hilander.io.writing import folder_writer


def make(folder, text):
    folder.mkdir()
    (folder / "a").write_text(text)
    return folder


def can_exchange(folder):
    return exchange(make(folder / "one", "1"), make(folder / "two", "2"))


def test_two_names_are_exchanged(tmp_path):
    if not can_exchange(tmp_path):
        pytest.skip("this file system cannot exchange names")
    assert (tmp_path / "one" / "a").read_text() == "2"
    assert (tmp_path / "two" / "a").read_text() == "1"


@pytest.mark.parametrize("one_step", [True, False])
def test_the_new_folder_has_the_name_and_the_former_is_gone(tmp_path, monkeypatch, one_step):
    if not one_step:
        monkeypatch.setattr(swapping, "exchange", lambda *_: False)
    for text in ("1", "2"):
        put_in_place(make(temporary_sibling(tmp_path / "run"), text), tmp_path / "run")
        assert (tmp_path / "run" / "a").read_text() == text
        assert os.listdir(tmp_path) == ["run"]


def test_a_reader_finds_a_folder_at_every_moment_of_many_replacements(tmp_path):
    (tmp_path / "try").mkdir()
    if not can_exchange(tmp_path / "try"):
        pytest.skip("this file system cannot exchange names")
    target, missing, done = tmp_path / "run", [], threading.Event()
    make(target, "0")

    def watch():
        while not done.is_set():
            if not target.is_dir():
                missing.append(1)

    thread = threading.Thread(target=watch)
    thread.start()
    for number in range(300):
        put_in_place(make(temporary_sibling(target), str(number)), target)
    done.set()
    thread.join()
    assert not missing


def test_a_kernel_without_the_call_is_told_from_an_error(tmp_path):
    with pytest.raises(OSError) as caught:  # noqa: PT011
        exchange(tmp_path / "no", tmp_path / "none")
    assert caught.value.errno == errno.ENOENT


def test_a_folder_that_was_set_aside_gets_its_name_back(tmp_path):
    target = tmp_path / "run"
    aside = temporary_sibling(target)
    make(aside.with_name(aside.name + ".old"), "former")
    make(temporary_sibling(target), "half")
    recover_output(target)
    assert (target / "a").read_text() == "former"
    assert os.listdir(tmp_path) == ["run"]


def test_a_folder_that_is_there_is_kept_and_the_one_set_aside_removed(tmp_path):
    target = make(tmp_path / "run", "new")
    aside = temporary_sibling(target)
    make(aside.with_name(aside.name + ".old"), "former")
    recover_output(target)
    assert (target / "a").read_text() == "new"
    assert os.listdir(tmp_path) == ["run"]


def test_only_hidden_names_of_this_output_are_temporary(tmp_path):
    target = tmp_path / "run.npz"
    ours = temporary_sibling(target)
    others = [temporary_sibling(tmp_path / name) for name in ("run", "run.npy", "run2.npz", "un")]
    for path in (ours, *others, tmp_path / ".run-notes.npz", tmp_path / "run.npz"):
        path.write_text("x")
    assert find_temporaries(target) == [ours]


def test_long_names_have_short_and_distinct_hidden_names(tmp_path):
    one, other = (tmp_path / ("é" * 100 + letter) for letter in "ab")
    assert lock_path(one) != lock_path(other)
    for target in (one, other):
        with folder_writer(target, "run") as inside:
            assert find_temporaries(target) == [inside]
    assert len(os.listdir(tmp_path)) == 2
