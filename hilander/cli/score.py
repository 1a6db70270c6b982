"""``hilander score``: compare the clusters of a run with the true identities."""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, IntArray
from hilander.cli.inputs import add_labels, add_run_folder, tell
from hilander.embeddings.partial_labels import count_unknown, encode_partly
from hilander.errors import LabelError, SettingError
from hilander.io.files import read_labels
from hilander.io.schemas import RunDetails
from hilander.io.stored_json import read_json
from hilander.io.writing import list_stored_files


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "score",
        help="compare the clusters of a run with the true identities",
        description="Compare the clusters of a run with the true identities: pairwise F, BCubed F, "
        "NMI and other scores. Points whose label is unknown (-1 or empty) are left out.",
        allow_abbrev=False,
    )
    add_run_folder(parser)
    add_labels(
        parser,
        "file with the true identity of each point: .csv, .tsv, .txt, .npy, .npz, .parquet or "
        ".pkl; matched by id if both have ids, else by order",
        required=True,
    )
    levels = parser.add_mutually_exclusive_group()
    levels.add_argument(
        "--level",
        type=int,
        default=-1,
        metavar="N",
        help="level to score, counted from 0; -1 is the final level (default: -1)",
    )
    levels.add_argument("--all-levels", action="store_true", help="score every level")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score and print."""
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.metrics.report import format_scores, score_clustering

    hierarchy = Hierarchy.load(args.folder)
    ids = read_run_ids(args.folder)
    labels = read_labels(
        args.labels,
        column=args.labels_column,
        n_rows=hierarchy.n_points,
        ids=ids,
        id_column=args.label_id_column,
        tell=tell,
    )
    labels, known = drop_unknown(labels)
    levels = range(hierarchy.n_levels) if args.all_levels else (args.level,)
    scores = {
        name_level(level): score_clustering(labels, hierarchy.labels(level)[known])
        for level in levels
    }
    if not args.json:
        print(format_scores(scores))
        return 0
    every = [one.to_dict() for one in scores.values()]
    found: dict[str, Any] = every[-1]
    if args.all_levels:
        found = {**found, "levels": [{"level": n, **one} for n, one in enumerate(every)]}
    print(json.dumps(found, indent=2))
    return 0


def name_level(level: int) -> str:
    """Name of a level in the table."""
    return "final level" if level == -1 else f"level {level}"


def drop_unknown(labels: npt.NDArray[Any]) -> tuple[IntArray, BoolArray | slice]:
    """Leave out points whose label is unknown: empty, or -1 where that means unknown.

    Parameters
    ----------
    labels : ndarray of shape (n_points,)

    Returns
    -------
    codes : ndarray of shape (n_known,)
        Identity of each point that is left, as a number.
    known : ndarray of shape (n_points,), bool, or a slice of all
        Which points are left.
    """
    codes, what = encode_partly(labels, len(labels))
    if not what:
        return codes, slice(None)
    known = codes >= 0
    if not known.any():
        raise LabelError(
            f"all {len(codes):,} labels are {what}, which means unknown: there is nothing to score "
            "by; check the labels or, if -1 is an identity, give it another label"
        )
    warnings.warn(f"{count_unknown(codes, what)}: those points are not scored.", stacklevel=2)
    return codes[known], known


def read_run_ids(folder: Path) -> Any:
    """The ids in the input of a run; None if it had none, and rows were numbered."""
    from hilander.hierarchy.run_extras import DETAILS_FILE
    from hilander.hierarchy.storage import list_cluster_files
    from hilander.io.parquet import read_parquet_column

    files = list_stored_files(folder)
    details = files.check(DETAILS_FILE)
    content = read_json(details, RunDetails) if details.is_file() else {}
    if not content.get("input", {}).get("has_ids", True):
        return None
    found: list[Any] = []
    for path in list_cluster_files(files):
        if not path.is_file():
            raise SettingError(f"{path} does not exist; run `hilander cluster` again")
        found.append(read_parquet_column(path, "id", ("id",)))
    return found[0] if len(found) == 1 else np.concatenate(found)
