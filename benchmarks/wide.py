"""The wide suite: quality of all methods on many kinds of sets. Changes are judged by it.

    python -m benchmarks.wide run [--sets a,b] [--methods x,y] [--seeds n] [--jobs n] [--missing]
    python -m benchmarks.wide render           # the tables of docs/results/wide.md

Rows are appended to ``benchmarks/results/wide.jsonl``, one for each test set, method and seed.
``--sets`` takes names of test sets or of groups (pairs, face-like, few, albums, singles).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from benchmarks.pretrained import locate_pretrained
from benchmarks.pretrained_sets import DOMAIN_OF
from benchmarks.rows import ROOT, append_row, describe_circumstances, read_rows
from benchmarks.wide_page import ROWS, render
from benchmarks.wide_sets import Drawn, StoredSource, choose_sets, find_missing, load_sets
from benchmarks.wide_worker import METHODS, Job, Method, result_files
from hilander.arrays.rows import IntArray
from hilander.comparison.runner import Limits, run_limited
from hilander.errors import SettingError
from hilander.linkage.storage import PRETRAINED as SHIPPED
from hilander.metrics.report import score_clustering

SCORES = ("pairwise_f", "bcubed_f", "nmi", "n_clusters")

Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """Settings of a run.

    Parameters
    ----------
    seeds : int
        Runs of each method whose result depends on the seed.
    jobs : int
        Processes at the same time; each has one thread.
    limits : Limits
        Of each process: one method on all test sets of a source.
    rows : Path
    """

    seeds: int = 3
    jobs: int = 2
    limits: Limits = field(default_factory=lambda: Limits(3600.0, 8 * 2**30))
    rows: Path = ROWS

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.jobs < 1:
            raise SettingError(f"seeds={self.seeds} and jobs={self.jobs} must be 1 or more")


def choose_methods(names: Sequence[str] | None) -> list[Method]:
    """Methods by name, in the order of the page; all for None."""
    for name in names or ():
        if name not in METHODS:
            near = get_close_matches(name, METHODS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(METHODS)}"
            raise SettingError(f"method {name!r} is not known; {hint}")
    return [one for name, one in METHODS.items() if not names or name in names]


def find_models(source: str, seeds: int) -> dict[int, Path]:
    """Folders of pretrained models by seed, of those that exist.

    For a shared pair these are models trained without its domain. For a generated set it is the
    model that comes with the package, as seed 0.
    """
    if source not in DOMAIN_OF:
        return {0: SHIPPED}
    folders = {seed: locate_pretrained(DOMAIN_OF[source], seed) for seed in range(seeds)}
    return {seed: folder for seed, folder in folders.items() if folder.is_dir()}


def choose_seeds(method: Method, source: str, seeds: int) -> list[int]:
    """Seeds to run; none if a pretrained model is missing."""
    if method.kind == "pretrained":
        return list(find_models(source, seeds))
    return list(range(seeds if method.varies else 1))


def select_unmeasured(method: Method, sets: Sequence[Drawn], plan: Plan) -> list[Drawn]:
    """The test sets on which a method lacks a result of any seed, on the present data."""
    done = {
        (row["dataset"], row["dataset_hash"], row["seed"])
        for row in read_rows(plan.rows)
        if row["method"] == method.name and not row["error"]
    }
    wanted = {one.spec.name: choose_seeds(method, one.spec.source, plan.seeds) for one in sets}
    return [
        one
        for one in sets
        if not wanted[one.spec.name]
        or any((one.spec.name, one.digest, seed) not in done for seed in wanted[one.spec.name])
    ]


def run_source(
    sets: Sequence[Drawn], methods: Sequence[Method], plan: Plan, missing: bool = False
) -> None:
    """Run methods on test sets of one source, and append the rows."""
    tasks = []
    for method in methods:
        chosen = select_unmeasured(method, sets, plan) if missing else list(sets)
        seeds = choose_seeds(method, sets[0].spec.source, plan.seeds)
        # A fit takes longest, so that each seed of it is a process. Tuning is done only once.
        split = [[seed] for seed in seeds] if method.kind == "fitted" else [seeds]
        tasks += [(method, chosen, part) for part in split if chosen]
    if not tasks:
        return
    lock = Lock()
    with tempfile.TemporaryDirectory(prefix="hilander-wide-") as temporary:
        stored = StoredSource.write(sets, _make(Path(temporary) / "source"))

        def run_task(task: tuple[Method, list[Drawn], list[int]]) -> None:
            rows = run_method(*task, stored, plan)
            with lock:
                for row in rows:
                    append_row(plan.rows, row)
                    print(describe_row(row), flush=True)

        with ThreadPoolExecutor(plan.jobs) as pool:
            list(pool.map(run_task, tasks))


def run_method(
    method: Method, sets: Sequence[Drawn], seeds: Sequence[int], stored: StoredSource, plan: Plan
) -> list[Row]:
    """Run one method in a process of its own.

    Returns
    -------
    rows : list of dict
        One for each test set and seed. If there is no result, the row holds the error.
    """
    circumstances = describe_circumstances()
    source = sets[0].spec.source
    if not seeds:
        folder = locate_pretrained(DOMAIN_OF[source])
        error = f"missing: {folder.name} (make it by python -m benchmarks.pretrained score)"
        return [begin_row(one, method, 0) | circumstances | {"error": error} for one in sets]
    output = Path(tempfile.mkdtemp(prefix="run-", dir=stored.folder.parent))
    models = find_models(source, plan.seeds) if method.kind == "pretrained" else {}
    job = Job(
        method.name, str(stored.folder), str(output), tuple(seeds),
        {one.spec.name: len(one.draws) for one in sets},
        {str(seed): str(folder) for seed, folder in models.items()},
    )  # fmt: skip
    (output / "job.json").write_text(json.dumps(asdict(job)), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.wide_worker", str(output / "job.json")]
    environment = {"PYTHONPATH": str(ROOT)}
    ended = run_limited(command, plan.limits, output / "log.txt", environment=environment)
    failure = ended.reason or "ended without a result"
    return [
        begin_row(one, method, seed) | circumstances | read_result(one, output, seed, failure)
        for seed in seeds
        for one in sets
    ]


def begin_row(one: Drawn, method: Method, seed: int) -> Row:
    """The part of a row that is known before the run."""
    return {
        "dataset": one.spec.name,
        "dataset_hash": one.digest,
        "group": one.spec.group,
        "method": method.name,
        "kind": method.kind,
        "seed": seed,
        "draws": len(one.draws),
        "n_points": int(np.median([len(rows) for rows in one.draws])),
        "seconds": None,
    }


def read_result(one: Drawn, output: Path, seed: int, failure: str) -> Row:
    """Scores and seconds of one test set; `failure` if the process left no result."""
    labels, record = result_files(output, one.spec.name, seed)
    if not record.is_file():
        return {"error": failure}
    row: Row = json.loads(record.read_text(encoding="utf-8"))
    if row["error"]:
        return row
    with np.load(labels) as arrays:
        found = {int(number): arrays[number] for number in arrays.files}
    return row | score_draws(one.truth, found)


def score_draws(truth: Sequence[IntArray], found: dict[int, IntArray]) -> Row:
    """Mean scores over draws. In a draw that the method refused, each point is a cluster.

    Parameters
    ----------
    truth : list of ndarray
        Identities of the points of each draw.
    found : dict of int to ndarray
        Clusters, by the number of the draw.
    """
    values = []
    for number, labels in enumerate(truth):
        scores = score_clustering(labels, found.get(number, np.arange(len(labels)))).to_dict()
        values.append([float(scores[name]) for name in SCORES])
    means = np.mean(values, axis=0).tolist()
    return dict(zip(SCORES, means, strict=True)) | {"refused": len(truth) - len(found)}


def describe_row(row: Row) -> str:
    """One line for the terminal."""
    start = f"{row['dataset']:20s} {row['method']:24s} seed {row['seed']}"
    if row["error"]:
        return f"{start}  {row['error']}"
    scores = f"Fp {row['pairwise_f']:.3f}  Fb {row['bcubed_f']:.3f}  NMI {row['nmi']:.3f}"
    return f"{start}  {scores}  {row['seconds']:.1f} s"


def run_suite(
    sets: Sequence[str] | None, methods: Sequence[str] | None, plan: Plan, missing: bool
) -> None:
    """Run methods on test sets, source by source. A source without its files is skipped."""
    chosen, run = choose_sets(sets), choose_methods(methods)
    for source in dict.fromkeys(one.source for one in chosen):
        if absent := find_missing(source):
            print(
                f"{source}: skipped, {absent[0]} is missing; set HILANDER_DATA to the folder of "
                "the shared embeddings",
                file=sys.stderr,
            )
            continue
        drawn = load_sets(source, [one for one in chosen if one.source == source])
        run_source(drawn, run, plan, missing)


def _make(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["run", "render"])
    parser.add_argument("--sets", help="names of sets or groups, separated by commas")
    parser.add_argument("--methods", help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=Plan.seeds)
    parser.add_argument("--jobs", type=int, default=Plan.jobs, help="processes at the same time")
    parser.add_argument("--missing", action="store_true", help="only what has no result yet")
    parser.add_argument("--rows", type=Path, default=ROWS, help="file of the rows")
    args = parser.parse_args(arguments)
    if args.command == "render":
        render(args.rows)
        return 0
    sets = args.sets.split(",") if args.sets else None
    methods = args.methods.split(",") if args.methods else None
    plan = Plan(args.seeds, args.jobs, rows=args.rows)
    run_suite(sets, methods, plan, args.missing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
