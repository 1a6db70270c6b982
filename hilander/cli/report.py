"""``hilander report``: a run told in one file to mail to a colleague."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hilander.cli.run_items import add_run_items, read_attachments
from hilander.errors import MissingFileError


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "report",
        help="tell a run in one file",
        description="Tell a run in one self-contained file: summary, metrics by level, sizes, the "
        "map, exemplars of the largest, most doubtful and most mixed clusters, settings, versions "
        "and times.",
        allow_abbrev=False,
    )
    add_run_items(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        default=Path("report.html"),
        help="report.html (one file), or report.md (with its pictures in report_files) "
        "(default: report.html)",
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the report."""
    from hilander.explorer.report.writer import check_report_path, write_report

    check_report_path(args.output)
    if not args.folder.exists():
        raise MissingFileError(f"{args.folder} does not exist, expected a run folder")
    write_report(args.folder, args.output, read_attachments(args))
    if not args.quiet:
        print(f"report: {args.output}")
    return 0
