"""Options that say what is known of the points beforehand."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.errors import FileFormatError
from hilander.io.files import EmbeddingFile, read_labels
from hilander.io.pair_files import PairFile, read_pairs
from hilander.io.tables import read_column

if TYPE_CHECKING:
    from hilander.hierarchy.constraints.constraints import Constraints

Pairs = list[tuple[str, str]]


def add_known_options(parser: argparse.ArgumentParser) -> None:
    """Add what is known of the points that are clustered."""
    group = parser.add_argument_group(
        "what is known", "it holds at every level; contradictions are an error"
    )
    group.add_argument(
        "--together",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="pairs of ids of one identity: .csv, .tsv, .json or .parquet with the columns id_a "
        "and id_b, or two columns without names; row numbers from 0 if EMB has no ids; can be "
        "repeated",
    )
    group.add_argument(
        "--apart",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="pairs of ids of two identities, as for --together",
    )
    add_pairs(group)
    group.add_argument(
        "--together-column",
        metavar="NAME",
        action="append",
        default=[],
        help="column of EMB: rows that share a value, such as a track, are of one identity; can be "
        "repeated",
    )
    group.add_argument(
        "--apart-column",
        metavar="NAME",
        action="append",
        default=[],
        help="column of EMB: rows that share a value, such as a photo, are of different "
        "identities; can be repeated",
    )
    group.add_argument(
        "--known-labels",
        metavar="LABELS",
        type=Path,
        help="file with the identities of some points, as for `hilander train --labels`; an empty "
        "label is unknown",
    )
    add_review(group, "hold its decisions; RUN's own review is used without this option")
    group.add_argument(
        "--no-review",
        action="store_true",
        help="do not use the review of the run that is replaced",
    )


def add_pairs(group: Any) -> None:
    """Add --pairs."""
    group.add_argument(
        "--pairs",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="pairs that the explorer exported: columns id_a, id_b and link, which is must or "
        "cannot; can be repeated",
    )


def add_review(group: Any, effect: str) -> None:
    """Add --review."""
    group.add_argument(
        "--review",
        metavar="RUN",
        type=Path,
        action="append",
        default=[],
        help=f"reviewed run, matched by id: {effect}; can be repeated",
    )


def read_known(
    args: argparse.Namespace, file: EmbeddingFile
) -> tuple[Constraints | None, list[str]]:
    """What the options say of the points of a file.

    Returns
    -------
    constraints : Constraints of n_points points, or None for nothing
    lines : list of str
        What was read, for the user.
    """
    from hilander.hierarchy.constraints.building import Knowledge, build_constraints
    from hilander.hierarchy.constraints.constraints import check_fits

    ids, lines = ids_of(file), []
    must, cannot = read_pair_options(args)
    if args.apart or args.together or args.pairs:
        lines.append(f"pairs: {len(must):,} together, {len(cannot):,} apart")
    reviewed = read_reviews(args, ids, lines)
    must, cannot = must + reviewed.must, cannot + reviewed.cannot
    columns = {"together": args.together_column, "apart": args.apart_column}
    codes = {
        kind: [encode_column(read_column(file.source, name), name, len(ids)) for name in names]
        for kind, names in columns.items()
    }
    known = None if args.known_labels is None else _read_known_labels(args.known_labels, file)
    if not (must or cannot or any(codes.values()) or known is not None):
        return None, lines
    knowledge = Knowledge(must, cannot, codes["together"], codes["apart"], known)
    constraints = build_constraints(len(ids), knowledge, ids)
    counts = constraints.describe()
    lines.append(
        f"known: {counts['must_linked_points']:,} points in must-links, {counts['apart_groups']:,} "
        f"groups apart, {counts['known_labels']:,} labels"
    )
    return check_fits(constraints, len(ids)), lines


def read_training_knowledge(
    args: argparse.Namespace, file: EmbeddingFile, labels: Any
) -> tuple[Any, Constraints | None, list[str]]:
    """What --pairs and --review say of the points of a training file.

    Parameters
    ----------
    args : Namespace of ``hilander train``
    file : EmbeddingFile
    labels : array-like of shape (n_points,), or None
        Without labels, each corrected cluster of a review that a decision concerns is an identity.

    Returns
    -------
    labels : array-like of shape (n_points,)
    constraints : Constraints of n_points points, or None
    lines : list of str
        What was read, for the user.
    """
    from hilander.explorer.review.knowledge import read_review
    from hilander.hierarchy.constraints.building import Knowledge, build_constraints

    if not (args.pairs or args.review):
        return labels, None, []
    ids, lines = ids_of(file), []
    must, cannot = read_pair_options(args)
    if args.pairs:
        lines.append(f"pairs: {len(must):,} together, {len(cannot):,} apart")
    reviewed = read_reviews(args, ids, lines)
    constraints = build_constraints(
        len(ids), Knowledge(must + reviewed.must, cannot + reviewed.cannot), ids
    )
    if labels is not None:
        return labels, constraints, lines
    codes, row_of = np.full(len(ids), -1), {name: row for row, name in enumerate(ids.tolist())}
    for number, run in enumerate(args.review):
        for name, group in read_review(run).groups.items():
            if name in row_of:
                codes[row_of[name]] = group * len(args.review) + number
    linked = constraints.linked[codes[constraints.linked] < 0]
    codes[linked] = codes.max() + 1 + constraints.component[linked]
    n_identities = len(np.unique(codes[codes >= 0]))
    lines.append(f"identities to learn from: {n_identities:,}, as the answers name them")
    return codes, constraints, lines


def ids_of(file: EmbeddingFile) -> npt.NDArray[Any]:
    """The ids of a file as text, or its row numbers, shape (n_points,)."""
    rows = np.arange(len(file.features)) if file.ids is None else file.ids
    return np.asarray(rows).astype(str)


def read_pair_options(args: argparse.Namespace) -> tuple[Pairs, Pairs]:
    """The pairs of --together, --apart and --pairs."""
    must: Pairs = []
    cannot: Pairs = []
    for path in getattr(args, "together", []):
        found = read_pairs(path)
        must += found.plain + found.must
    for path in getattr(args, "apart", []):
        found = read_pairs(path)
        cannot += found.plain + found.cannot
    for path in args.pairs:
        found = read_pairs(path)
        if found.plain:
            raise FileFormatError(
                f"{path} has no column link, expected must or cannot for each pair; add it, or use "
                "--together or --apart of `hilander cluster`"
            )
        must += found.must
        cannot += found.cannot
    return must, cannot


def read_reviews(args: argparse.Namespace, ids: npt.NDArray[Any], lines: list[str]) -> PairFile:
    """The pairs of the reviews, of points that are here; adds a line on each review."""
    from hilander.explorer.review.knowledge import find_review, read_review

    runs: list[Path] = list(args.review)
    own = getattr(args, "output", None)
    if own is not None and not getattr(args, "no_review", True) and find_review(own) is not None:
        runs.append(own)
    here, found = set(ids.tolist()), PairFile()
    for run in runs:
        review = read_review(run)
        must, cannot = keep_present(review.must, here), keep_present(review.cannot, here)
        found.must.extend(must)
        found.cannot.extend(cannot)
        n_kept = len(must) + len(cannot)
        if review.n_pairs:
            lines.append(
                f"review of {run}: {n_kept:,} decisions on pairs hold"
                + (f", {review.n_pairs - n_kept:,} are of other points" * (n_kept < review.n_pairs))
            )
    return found


def keep_present(pairs: Iterable[tuple[str, str]], here: set[str]) -> Pairs:
    """The pairs of which both points are here."""
    return [pair for pair in pairs if pair[0] in here and pair[1] in here]


def encode_column(values: npt.NDArray[Any], name: str, n_points: int) -> IntArray:
    """Codes of the values of a column; -1 where it is empty, null or -1.

    Parameters
    ----------
    values : ndarray of shape (n_points,)
    name : str
        For errors.
    n_points : int
    """
    from hilander.embeddings.partial_labels import encode_partly

    if values.shape != (n_points,):
        raise FileFormatError(
            f"column {name!r} has the shape {values.shape}, expected one value for each of the "
            f"{n_points:,} embeddings; name another column"
        )
    return encode_partly(values, n_points)[0]


def _read_known_labels(path: Path, file: EmbeddingFile) -> IntArray:
    from hilander.embeddings.partial_labels import encode_partly

    n_points = len(file.features)
    labels = read_labels(path, n_rows=n_points, ids=file.ids, may_miss=True)
    return encode_partly(labels, n_points)[0]
