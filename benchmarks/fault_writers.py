"""Several processes that write one output at the same time.

python -m benchmarks.fault_writers JOB    # the JSON of commands, delays and a folder
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fault_points import describe, run_command
from benchmarks.rows import ROOT
from hilander.synthetic.identities import make_identities

LONGEST_DELAY = 0.3  # seconds; a run of these points takes about as long


def write_together(
    place: Path, n_writers: int, n_rounds: int, rng: np.random.Generator, *more: str
) -> list[list[str]]:
    """Let writers of different inputs start within moments of each other, many times.

    Parameters
    ----------
    place : Path
        Holds a folder ``model``; inputs and results are written here.
    n_writers, n_rounds : int
    rng : numpy Generator
        Of the delays.
    *more : str
        Further options of the command, such as ``--wait``.

    Returns
    -------
    faults : list of list of str
        For each round what was wrong with it.
    """
    alone = []
    for number in range(n_writers):
        X, _ = make_identities(n_identities=15, size=8, dim=16, spread=0.8, seed=number)
        np.save(place / f"{number}.npy", X)
        output = place / f"alone-{number}"
        if not output.exists() and run_command(make_command(place, number, output)):
            raise RuntimeError(f"cannot cluster {number}.npy")
        alone.append(describe(output))
    work = place / "together"
    job = {
        "commands": [make_command(place, which, work / "out", *more) for which in range(n_writers)],
        "rounds": rng.uniform(0, LONGEST_DELAY, (n_rounds, n_writers)).round(3).tolist(),
        "folder": str(work),
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.fault_writers", json.dumps(job)],
        capture_output=True, text=True, cwd=ROOT, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    waits = "--wait" in more
    return [find_faults(one, alone, waits) for one in json.loads(done.stdout.splitlines()[-1])]


def make_command(place: Path, number: int, output: Path, *more: str) -> list[str]:
    """The command that clusters one of the inputs."""
    model = ["-m", f"{place}/model", "--device", "cpu", "--quiet"]
    return ["cluster", f"{place}/{number}.npy", "-o", str(output), *model, *more]


def find_faults(found: dict[str, Any], alone: list[dict[str, str]], waits: bool) -> list[str]:
    """What is wrong with a round; empty if the output is that of a writer that succeeded."""
    codes = found["codes"]
    winners = [which for which, code in enumerate(codes) if code == 0]
    wrong = []
    if not winners or (waits and len(winners) < len(codes)):
        wrong.append(f"exit codes {codes}: {found['said']}")
    elif found["result"] not in [alone[which] for which in winners]:
        wrong.append("the output is that of no writer that succeeded")
    if found["left"] != ["out"]:
        wrong.append(f"left {found['left']}")
    for code, said in zip(codes, found["said"], strict=True):
        if code and not (code == 2 and len(said.splitlines()) == 1 and "being written by" in said):
            wrong.append(f"a loser ends with {code}: {said[-200:]}")
    return wrong


def run_rounds(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the rounds in children of this process."""
    folder, found = Path(job["folder"]), []
    for delays in job["rounds"]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        children = {
            _fork(command, delay, folder.with_name(f"said-{which}")): which
            for which, (command, delay) in enumerate(zip(job["commands"], delays, strict=True))
        }
        codes = {}
        while children:
            child, status = os.wait()
            codes[children.pop(child)] = os.waitstatus_to_exitcode(status)
        said = [folder.with_name(f"said-{which}").read_text() for which in range(len(delays))]
        found.append({
            "codes": [codes[which] for which in range(len(delays))], "said": said,
            "result": describe(folder / "out"), "left": sorted(os.listdir(folder)),
        })  # fmt: skip
    return found


def _fork(command: list[str], delay: float, said: Path) -> int:
    """Start a writer in a child, with its errors in a file."""
    if (child := os.fork()) == 0:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
        time.sleep(delay)
        os._exit(run_command(command))
    return child


if __name__ == "__main__":
    import hilander.cli.kept_work
    import hilander.training.inference  # noqa: F401
    from hilander.hierarchy import budget

    budget.LONG_RUN = 0  # small runs keep their work, as large ones do
    print(json.dumps(run_rounds(json.loads(sys.argv[1]))))
