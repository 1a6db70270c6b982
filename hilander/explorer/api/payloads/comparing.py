"""Two partitions of the same items side by side: what one splits and the other merges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.explorer.api.payloads.paging import describe_items, number, page_of
from hilander.explorer.partition.summary import spread_out
from hilander.explorer.session.explorer import REVIEWED, Explorer
from hilander.metrics.report import score_clustering

KINDS = ("split", "merge")
_MATRIX_ROWS, _MATRIX_COLUMNS = 24, 40
_PIECES = 8


@dataclass(frozen=True, eq=False)
class Overlap:
    """How many items each pair of clusters shares.

    Parameters
    ----------
    rows : ndarray of shape (n_shared,)
        Items that both sides have, as rows of the run that is open.
    ours, theirs : ndarray of shape (n_shared,)
        Their clusters on both sides.
    names : list of str, optional
        What the other side's clusters are called.
    cells : tuple of ndarray (ours, theirs, count)
        Pairs of clusters that share items.
    """

    rows: IntArray
    ours: IntArray
    theirs: IntArray
    names: list[str] | None
    cells: tuple[IntArray, IntArray, IntArray]


def compare(explorer: Explorer, key: str) -> dict[str, Any]:
    """Tell how the reviewed clusters differ from another partition: scores, counts, a matrix."""
    told: dict[str, Any] = explorer.remember(f"compare {key}", lambda: _tell(explorer, key))
    return told


def _tell(explorer: Explorer, key: str) -> dict[str, Any]:
    overlap = overlap_with(explorer, key)
    a, b, count = overlap.cells
    per_a = np.bincount(a)
    per_b = np.bincount(b)
    identical = (per_a[a] == 1) & (per_b[b] == 1)
    scores = score_clustering(overlap.theirs, overlap.ours)
    return {
        "key": key,
        "n_shared": len(overlap.rows),
        "n_ours": int((per_a > 0).sum()),
        "n_theirs": int((per_b > 0).sum()),
        "n_identical": int(identical.sum()),
        "points_identical": int(count[identical].sum()),
        "n_split": int((per_a > 1).sum()),
        "n_merged": int((per_b > 1).sum()),
        "scores": {name: number(value) for name, value in scores.to_dict().items()},
        "matrix": _matrix(overlap),
    }


def differences(explorer: Explorer, key: str, kind: str, offset: int, limit: int) -> dict[str, Any]:
    """List the differences, those that touch most items first.

    A *split* is one of our clusters whose items are in several of theirs; a *merge* is one of
    theirs whose items are in several of ours.
    """
    if kind not in KINDS:
        raise SettingError(f"kind {kind[:20]!r} is unknown; use {' or '.join(KINDS)}")
    overlap = overlap_with(explorer, key)
    a, b, count = overlap.cells
    whole = a if kind == "split" else b
    total = np.bincount(whole, weights=count).astype(np.int64)
    largest = np.zeros(len(total), dtype=np.int64)
    np.maximum.at(largest, whole, count)
    misplaced = total - largest
    ranked = np.argsort(-misplaced, kind="stable")[: int((misplaced > 0).sum())]
    entries = []
    for cluster in ranked[offset : offset + limit].tolist():
        mine = np.flatnonzero(whole == cluster)
        mine = mine[np.argsort(-count[mine], kind="stable")]
        pieces = [
            _piece(explorer, overlap, int(a[i]), int(b[i]), int(count[i])) for i in mine[:_PIECES]
        ]
        entries.append(
            {
                "kind": kind,
                "cluster": cluster if kind == "split" else None,
                "other": _other_name(overlap, cluster) if kind == "merge" else None,
                "size": int(total[cluster]),
                "misplaced": int(misplaced[cluster]),
                "n_pieces": len(mine),
                "pieces": pieces,
            }
        )
    return page_of(entries, len(ranked), offset)


def overlap_with(explorer: Explorer, key: str) -> Overlap:
    """Match the reviewed clusters with another partition, and remember it."""
    made: Overlap = explorer.remember(f"overlap {key}", lambda: _match(explorer, key))
    return made


def _match(explorer: Explorer, key: str) -> Overlap:
    ours = explorer.grouping(REVIEWED).labels
    rows, theirs, names = _other_side(explorer, key)
    mine = ours[rows]
    width = int(theirs.max()) + 1 if len(theirs) else 1
    cells, count = np.unique(mine * width + theirs, return_counts=True)
    return Overlap(rows, mine, theirs, names, (cells // width, cells % width, count))


def _other_side(explorer: Explorer, key: str) -> tuple[IntArray, IntArray, list[str] | None]:
    every = np.arange(explorer.run.n_points)
    kind, _, name = key.partition(":")
    if key == "labels" and explorer.run.items.labels is not None:
        known = explorer.run.items.labels
        return every, known.codes, [str(value) for value in known.names.tolist()]
    if kind == "level":
        chosen = explorer.base if name == "original" else explorer.grouping(name)
        return every, chosen.labels, None
    if kind == "run" and name in explorer.others:
        other = explorer.others[name]
        place = other.items.row_by_id
        ids = explorer.run.items.ids.to_pylist()
        matched = np.array([place.get(str(one), -1) for one in ids], dtype=np.int64)
        rows = np.flatnonzero(matched >= 0)
        if not len(rows):
            raise SettingError(f"run {name} has no item in common with this run; compare another")
        return rows, other.nested.tables[-1].labels[matched[rows]], None
    raise SettingError(f"there is nothing to compare with under {key[:60]!r}; pick one of the list")


def _piece(explorer: Explorer, overlap: Overlap, a: int, b: int, count: int) -> dict[str, Any]:
    shared = overlap.rows[(overlap.ours == a) & (overlap.theirs == b)]
    shown = spread_out(shared, 5)
    return {
        "cluster": a,
        "other": _other_name(overlap, b),
        "count": count,
        "exemplars": describe_items(explorer.run, shown),
    }


def _matrix(overlap: Overlap) -> dict[str, Any]:
    """The part of the table of overlaps where the two differ most."""
    a, b, count = overlap.cells
    total = np.bincount(a, weights=count).astype(np.int64)
    largest = np.zeros(len(total), dtype=np.int64)
    np.maximum.at(largest, a, count)
    worst = np.argsort(largest - total, kind="stable")[:_MATRIX_ROWS]
    worst = worst[(total - largest)[worst] > 0]
    rank = {cluster: place for place, cluster in enumerate(worst.tolist())}
    cells = np.flatnonzero(np.isin(a, worst))
    columns: dict[int, int] = {}
    # Columns in the order in which the rows meet them, the largest pieces first: a diagonal.
    for cell in sorted(cells.tolist(), key=lambda i: (rank[int(a[i])], -int(count[i]))):
        if len(columns) < _MATRIX_COLUMNS:
            columns.setdefault(int(b[cell]), len(columns))
    shown = [
        [rank[int(a[i])], columns[int(b[i])], int(count[i])] for i in cells if int(b[i]) in columns
    ]
    met = {row for row, _, _ in shown}
    last = max(met, default=-1) + 1
    return {
        "rows": worst.tolist()[:last],
        "columns": [_other_name(overlap, column) for column in columns],
        "cells": shown,
    }


def _other_name(overlap: Overlap, cluster: int) -> str:
    return str(cluster) if overlap.names is None else overlap.names[cluster]
