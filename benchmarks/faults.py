"""The campaign of faults: kills, torn files, full disks and several writers, on every command.

    python -m benchmarks.faults run [--most N] [--rounds N] [--commands NAME ...]
    python -m benchmarks.faults render       # the table of docs/reference/promises.md

Each row counts the trials of a command and a kind of fault. The tests in `tests/faults` run some
of the same trials, and check damaged and hostile files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fault_points import KINDS, Job, start_job
from benchmarks.fault_writers import write_together
from benchmarks.rows import (
    RESULTS,
    ROOT,
    append_row,
    describe_circumstances,
    put_block,
    read_rows,
)
from hilander.cli.main import main as run_hilander
from hilander.estimator import HiLander
from hilander.synthetic.identities import make_identities

ROWS = RESULTS / "faults.jsonl"
PAGE = ROOT / "docs" / "reference" / "promises.md"
MARKS = ("<!-- faults: begin -->", "<!-- faults: end -->")
FIXTURES = ROOT / "tests" / "goldens" / "fixtures"
WORDS = {
    "kill": "killed at a step",
    "torn": "killed while a file is flushed, half of it lost",
    "full": "disk full at a step",
    "writers": "writers at the same time",
}
COMMANDS = ("cluster", "train", "update", "convert")
NO_FORMER, FORMER = "empty", "former"
# An update needs a run, a conversion a new name. Both are refused where they are done.
ONCE = ("update", "convert")
STARTS = {"update": (FORMER,), "convert": (NO_FORMER,)}


def make_inputs(place: Path) -> None:
    """Write what the commands read, and for each command a folder with an earlier output."""
    X, y = make_identities(n_identities=12, size=8, dim=16, seed=0)
    np.savez(place / "train.npz", features=X, labels=y)
    np.save(place / "points.npy", X)
    HiLander.load(FIXTURES / "model-default").save(place / "model")
    more = make_identities(n_identities=14, size=2, dim=16, seed=0)[0]
    np.savez(place / "more.npz", features=more, id=np.arange(1000, 1000 + len(more)))
    (place / NO_FORMER).mkdir()
    for name, command in list_commands(place, place / FORMER).items():
        (place / FORMER).mkdir()
        if name == "update":
            command = list_commands(place, place / FORMER)["cluster"]
        other = {f"{place}/points.npy": f"{place}/train.npz", "2": "1"}  # for another result
        if run_hilander([other.get(part, part) for part in command]):
            raise RuntimeError(f"{command} fails without a fault")
        (place / FORMER).rename(place / f"{FORMER}-{name}")


def list_commands(place: Path, folder: Path) -> dict[str, list[str]]:
    """The commands of the campaign, by name; the output of each is `folder`/out…"""
    model = ["-m", f"{place}/model", "--device", "cpu", "--quiet"]
    short = ["--method", "paper", "--epochs", "2", "--hidden", "4", "--quiet", "--device", "cpu"]
    return {
        "cluster": ["cluster", f"{place}/points.npy", "-o", f"{folder}/out", *model],
        "train": ["train", f"{place}/train.npz", "-o", f"{folder}/out", *short],
        "update": ["update", f"{folder}/out", f"{place}/more.npz", "--device", "cpu", "--quiet"],
        "convert": ["convert", f"{place}/points.npy", f"{folder}/out.parquet"],
    }


def make_job(place: Path, folder: Path, name: str, before: str, kind: str, most: int) -> Job:
    """The job of one command, with or without an earlier output."""
    command = list_commands(place, folder)[name]
    output = "out.parquet" if name == "convert" else "out"
    start = place / (before if before == NO_FORMER else f"{FORMER}-{name}")
    return Job(command, str(folder), output, str(start), kind, most=most, once=name in ONCE)


def find_faults(row: dict[str, Any]) -> list[str]:
    """What is wrong with a trial; empty if all promises hold."""
    wrong = []
    if not row["intact"]:
        wrong.append("neither the former nor the new output")
    if row["again"] != 0 or not row["equal"]:
        wrong.append("the same command does not end in the same result")
    if row["debris"]:
        wrong.append(f"left {row['debris']}")
    if row["kind"] != "full":
        return wrong if row["code"] == -9 else [*wrong, f"ended with {row['code']}"]
    if row["code"] not in (0, 2) or (row["code"] == 2 and "disk is full" not in row["said"]):
        wrong.append(f"ended with {row['code']}: {row['said'][-200:]}")
    return wrong


def measure(most: int, rounds: int, commands: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Run the campaign on some commands; one row for each command, start and kind of fault."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary).resolve()
        make_inputs(place)
        for name in commands:
            for before in STARTS.get(name, (NO_FORMER, FORMER)):
                for kind in KINDS:
                    job = make_job(place, place / "work", name, before, kind, most)
                    faults = [find_faults(row) for row in start_job(job)]
                    yield count(f"hilander {name}", before, kind, faults)
        for n_writers in (2, 4) if rounds else ():
            faults = write_together(place, n_writers, rounds, np.random.default_rng(n_writers))
            yield count(f"hilander cluster, {n_writers} processes", NO_FORMER, "writers", faults)


def count(command: str, before: str, kind: str, faults: list[list[str]]) -> dict[str, Any]:
    """A row from the faults of each trial."""
    wrong = sorted({words for one in faults for words in one})
    return {
        "command": command, "former_output": before == FORMER, "kind": kind,
        "trials": len(faults), "wrong": sum(map(bool, faults)), "what": wrong,
    }  # fmt: skip


def format_rows(rows: list[dict[str, Any]]) -> str:
    """A Markdown table: trials and broken promises by command and fault, both starts together."""
    latest = {(row["command"], row["former_output"], row["kind"]): row for row in rows}
    totals: dict[tuple[str, str], list[int]] = {}
    for (command, _, kind), row in latest.items():
        total = totals.setdefault((command, kind), [0, 0])
        total[0] += row["trials"]
        total[1] += row["wrong"]
    lines = ["| command | fault | trials | broken promises |", "|---|---|---|---|"]
    lines += [
        f"| `{command}` | {WORDS[kind]} | {trials} | {wrong} |"
        for (command, kind), (trials, wrong) in totals.items()
    ]
    return "\n".join(lines)


def render() -> None:
    """Write the table of the page from the rows."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(put_block(text, MARKS, format_rows(read_rows(ROWS))), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; exit code 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "render"])
    parser.add_argument("--most", type=int, default=10**9, help="steps of each command (all)")
    parser.add_argument("--rounds", type=int, default=50, help="rounds of several writers (50)")
    parser.add_argument("--commands", nargs="*", choices=COMMANDS, default=COMMANDS)
    args = parser.parse_args(arguments)
    if args.command == "render":
        render()
        return 0
    n_wrong, circumstances = 0, describe_circumstances()
    for row in measure(args.most, args.rounds, args.commands):
        append_row(ROWS, circumstances | row)
        print(row, flush=True)
        n_wrong += row["wrong"]
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
