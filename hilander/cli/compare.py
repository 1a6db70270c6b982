"""``hilander compare``: every method on your own data, tuned and timed the same way."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hilander.cli.inputs import add_quiet, whole

ROWS_FILE = "rows.jsonl"
FOLDER_KIND = "comparison"


class ListMethods(argparse.Action):
    """Print the methods' names and leave, as --help does, whatever else is missing."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print and leave."""
        from hilander.comparison.methods import METHODS

        print("\n".join(METHODS))
        parser.exit()


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "compare",
        help="compare clustering methods on your own data",
        description="Tune every method on the training file, run it on the test file, and print a "
        "table sorted by BCubed F. Each method runs in a process of its own: one that is missing, "
        "fails, or passes a limit becomes a row with its error.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "train", metavar="TRAIN", type=Path, help="labelled embeddings to tune and learn on"
    )
    parser.add_argument(
        "test",
        metavar="TEST",
        type=Path,
        help="labelled embeddings to cluster; their labels are used to score only",
    )
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", type=Path,
        help="folder for rows.jsonl, which grows with each comparison, and for the last one's "
        "report.md, comparison.png and report.html (default: none, table only)",
    )  # fmt: skip
    parser.add_argument(
        "--methods", metavar="NAMES", help="names, separated by commas (default: all)"
    )
    parser.add_argument(
        "--list-methods", action=ListMethods, help="print the names of the methods and stop"
    )
    parser.add_argument(
        "--seeds", type=whole, default=3, help="runs of methods that vary (default: 3)"
    )
    parser.add_argument(
        "--time-limit", type=float, default=900.0, metavar="SECONDS",
        help="for each method, tuning and all seeds together (default: 900)",
    )  # fmt: skip
    parser.add_argument(
        "--memory-limit", type=float, metavar="GB",
        help="for each method (default: 80 %% of the machine's memory, shared by the jobs)",
    )  # fmt: skip
    parser.add_argument(
        "--jobs", type=whole, default=os.cpu_count() or 1, metavar="N",
        help="methods that run at the same time, one thread each (default: one a core)",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="print rows as JSON in place of a table"
    )
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare, print, and write the reports."""
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
        memory = int(0.8 * total_memory() / max(args.jobs, 1))
    return Limits(args.time_limit, memory, threads=1)


def total_memory() -> int:
    """Bytes of memory of this machine; 8 GB if that cannot be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 8 * 2**30
