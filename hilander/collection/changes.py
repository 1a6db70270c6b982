"""What an update changed: one row for each change, and the link that is the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.collection.cluster_ids import NEW, ClusterMatch
from hilander.io.files import write_table

CHANGES_FILE = "changes.parquet"
NONE = -1  # in place of a cluster that a change does not concern
# Name and type of each column.
COLUMNS: Mapping[str, Any] = {
    "update": np.int64,
    "change": str,
    "cluster": np.int64,
    "other": np.int64,
    "item": str,
    "link_from": str,
    "link_to": str,
    "linkage": np.float32,
}
Table = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Transition:
    """The clusters of some items before and after an update.

    Parameters
    ----------
    names : ndarray of shape (n_items,)
        Ids of the items.
    before, after : ndarray of shape (n_items,)
        Ids of their clusters; -1 before for an item that was not there.
    match : ClusterMatch
    removed : ndarray of shape (n_removed,)
        Ids of the items that are gone.
    removed_from : ndarray of shape (n_removed,)
        Ids of their clusters.
    """

    names: npt.NDArray[Any]
    before: IntArray
    after: IntArray
    match: ClusterMatch
    removed: npt.NDArray[Any]
    removed_from: IntArray


@dataclass(frozen=True, eq=False)
class _Edges:
    """Edges in both directions: ends, and linkage."""

    left: IntArray
    right: IntArray
    linkage: FloatArray

    def best_of(self, key: IntArray, is_kept: BoolArray) -> dict[int, tuple[int, int, float]]:
        """The most probable edge of each key, among those that are kept."""
        at = np.flatnonzero(is_kept)
        at = at[np.lexsort((-self.linkage[at], key[at]))]
        first = at[np.r_[True, np.diff(key[at]) != 0]] if len(at) else at
        ends = zip(self.left[first], self.right[first], self.linkage[first], strict=True)
        found = ((int(one), int(other), float(p)) for one, other, p in ends)
        return dict(zip(key[first].tolist(), found, strict=True))


def describe_changes(
    number: int,
    moved: Transition,
    neighbours: IntArray | None = None,
    linkage: FloatArray | None = None,
) -> Table:
    """The changes of an update as columns, see `COLUMNS`.

    ============ ========================================================================
    `new`        a cluster of inserted items; no link
    `merged`     `other` ended in `cluster`; the most probable edge between their members
    `split`      `other` left `cluster`; the most probable edge that is left between them
    `joined`     `item` came to `cluster`, from `other`; its most probable edge inside
    `left`       `item` was removed from `cluster`, or went to `other`
    ============ ========================================================================

    Parameters
    ----------
    number : int
        Of the update, from 1.
    moved : Transition
    neighbours, linkage : ndarray of shape (n_items, k), optional
        The graph of the items.
    """
    edges = _list_edges(moved, neighbours, linkage)
    rows: list[tuple[Any, ...]] = []
    names = moved.names.astype(str)

    def add(change: str, cluster: int, other: int, item: str, link: Any) -> None:
        ends = ("", "", np.nan) if link is None else (names[link[0]], names[link[1]], link[2])
        rows.append((number, change, cluster, other, item, *ends))

    for change, pairs, of in (
        ("merged", moved.match.merged, moved.before),
        ("split", moved.match.split, moved.after),
    ):
        links = _links_between(edges, pairs, of)
        for place, (cluster, other) in enumerate(pairs.tolist()):
            add(change, cluster, other, "", links.get(place))
    known = moved.before != NEW
    explained = _pairs_of(moved)
    is_other = known & (moved.before != moved.after)
    is_other &= ~np.isin(_pair_keys(moved.before, moved.after), explained)
    came = np.flatnonzero(is_other | ~known)
    fresh = np.setdiff1d(moved.after[came], np.r_[moved.after[known], moved.before[known]])
    for cluster in fresh.tolist():
        add("new", cluster, NONE, "", None)
    inside = moved.after[edges.left] == moved.after[edges.right]
    links = edges.best_of(edges.left, inside & np.isin(edges.left, came))
    for row in came.tolist():
        add("joined", moved.after[row], moved.before[row], names[row], links.get(row))
        if known[row]:
            add("left", moved.before[row], moved.after[row], names[row], None)
    for item, cluster in zip(moved.removed.astype(str), moved.removed_from.tolist(), strict=True):
        add("left", cluster, NONE, item, None)
    return to_table(rows)


def to_table(rows: list[tuple[Any, ...]]) -> Table:
    """Columns of rows; without rows they are empty."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in COLUMNS)
    return {
        name: np.array(list(values), dtype=kind)
        for (name, kind), values in zip(COLUMNS.items(), columns, strict=True)
    }


def join_tables(earlier: Table, later: Table) -> Table:
    """Two tables of changes, one after the other."""
    return {name: np.concatenate([earlier[name], later[name]]) for name in COLUMNS}


def count_changes(table: Table) -> dict[str, int]:
    """Number of changes of each kind."""
    kinds, counts = np.unique(table["change"], return_counts=True)
    return dict(zip(kinds.tolist(), counts.tolist(), strict=True))


def write_changes(table: Table, folder: Any) -> None:
    """Write the changes into an open run folder."""
    write_table(folder / CHANGES_FILE, {name: _plain(one) for name, one in table.items()})


def _plain(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return column.astype(object) if column.dtype.kind == "U" else column


def _list_edges(
    moved: Transition, neighbours: IntArray | None, linkage: FloatArray | None
) -> _Edges:
    """Edges at items whose clusters changed, in both directions."""
    nothing = np.arange(0)
    if neighbours is None or linkage is None:
        return _Edges(nothing, nothing, nothing.astype(np.float32))
    concerned = np.r_[moved.match.merged.ravel(), moved.match.split.ravel()]
    rows = moved.before != moved.after
    rows |= np.isin(moved.before, concerned) | np.isin(moved.after, concerned)
    touched = rows | rows[neighbours].any(axis=1)
    at = np.flatnonzero(touched)
    one, other, p = np.repeat(at, neighbours.shape[1]), neighbours[at].ravel(), linkage[at].ravel()
    return _Edges(np.r_[one, other], np.r_[other, one], np.r_[p, p])


def _links_between(
    edges: _Edges, pairs: IntArray, cluster: IntArray
) -> dict[int, tuple[int, int, float]]:
    """The most probable edge between the two clusters of each pair, by the place of the pair."""
    if not len(pairs):
        return {}
    keys = _pair_keys(pairs[:, 0], pairs[:, 1])
    order = np.argsort(keys)
    key = _pair_keys(cluster[edges.left], cluster[edges.right])
    at = np.minimum(np.searchsorted(keys[order], key), len(keys) - 1)
    return edges.best_of(order[at], keys[order][at] == key)


def _pairs_of(moved: Transition) -> IntArray:
    """Keys of the pairs (before, after) that merges and splits explain."""
    merged, split = moved.match.merged, moved.match.split
    keys = [_pair_keys(merged[:, 1], merged[:, 0]), _pair_keys(split[:, 0], split[:, 1])]
    return np.concatenate(keys)


def _pair_keys(one: IntArray, other: IntArray) -> IntArray:
    return np.asarray((one.astype(np.int64) << 32) + other, dtype=np.int64)
