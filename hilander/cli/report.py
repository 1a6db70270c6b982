"""``hilander report``: write a self-contained report of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hilander.cli.inputs import add_quiet, add_wait
from hilander.cli.run_items import add_run_items, read_attachments
from hilander.errors import MissingFileError
from hilander.io.locks import lock_output


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "report",
        help="write a self-contained report of a run",
        description="Write a report of a run as one file: summary, scores by level (if there are "
        "labels), cluster sizes, a map, examples of the named, the largest, the most doubtful and "
        "the most mixed clusters, corrections, settings, versions and times. If the run was "
        "reviewed, clusters are shown as corrected, with their names.",
        allow_abbrev=False,
    )
    add_run_items(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        default=Path("report.html"),
        help="file to write: .html (one file) or .md (with its pictures in a folder, such as "
        "report_files for report.md) (default: report.html)",
    )
    parser.add_argument(
        "--state", metavar="DIR", type=Path, help="folder of the review (default: RUN.explorer)"
    )
    parser.add_argument(
        "--no-review", action="store_true", help="show the clusters as they were before the review"
    )
    add_wait(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the report."""
    from hilander.explorer.report.writer import check_report_path, write_report

    check_report_path(args.output)
    if not args.folder.exists():
        raise MissingFileError(f"{args.folder} does not exist, expected a run folder")
    with lock_output(args.output, wait=args.wait, make_parents=False):
        attachments = read_attachments(args)
        write_report(args.folder, args.output, attachments, args.state, review=not args.no_review)
    if not args.quiet:
        print(f"report: {args.output}")
    return 0
