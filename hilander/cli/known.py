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
    from hilander.collection.cluster_ids import Reviewed
    from hilander.collection.known import Known
    from hilander.hierarchy.constraints.constraints import Constraints

Pairs = list[tuple[str, str]]


def add_known_options(
    parser: argparse.ArgumentParser, own_review: str = "the run that is replaced"
) -> None:
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
        help=f"do not use the review of {own_review}",
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
) -> tuple[Constraints | None, Known | None, list[str]]:
    """What the options say of the points of a file.

    Returns
    -------
    constraints : Constraints of n_points points, or None for nothing
    known : Known, or None for nothing
        The same without the review of the run that is replaced, for later updates.
    lines : list of str
        What was read, for the user.
    """
    from hilander.collection.known import (
        APART,
        TOGETHER,
        Column,
        Known,
        News,
        encode_values,
        hold_review,
    )
    from hilander.hierarchy.constraints.building import Knowledge, build_constraints
    from hilander.hierarchy.constraints.constraints import check_fits

    ids = ids_of(file)
    lines: list[str] = []
    names, n_points = ids.tolist(), len(ids)
    must, cannot = read_pair_options(args, lines)
    others = read_reviews(args.review, ids, lines)
    own = read_reviews(find_own_review(args, args.output), ids, lines)
    asked = {TOGETHER: args.together_column, APART: args.apart_column}
    columns = [
        Column.of_values(kind, name, read_column(file.source, name), n_points)
        for kind, chosen in asked.items()
        for name in chosen
    ]
    known: IntArray | None = None
    labels: list[str] = []
    if args.known_labels is not None:
        given = read_labels(args.known_labels, n_rows=n_points, ids=file.ids, may_miss=True)
        known, labels = encode_values(given, n_points, "label")
    together, apart = (
        [column.codes for column in columns if column.kind == kind] for kind in (TOGETHER, APART)
    )
    knowledge = Knowledge(must + others.must, cannot + others.cannot, together, apart, known)
    constraints = build_constraints(n_points, knowledge, ids)
    clusters = read_reviewed(args, args.output)
    news = News(review=(own.must, own.cannot), clusters=clusters)
    held, conflicts = hold_review(constraints, news, names)
    lines += describe_conflicts(conflicts)
    if held.is_empty and not columns:
        return None, None, lines
    counts = held.describe()
    lines.append(
        f"known: {counts['must_linked_points']:,} points in must-links, {counts['apart_groups']:,} "
        f"groups apart, {counts['known_labels']:,} labels"
    )
    return check_fits(held, n_points), Known(constraints, columns, labels), lines


def describe_conflicts(conflicts: list[str]) -> list[str]:
    """Lines on the decisions of a review that contradict what else is known."""
    if not conflicts:
        return []
    return [
        f"conflicts: {len(conflicts):,} decisions of the review contradict what else is known and "
        "do not hold; `hilander explore` lists those that the run breaks, to choose",
        *(f"  {one}" for one in conflicts),
    ]


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
    ids = ids_of(file)
    lines: list[str] = []
    must, cannot = read_pair_options(args, lines)
    reviewed = read_reviews(args.review, ids, lines)
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


def read_pair_options(args: argparse.Namespace, lines: list[str]) -> tuple[Pairs, Pairs]:
    """The pairs of --together, --apart and --pairs; adds a line if there are such options."""
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
    if args.pairs or getattr(args, "together", []) or getattr(args, "apart", []):
        lines.append(f"pairs: {len(must):,} together, {len(cannot):,} apart")
    return must, cannot


def find_own_review(args: argparse.Namespace, run: Path) -> list[Path]:
    """The run, if its own review is to be held."""
    from hilander.explorer.review.knowledge import find_review

    return [] if args.no_review or find_review(run) is None else [run]


def read_reviewed(args: argparse.Namespace, run: Path) -> Reviewed | None:
    """The clusters of a run as its own review leaves them; None without a review to be held."""
    from hilander.explorer.review.knowledge import read_review

    return next((read_review(one).clusters for one in find_own_review(args, run)), None)


def read_reviews(runs: list[Path], ids: npt.NDArray[Any], lines: list[str]) -> PairFile:
    """The pairs of some reviews, of points that are here; adds a line on each review."""
    from hilander.explorer.review.knowledge import read_review

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
