"""Comparison of two partitions of the same items: what one splits and the other merges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.explorer.api.payloads.paging import describe_items, round_number, wrap_page
from hilander.explorer.partition.summary import choose_exemplars
from hilander.explorer.session.explorer import REVIEWED, Explorer
from hilander.metrics.report import score_clustering

KINDS = ("split", "merge")
# Size of the matrix of overlaps: what fits a screen.
_MATRIX_ROWS, _MATRIX_COLUMNS = 24, 40
# Parts of a difference that are described, and exemplars of each: one row of the page.
_PARTS, _EXEMPLARS = 8, 5


@dataclass(frozen=True, eq=False)
class Overlap:
    """Number of items that each pair of clusters shares.

    Parameters
    ----------
    rows : ndarray of shape (n_shared,)
        Items that both partitions have, as rows of the opened run.
    ours, theirs : ndarray of shape (n_shared,)
        Their clusters in the reviewed partition and in the other one.
    names : list of str, optional
        Names of the other partition's clusters.
    cells : tuple of ndarray (ours, theirs, count)
        Pairs of clusters that share items, and how many.
    """

    rows: IntArray
    ours: IntArray
    theirs: IntArray
    names: list[str] | None
    cells: tuple[IntArray, IntArray, IntArray]


def compare_partitions(explorer: Explorer, key: str) -> dict[str, Any]:
    """Compare the reviewed clusters with another partition: scores, counts, a matrix.

    Parameters
    ----------
    explorer : Explorer
    key : str
        A key of `list_comparisons`.
    """
    payload: dict[str, Any] = explorer.cache_by_revision(
        f"compare {key}", lambda: _compare(explorer, key)
    )
    return payload


def _compare(explorer: Explorer, key: str) -> dict[str, Any]:
    overlap = match_partition(explorer, key)
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
        "scores": {name: round_number(value) for name, value in scores.to_dict().items()},
        "matrix": _matrix(overlap),
    }


def list_differences(
    explorer: Explorer, key: str, kind: str, offset: int, limit: int
) -> dict[str, Any]:
    """List the differences, those that concern most items first.

    "We" are the reviewed clusters, "they" the other partition. A *split* is one of our clusters
    whose items are in several of theirs. A *merge* is one of theirs whose items are in several of
    ours.
    """
    if kind not in KINDS:
        raise SettingError(f"kind {kind[:20]!r} is unknown; use {' or '.join(KINDS)}")
    overlap = match_partition(explorer, key)
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
            _describe_part(explorer, overlap, int(a[i]), int(b[i]), int(count[i]))
            for i in mine[:_PARTS]
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
    return wrap_page(entries, len(ranked), offset)


def match_partition(explorer: Explorer, key: str) -> Overlap:
    """Match the reviewed clusters with another partition."""
    overlap: Overlap = explorer.cache_by_revision(f"overlap {key}", lambda: _match(explorer, key))
    return overlap


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
        row_by_id = other.items.row_by_id
        ids = explorer.run.items.ids.to_pylist()
        matched = np.array([row_by_id.get(str(one), -1) for one in ids], dtype=np.int64)
        rows = np.flatnonzero(matched >= 0)
        if not len(rows):
            raise SettingError(f"run {name} has no item in common with this run; choose another")
        return rows, other.nested.tables[-1].labels[matched[rows]], None
    raise SettingError(f"there is nothing to compare with under {key[:60]!r}; pick one of the list")


def _describe_part(
    explorer: Explorer, overlap: Overlap, a: int, b: int, count: int
) -> dict[str, Any]:
    shared = overlap.rows[(overlap.ours == a) & (overlap.theirs == b)]
    shown = choose_exemplars(shared, _EXEMPLARS)
    return {
        "cluster": a,
        "other": _other_name(overlap, b),
        "count": count,
        "exemplars": describe_items(explorer.run, shown),
    }


def _matrix(overlap: Overlap) -> dict[str, Any]:
    """Return the rows of the overlap table in which the two partitions differ most."""
    a, b, count = overlap.cells
    total = np.bincount(a, weights=count).astype(np.int64)
    largest = np.zeros(len(total), dtype=np.int64)
    np.maximum.at(largest, a, count)
    worst = np.argsort(largest - total, kind="stable")[:_MATRIX_ROWS]
    worst = worst[(total - largest)[worst] > 0]
    rank = {cluster: place for place, cluster in enumerate(worst.tolist())}
    cells = np.flatnonzero(np.isin(a, worst))
    columns: dict[int, int] = {}
    # Columns in the order in which the rows use them, the largest cells first: this gives a
    # diagonal.
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
