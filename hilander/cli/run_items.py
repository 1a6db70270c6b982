"""What commands that show a run share: options for labels and images."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hilander.explorer.run.run_folder import Attachments


def add_run_items(parser: argparse.ArgumentParser) -> None:
    """Add the run folder, and the options that say more about its items."""
    parser.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    parser.add_argument(
        "--labels",
        metavar="LABELS",
        type=Path,
        help="true identity of each point, as for `hilander score` (default: the column label of "
        "items.parquet in RUN, if there is one)",
    )
    parser.add_argument(
        "--labels-column", metavar="NAME", help="column or array of labels (default: label, labels)"
    )
    images = parser.add_mutually_exclusive_group()
    images.add_argument(
        "--thumbs",
        metavar="FILE",
        type=Path,
        help="images of the points: a .npy, or a .npz with an array thumbs, uint8 of shape "
        "(n, height, width) or (n, height, width, 3) (default: thumbs.npy in RUN)",
    )
    images.add_argument(
        "--images-dir",
        metavar="DIR",
        type=Path,
        help="folder of image files, named by the ids or by the column path of items.parquet in "
        "RUN",
    )


def read_attachments(args: argparse.Namespace) -> Attachments:
    """Read what the options of `add_run_items` name."""
    from hilander.cli.score import read_run_ids
    from hilander.explorer.run.run_folder import Attachments
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.io.files import read_labels

    labels = None
    if args.labels is not None:
        n_points = Hierarchy.load(args.folder).n_points
        labels = read_labels(
            args.labels, column=args.labels_column, n_rows=n_points, ids=read_run_ids(args.folder)
        )
    return Attachments(labels, args.thumbs, args.images_dir)
