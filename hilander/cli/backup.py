"""``hilander backup``: copy the review of a run into one file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hilander.cli.inputs import add_quiet, add_run_folder


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "backup",
        help="copy the review of a run into one file",
        description="Copy the review of a run into one complete file, also while the explorer "
        "runs. To restore it, stop the explorer and copy the file to RUN.explorer/review.sqlite.",
        allow_abbrev=False,
    )
    add_run_folder(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="file to write; a new name"
    )
    parser.add_argument(
        "--state", metavar="DIR", type=Path, help="folder of the review (default: RUN.explorer)"
    )
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the copy."""
    from hilander.explorer.review_log.backup import back_up_review
    from hilander.explorer.review_log.store import REVIEW_FILE, state_folder

    folder = args.state or state_folder(args.folder)
    n_events = back_up_review(folder / REVIEW_FILE, args.output)
    if not args.quiet:
        print(f"backup: {args.output} ({n_events} actions)")
    return 0
