"""``hilander compare``: compare clustering methods on your own data."""

from __future__ import annotations

import argparse
import json
import os
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hilander.cli.inputs import add_quiet, add_wait, whole
from hilander.io.locks import lock_output

ROWS_FILE = "rows.jsonl"
FOLDER_KIND = "comparison"
# Share of the machine's memory that all methods may use; the rest is for the system.
MEMORY_SHARE = 0.8
ASSUMED_MEMORY = 8 * 2**30  # bytes, of a machine that does not report its memory


class ListMethods(argparse.Action):
    """Print the names of the methods and exit, as --help does, also without other arguments."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and exit."""
        from hilander.comparison.methods import METHODS

        print("\n".join(METHODS))
        parser.exit()


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "compare",
        help="compare clustering methods on your own data",
        description="Tune each method on the training file, run it on the test file, and print a "
        "table sorted by BCubed F. Each method runs in its own process; if it is not installed, "
        "fails or exceeds a limit, its row shows the error.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "train", metavar="TRAIN", type=Path, help="labelled embeddings to tune and train on"
    )
    parser.add_argument(
        "test",
        metavar="TEST",
        type=Path,
        help="labelled embeddings to cluster; their labels are used only for the scores",
    )
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", type=Path,
        help="folder to write: rows.jsonl, to which each comparison appends, and report.md, "
        "comparison.png and report.html of the last comparison (default: none, print the table)",
    )  # fmt: skip
    parser.add_argument(
        "--methods", metavar="NAMES", help="names of methods, separated by commas (default: all)"
    )
    parser.add_argument(
        "--list-methods", action=ListMethods, help="print the names of the methods and exit"
    )
    parser.add_argument(
        "--seeds",
        type=whole,
        default=3,
        help="runs of each method that depends on a seed (default: 3)",
    )
    parser.add_argument(
        "--time-limit", type=float, default=900.0, metavar="SECONDS",
        help="time limit of each method, for tuning and all seeds together (default: 900)",
    )  # fmt: skip
    parser.add_argument(
        "--memory-limit", type=float, metavar="GB",
        help="memory limit of each method (default: 80 %% of the machine's memory, divided by "
        "--jobs)",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=whole, default=os.cpu_count() or 1, metavar="N",
        help="methods that run at the same time, with one thread each (default: one per core)",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="print the rows as JSON instead of a table"
    )
    add_wait(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare, print, and write the report, whose folder is locked meanwhile."""
    with lock_output(args.output, wait=args.wait) if args.output else nullcontext():
        return compare_and_write(args)


def compare_and_write(args: argparse.Namespace) -> int:
    """Compare, print, and write the report; the exit code."""
    from hilander.comparison.methods import choose_methods
    from hilander.comparison.pair import read_pair
    from hilander.comparison.report import write_comparison_report
    from hilander.comparison.run import Plan, Progress, compare_methods
    from hilander.comparison.tables import format_comparison, summarise_rows
    from hilander.io.writing import claim_folder

    methods = choose_methods(None if args.methods is None else args.methods.split(","))
    pair = read_pair(args.train, args.test)
    folder = claim_folder(args.output, FOLDER_KIND) if args.output else None
    plan = Plan(
        seeds=args.seeds,
        limits=make_limits(args),
        jobs=min(args.jobs, len(methods)),
        rows=folder / ROWS_FILE if folder else None,
    )
    rows = compare_methods(pair, methods, plan, Progress(len(methods), args.quiet))
    if args.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    elif not args.quiet:
        print(format_comparison(summarise_rows(rows)))
    if folder:
        written = write_comparison_report(rows, folder)
        if not args.quiet and not args.json:
            print(f"report: {written[-1]}")
    return 0 if any(row.error is None for row in rows) else 1


def make_limits(args: argparse.Namespace) -> Any:
    """The limits that the options describe."""
    from hilander.comparison.runner import Limits

    if args.memory_limit is not None:
        memory = int(args.memory_limit * 2**30)
    else:
        memory = int(MEMORY_SHARE * total_memory() / max(args.jobs, 1))
    return Limits(args.time_limit, memory, threads=1)


def total_memory() -> int:
    """Bytes of memory of this machine; 8 GiB if it does not report that."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return ASSUMED_MEMORY
