"""A long `hilander cluster` that is killed: the same command resumes, with the same result."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from hilander import Hierarchy, HiLander
from hilander.cli.main import main
from hilander.hierarchy import budget
from hilander.hierarchy.work import KeptWork
from hilander.synthetic.identities import make_identities

FIXTURES = Path(__file__).resolve().parents[1] / "goldens" / "fixtures"
# One process imports everything and forks a child for each moment; the child runs the command. A
# moment n > 0 is the n-th call of replace, rename or fsync, at which the child kills itself with
# SIGKILL; a text is the first call of that name; n < 0 is a time in seconds, after which the parent
# kills the child; 0 is never.
KILLER = """
import json, os, signal, sys, time
import hilander.estimator, hilander.training.inference, hilander.cli.kept_work
from hilander.hierarchy import budget
from hilander.cli.main import main

budget.LONG_RUN = 0
command, moments = json.loads(sys.argv[1]), json.loads(sys.argv[2])

def die_at(moment):
    steps = 0
    def watched(do):
        def step(*args):
            nonlocal steps
            steps += 1
            if moment in (steps, do.__name__):
                os.kill(os.getpid(), signal.SIGKILL)
            return do(*args)
        return step
    os.replace, os.rename, os.fsync = map(watched, (os.replace, os.rename, os.fsync))

ends = []
for moment in moments:
    child = os.fork()
    if child == 0:
        die_at(moment)
        os._exit(main(command))
    if not isinstance(moment, str) and moment < 0:
        time.sleep(-moment)
        os.kill(child, signal.SIGKILL)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(ends))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model of the default method, whose scorer has state between levels, and points."""
    folder = tmp_path_factory.mktemp("resume")
    model = HiLander.load(FIXTURES / "model-default")
    rules = replace(model.rules_, k=6, decoder="parents")  # two levels
    model.model_ = replace(model.model_, rules=rules)
    model.save(folder / "model")
    X, _ = make_identities(n_identities=25, size=12, dim=16, spread=0.9, seed=1)
    np.save(folder / "points.npy", X.astype(np.float16))
    return folder


def command(place, output, *more):
    options = ["-m", f"{place}/model", "-o", str(output), "--quiet", "--device", "cpu", *more]
    return ["cluster", f"{place}/points.npy", *options]


def kill(place, output, moments, *more):
    arguments = [json.dumps(command(place, output, *more)), json.dumps(moments)]
    done = subprocess.run(
        [sys.executable, "-c", KILLER, *arguments],
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def assert_same_run(one, two):
    first, second = (
        pyarrow.parquet.read_table(run / "clusters.parquet").to_pydict() for run in (one, two)
    )
    np.testing.assert_equal(first, second)
    for left, right in zip(Hierarchy.load(one).levels, Hierarchy.load(two).levels, strict=True):
        np.testing.assert_array_equal(left.parent, right.parent)
    with np.load(one / "graph.npz") as left, np.load(two / "graph.npz") as right:
        np.testing.assert_array_equal(left["neighbours"], right["neighbours"])
        np.testing.assert_array_equal(left["linkage"], right["linkage"])
    applied = [
        [stage.get("p_tau") for stage in json.loads((run / "run.json").read_text())["stages"]]
        for run in (one, two)
    ]
    assert applied[0] == applied[1]


@pytest.fixture(scope="module")
def whole(place):
    """The same run, not interrupted, without kept work."""
    assert main(command(place, place / "whole")) == 0
    assert Hierarchy.load(place / "whole").n_levels > 1
    return place / "whole"


def test_killed_at_many_moments_the_same_command_ends_with_the_same_labels(place, whole, tmp_path):
    rng = np.random.default_rng(5)
    # Each child gets a little further than the one before it.
    moments = [1, 2, 3, *rng.integers(3, 12, 12).tolist(), -0.01, -0.05, 0]
    ends = kill(place, tmp_path / "run", moments)
    assert ends.count(-9) >= 10
    assert ends[-1] == 0
    assert_same_run(whole, tmp_path / "run")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["run"]


def test_a_kill_while_the_run_is_written_leaves_nothing_beside_it(
    place, whole, tmp_path, monkeypatch
):
    assert kill(place, tmp_path / "run", ["rename"]) == [-9]
    assert not (tmp_path / "run").exists()
    assert (tmp_path / "run.work").is_dir()
    assert len(list(tmp_path.iterdir())) == 3  # the work, the temporary folder, the free lock
    monkeypatch.setattr(budget, "LONG_RUN", 0)
    assert main(command(place, tmp_path / "run")) == 0
    assert_same_run(whole, tmp_path / "run")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["run"]


@pytest.fixture
def long(monkeypatch):
    monkeypatch.setattr(budget, "LONG_RUN", 0)


def test_kept_stages_are_not_computed_again(place, long, tmp_path, monkeypatch, capsys):
    from hilander.training import inference

    searched = []

    def search(features, k, **how):
        searched.append(len(features))
        if len(searched) == 2:
            raise KeyboardInterrupt
        return real(features, k, **how)

    real = inference.build_knn_graph
    monkeypatch.setattr(inference, "build_knn_graph", search)
    loud = [part for part in command(place, tmp_path / "run") if part != "--quiet"]
    assert main(loud) == 130
    assert "run.work is kept, and the same command resumes" in capsys.readouterr().err
    assert main(loud) == 0
    out = capsys.readouterr().out
    assert "resuming from" in out
    assert "points, k = 6: about" in out
    assert searched[0] == 300
    assert 300 not in searched[1:]
    stages = json.loads((tmp_path / "run" / "run.json").read_text())["stages"]
    kept = {stage["stage"]: stage.get("kept", False) for stage in stages}
    assert kept["level_0"]
    assert not kept["level_1"]


def test_work_of_another_command_is_removed_with_a_message(place, long, tmp_path, capsys):
    assert kill(place, tmp_path / "run", [9]) == [-9]
    loud = [part for part in command(place, tmp_path / "run", "--k", "5") if part != "--quiet"]
    assert main(loud) == 0
    assert "work of another input, model or setting" in capsys.readouterr().out
    assert main(command(place, tmp_path / "fresh", "--k", "5")) == 0
    assert_same_run(tmp_path / "fresh", tmp_path / "run")


def test_a_run_that_is_refused_leaves_no_work(place, long, tmp_path, capsys):
    bad = np.load(place / "points.npy").astype(np.float32)
    bad[7] = 0
    np.save(tmp_path / "bad.npy", bad)
    options = ["-m", f"{place}/model", "-o", f"{tmp_path}/run", "--quiet"]
    assert main(["cluster", f"{tmp_path}/bad.npy", *options]) == 2
    assert "row 7 is all zeros" in capsys.readouterr().err
    assert sorted(item.name for item in tmp_path.iterdir()) == ["bad.npy"]


def test_a_foreign_folder_in_the_place_of_the_work_is_left_alone(place, long, tmp_path, capsys):
    (tmp_path / "run.work").mkdir()
    (tmp_path / "run.work" / ".notes").write_text("mine")
    assert main(command(place, tmp_path / "run")) == 2
    assert "move it away or choose another output" in capsys.readouterr().err
    assert (tmp_path / "run.work" / ".notes").read_text() == "mine"


def test_a_damaged_kept_file_is_computed_again(place, long, whole, tmp_path):
    assert kill(place, tmp_path / "run", [12]) == [-9]
    (kept,) = (tmp_path / "run.work").glob("*/level-0-search.npz")
    kept.write_bytes(kept.read_bytes()[:500])
    assert main(command(place, tmp_path / "run")) == 0
    assert_same_run(whole, tmp_path / "run")


def test_work_can_be_removed_twice(tmp_path):
    work = KeptWork(tmp_path / "w", {"a": 1})
    work.remove()
    work.remove()
    assert not list(tmp_path.iterdir())
