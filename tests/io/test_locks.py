"""One writer at a time, whatever becomes of it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hilander.errors import OutputError
from hilander.io import locks
from hilander.io.hidden_names import lock_path, temporary_sibling
from hilander.io.locks import lock_output
from hilander.io.writing import folder_writer

# Takes the lock, says so, and keeps it until a line comes or the process is killed.
HOLD = """
import sys
from hilander.io.locks import lock_output
with lock_output(sys.argv[1], wait="--wait" in sys.argv):
    print("held", flush=True)
    sys.stdin.readline()
"""


def start_holder(path, *options):
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(locks.__file__).parents[2])},
    )  # fmt: skip


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of `out`."""
    process = start_holder(tmp_path / "out")
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def take(path):
    with lock_output(path):
        pass


def test_the_error_names_the_process_its_host_and_since_when(tmp_path, holder):
    pattern = (
        rf"out is being written by process {holder.pid} on \S+.* since \d{{4}}-\d\d-\d\d \d\d:"
    )
    with pytest.raises(OutputError, match=pattern + r".*add --wait"):
        take(tmp_path / "out")
    take(tmp_path / "other")


def test_a_link_to_the_output_has_the_same_lock(tmp_path, holder):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "out")
    with pytest.raises(OutputError, match="is being written by"):
        take(tmp_path / "link")


def test_a_folder_is_not_written_while_another_process_holds_it(tmp_path, holder):
    def write():
        with folder_writer(tmp_path / "out", "run"):
            pytest.fail("wrote")

    with pytest.raises(OutputError, match="one writer at a time"):
        write()
    assert not (tmp_path / "out").exists()


def test_a_killed_process_frees_its_lock(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    take(tmp_path / "out")
    assert os.listdir(tmp_path) == []


def test_a_waiting_process_takes_the_lock_when_it_is_free(tmp_path, holder):
    second = start_holder(tmp_path / "out", "--wait")
    assert re.match(rf"waiting for .*out.*process {holder.pid} ", second.stderr.readline())
    holder.communicate("\n")
    assert second.stdout.readline() == "held\n"
    facts = json.loads(lock_path(tmp_path / "out").read_text())
    assert facts["pid"] == second.pid
    second.communicate("\n")
    assert os.listdir(tmp_path) == []


def test_the_same_thread_may_take_the_lock_again_and_another_may_not(tmp_path):
    errors = []

    def try_to_take():
        try:
            take(tmp_path / "out")
        except OutputError as error:
            errors.append(error)

    with lock_output(tmp_path / "out"):
        take(tmp_path / "out")
        thread = threading.Thread(target=try_to_take)
        thread.start()
        thread.join()
    assert len(errors) == 1
    assert str(os.getpid()) in str(errors[0])
    take(tmp_path / "out")


def test_folders_that_the_lock_created_are_removed_unless_used(tmp_path):
    take(tmp_path / "a" / "b" / "out")
    assert os.listdir(tmp_path) == []
    with lock_output(tmp_path / "a" / "b" / "out"):
        (tmp_path / "a" / "b" / "out").write_text("x")
    assert (tmp_path / "a" / "b" / "out").read_text() == "x"


def test_what_a_killed_writer_left_is_removed_with_the_lock(tmp_path):
    temporary_sibling(tmp_path / "out").mkdir()
    temporary_sibling(tmp_path / "out").write_text("half")
    foreign = tmp_path / ".out-notes"
    foreign.write_text("mine")
    take(tmp_path / "out")
    assert os.listdir(tmp_path) == [foreign.name]


def test_without_locks_of_the_file_system_the_output_is_written(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(locks.errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with folder_writer(tmp_path / "out", "run") as inside:
        (inside / "a").write_text("x")
    assert (tmp_path / "out" / "a").read_text() == "x"
