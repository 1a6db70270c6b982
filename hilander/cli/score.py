"""``hilander score``: what a run is worth where identities are known."""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy.typing as npt

from hilander.arrays.rows import BoolArray, IntArray
from hilander.embeddings.labels import encode_labels, has_unknown
from hilander.errors import LabelError, SettingError
from hilander.io.files import read_labels
from hilander.io.writing import read_json


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "score",
        help="score a run where identities are known",
        description="Score the clusters of a run folder by pairwise F, BCubed F, NMI and more.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    parser.add_argument(
        "--labels",
        metavar="LABELS",
        type=Path,
        required=True,
        help="identity of each point: .csv, .tsv, .txt, .npy, .npz, .parquet or .pkl; matched by "
        "id where both have ids, else taken in order",
    )
    parser.add_argument(
        "--labels-column", metavar="NAME", help="column or array of labels (default: label, labels)"
    )
    levels = parser.add_mutually_exclusive_group()
    levels.add_argument(
        "--level",
        type=int,
        default=-1,
        metavar="N",
        help="level to score, from 0; -1 is the final one (default: -1)",
    )
    levels.add_argument("--all-levels", action="store_true", help="score every level")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score and print."""
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.metrics.report import format_scores, score_clustering

    hierarchy = Hierarchy.load(args.folder)
    labels = read_labels(
        args.labels,
        column=args.labels_column,
        n_rows=hierarchy.n_points,
        ids=read_run_ids(args.folder),
    )
    labels, known = leave_unknown_out(labels)
    if args.all_levels:
        levels = range(hierarchy.n_levels)
        every = [score_clustering(labels, hierarchy.labels(level)[known]) for level in levels]
        rows = {f"level {number}": scores for number, scores in enumerate(every)}
        found: Any = {"levels": [{"level": n, **s.to_dict()} for n, s in enumerate(every)]}
        found = {**every[-1].to_dict(), **found}
    else:
        name = "final level" if args.level == -1 else f"level {args.level}"
        rows = {name: score_clustering(labels, hierarchy.labels(args.level)[known])}
        found = rows[name].to_dict()
    print(json.dumps(found, indent=2) if args.json else format_scores(rows))
    return 0


def leave_unknown_out(labels: npt.NDArray[Any]) -> tuple[IntArray, BoolArray | slice]:
    """Numbers of the identities, and of which points; where -1 means unknown it is left out."""
    codes, classes = encode_labels(labels, len(labels))
    if not has_unknown(classes):
        return codes, slice(None)
    if len(classes) == 1:
        raise LabelError(
            f"all {len(codes):,} labels are -1, which means unknown: there is nothing to score by; "
            "check the labels or, if -1 is an identity, give it another label"
        )
    known = codes > 0
    warnings.warn(
        f"{int((~known).sum()):,} of {len(codes):,} labels are -1, which means unknown: those "
        "points are not scored. If -1 is an identity, give it another label.",
        stacklevel=2,
    )
    return codes[known], known


def read_run_ids(folder: Path) -> Any:
    """The ids that the input of a run had, or None if it had none and rows were numbered."""
    from hilander.hierarchy.run_extras import DETAILS_FILE
    from hilander.hierarchy.storage import CLUSTERS_FILE
    from hilander.io.parquet import read_parquet_column

    described = folder / DETAILS_FILE
    if described.is_file():
        content = read_json(described)
        if isinstance(content, dict) and not content.get("input", {}).get("has_ids", True):
            return None
    path = folder / CLUSTERS_FILE
    if not path.is_file():
        raise SettingError(f"{path} does not exist; run `hilander cluster` again")
    return read_parquet_column(path, "id", ("id",))
