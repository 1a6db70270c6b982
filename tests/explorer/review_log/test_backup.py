"""One file is the whole review: after a checkpoint, after the end, and as a copy."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from hilander.cli.main import main
from hilander.errors import MissingFileError, OutputError
from hilander.explorer.review_log.backup import Checkpoints, back_up_review
from hilander.explorer.review_log.store import ReviewStore, state_folder
from hilander.explorer.session.opening import open_explorer


def names_in(file, tmp_path, run_folder):
    """The names of the clusters in a review of which there is this one file only."""
    alone = tmp_path / f"alone-{file.stem}"
    alone.mkdir()
    shutil.copy(file, alone / "review.sqlite")
    explorer = open_explorer(run_folder, state=alone)
    names = dict(explorer.review.state.names)
    explorer.store.close()
    return names


def test_after_a_checkpoint_the_file_alone_is_the_review(explorer, run_folder, tmp_path):
    explorer.act("name", {"group": 0, "name": "tulips"})
    file = state_folder(run_folder) / "review.sqlite"
    assert names_in(file, tmp_path, run_folder) == {}  # the name is in the write-ahead log
    shutil.rmtree(tmp_path / "alone-review")
    explorer.store.checkpoint()
    assert names_in(file, tmp_path, run_folder) == {0: "tulips"}


def test_checkpoints_are_made_until_they_are_stopped(explorer, monkeypatch):
    made = []
    monkeypatch.setattr(explorer.store, "checkpoint", lambda: made.append(True))
    checkpoints = Checkpoints(explorer.store, seconds=0.005)
    while len(made) < 3:
        time.sleep(0.005)
    checkpoints.stop()
    assert not checkpoints._thread.is_alive()


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_after_the_explorer_was_stopped_the_file_alone_is_the_review(run_folder, tmp_path, ending):
    import httpx

    command = [sys.executable, "-m", "hilander", "explore", str(run_folder), "--port", "0",
               "--no-browser"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        address = re.search(r"http://\S+", process.stdout.readline()).group()
        with httpx.Client(base_url=address, trust_env=False, timeout=30) as client:
            page = client.get("").text
            token = re.search(r'name="hilander-token" content="([^"]+)"', page).group(1)
            answer = client.post(
                "api/review/name",
                json={"group": 0, "name": "tulips"},
                headers={"x-hilander-token": token},
            )
        assert answer.status_code == 200
        # A second reader of the database, such as another explorer, is not in the way.
        other = ReviewStore(state_folder(run_folder) / "review.sqlite")
        process.send_signal(ending)
        process.wait(timeout=30)
    file = state_folder(run_folder) / "review.sqlite"
    assert names_in(file, tmp_path, run_folder) == {0: "tulips"}
    other.close()


def test_the_backup_of_a_review_in_use_has_all_of_it(explorer, run_folder, tmp_path, capsys):
    explorer.act("name", {"group": 0, "name": "tulips"})
    copy = tmp_path / "copy.sqlite"
    assert main(["backup", str(run_folder), "-o", str(copy)]) == 0
    assert "1 actions" in capsys.readouterr().out
    assert names_in(copy, tmp_path, run_folder) == {0: "tulips"}
    assert not list(tmp_path.glob("copy.sqlite-*"))


def test_a_backup_replaces_no_file_and_needs_a_review(explorer, run_folder, tmp_path):
    explorer.act("name", {"group": 0, "name": "tulips"})
    taken = tmp_path / "taken.sqlite"
    taken.write_text("mine")
    with pytest.raises(OutputError, match="another name"):
        back_up_review(state_folder(run_folder) / "review.sqlite", taken)
    assert taken.read_text() == "mine"
    with pytest.raises(MissingFileError):
        back_up_review(tmp_path / "nowhere.sqlite", tmp_path / "new.sqlite")
