"""Options for labels and images, shared by the commands that show a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hilander.cli.inputs import add_labels, add_run_folder, tell

if TYPE_CHECKING:
    from hilander.explorer.run.run_folder import Attachments


def add_run_items(parser: argparse.ArgumentParser) -> None:
    """Add the run folder, and the options for labels and images of its items."""
    add_run_folder(parser)
    add_labels(
        parser,
        "file with the true identity of each point, as for `hilander score` (default: column label "
        "of items.parquet in RUN, if there is one)",
    )
    images = parser.add_mutually_exclusive_group()
    images.add_argument(
        "--thumbs",
        metavar="FILE",
        type=Path,
        help="images of the points: .npy, or .npz with an array thumbs; uint8 of shape "
        "(n, height, width) or (n, height, width, 3) (default: thumbs.npy in RUN)",
    )
    images.add_argument(
        "--images-dir",
        metavar="DIR",
        type=Path,
        help="folder of image files; each file is named by the id of its point, or by the column "
        "path of items.parquet in RUN",
    )


def read_attachments(args: argparse.Namespace) -> Attachments:
    """Read the labels and images that the options of `add_run_items` name."""
    from hilander.cli.score import read_run_ids
    from hilander.embeddings.partial_labels import fill_empty
    from hilander.explorer.run.run_folder import Attachments
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.io.files import read_labels

    labels = None
    if args.labels is not None:
        n_points = Hierarchy.load(args.folder).n_points
        read = read_labels(
            args.labels,
            column=args.labels_column,
            n_rows=n_points,
            ids=read_run_ids(args.folder),
            id_column=args.label_id_column,
            tell=tell,
        )
        labels = fill_empty(read)
    return Attachments(labels, args.thumbs, args.images_dir)
