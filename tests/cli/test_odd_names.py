"""Files whose names are not UTF-8, which Unix allows."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hilander.cli.main import main
from hilander.io.writing import read_json, write_json
from hilander.synthetic.identities import make_identities

FIXTURES = Path(__file__).resolve().parents[1] / "goldens" / "fixtures"


@pytest.fixture
def place(tmp_path):
    """A folder whose name is not UTF-8, with points in every format."""
    folder = os.fsencode(tmp_path) + b"/\xff\xe9 place"
    try:
        os.mkdir(folder)
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    place = Path(os.fsdecode(folder))
    X, y = make_identities(n_identities=10, size=8, dim=16, seed=0)
    np.savez(place / "points.npz", features=X, labels=y)
    return place


def run(*command):
    """Run in a process of its own, whose output is a pipe in UTF-8."""
    done = subprocess.run(
        [sys.executable, "-m", "hilander", *map(os.fsencode, command)],
        capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8")


def test_every_command_takes_names_that_are_not_utf8(place, capsys):
    model = place / "model"
    train = ["train", place / "points.npz", "-o", model, "--quiet", "--method", "paper"]
    assert main([*map(str, train), "--epochs", "2", "--hidden", "4"]) == 0
    for suffix in ("parquet", "npy"):
        assert main(["convert", f"{place}/points.npz", f"{place}/points.{suffix}"]) == 0
    cluster = ["cluster", f"{place}/points.parquet", "-m", str(model), "-o", f"{place}/run"]
    assert main([*cluster, "--format", "csv", "--quiet"]) == 0
    assert main(["score", f"{place}/run", "--labels", f"{place}/points.npz"]) == 0
    assert main(["doubts", f"{place}/run"]) == 0
    for name in ("report.html", "report.md"):
        assert main(["report", f"{place}/run", "-o", f"{place}/{name}", "--quiet"]) == 0
    assert "points.parquet" in run("info", place / "run")
    assert "model" in run("info", model)


def test_a_missing_file_of_such_a_name_is_one_line(place, capsys):
    assert main(["info", f"{place}/none.npy"]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_name_that_is_not_utf8_is_the_same_after_json(tmp_path):
    name = os.fsdecode(b"/a/\xff\xe9")
    write_json(tmp_path / "a.json", {"path": name, "é": "é"})
    assert read_json(tmp_path / "a.json") == {"path": name, "é": "é"}
