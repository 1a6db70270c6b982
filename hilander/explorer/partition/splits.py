"""Every part that could leave its group: nodes of the merge tree, with their links to the rest.

A part is a node of the merge tree, restricted to its group; a single point is one too. One pass
over the edges inside the groups gives the links of all parts, because a node is a range of the leaf
order and the edges inside a range are sums of prefixes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.explorer.run.graph import RunGraph
from hilander.explorer.run.leaf_order import LeafOrder

FloatSums = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Splits:
    """Parts that could leave their groups.

    Parameters
    ----------
    node : ndarray of shape (n_parts,)
        Node of the merge tree; the part is what the group has of it.
    group : ndarray of shape (n_parts,)
    low, high : ndarray of shape (n_parts,)
        Range of the places of the leaf order that holds the part.
    size, rest : ndarray of shape (n_parts,)
        Points of the part, and of the rest of its group.
    total, count : ndarray of shape (n_parts,), float64
        Summed linkage of the edges between the part and the rest, and their number.
    total_inside, count_inside : ndarray of shape (n_parts,), float64
        The same of all edges inside the group.
    """

    node: IntArray
    group: IntArray
    low: IntArray
    high: IntArray
    size: IntArray
    rest: IntArray
    total: FloatSums
    count: FloatSums
    total_inside: FloatSums
    count_inside: FloatSums

    def take(self, chosen: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Splits:
        """Return some of the parts."""
        return Splits(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    @staticmethod
    def join(several: list[Splits]) -> Splits:
        """Return the parts of several together."""
        names = Splits.__dataclass_fields__
        return Splits(*(np.concatenate([getattr(one, name) for one in several]) for name in names))


def find_splits(
    leaves: LeafOrder, graph: RunGraph, labels: IntArray, rows: IntArray | None = None
) -> Splits:
    """Find every part that could leave its group.

    Parameters
    ----------
    leaves : LeafOrder
    graph : RunGraph
    labels : ndarray of shape (n_points,)
        Group of each point.
    rows : ndarray of shape (n_rows,), optional
        All points of the groups to look at; by default all points.

    Returns
    -------
    splits : Splits
    """
    places = np.arange(leaves.n_points) if rows is None else np.sort(leaves.place[rows])
    points = leaves.order[places]
    groups = labels[points]
    order = np.argsort(groups, kind="stable")
    places, points, groups = places[order], points[order], groups[order]
    bounds = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    sizes = np.diff(np.append(bounds, len(points)))
    group_size = np.repeat(sizes, sizes)
    joins = _joins_between(leaves, places, groups)
    low, high = _ranges(joins)
    is_merge = joins < leaves.n_merges
    node = np.concatenate((points, leaves.n_points + joins[is_merge]))
    first = np.concatenate((np.arange(len(points)), low[is_merge]))
    last = np.concatenate((np.arange(len(points)) + 1, high[is_merge]))
    group_first = np.repeat(bounds, sizes)[first]
    group_last = group_first + group_size[first]
    proper = last - first < group_size[first]
    node, first, last, group_first, group_last = (
        one[proper] for one in (node, first, last, group_first, group_last)
    )
    edges = _Edges.inside(graph, labels, points, leaves.n_points, joins)
    size = last - first
    return Splits(
        node,
        groups[first],
        places[first],
        places[last - 1] + 1,
        size,
        group_last - group_first - size,
        edges.cut(edges.total, first, last),
        edges.cut(edges.count, first, last),
        edges.within(edges.total, group_first, group_last),
        edges.within(edges.count, group_first, group_last),
    )


def _joins_between(leaves: LeafOrder, places: IntArray, groups: IntArray) -> IntArray:
    """Merge that joins each of the places with the next one; above all merges between groups."""
    if len(places) < 2:
        return np.empty(0, dtype=np.int64)
    apart = groups[1:] != groups[:-1]
    joins = np.full(len(places) - 1, leaves.n_merges, dtype=np.int64)
    for begin, end in _runs(~apart):
        inside = places[begin : end + 1]
        span = leaves.between[inside[0] : inside[-1]]
        joins[begin:end] = np.maximum.reduceat(span, inside[:-1] - inside[0])
    # Joins that the tree does not have are told apart, so that every range is nested.
    missing = np.flatnonzero(joins >= leaves.n_merges)
    joins[missing] += np.arange(len(missing))
    joins[apart] += len(places)
    return joins


def _runs(inside: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Begin and end of each run of true values."""
    padded = np.concatenate(([False], inside, [False])).astype(np.int8)
    steps = np.diff(padded)
    return list(
        zip(np.flatnonzero(steps == 1).tolist(), np.flatnonzero(steps == -1).tolist(), strict=True)
    )


def _ranges(joins: IntArray) -> tuple[IntArray, IntArray]:
    """Range of the positions that each join holds together: up to the next larger join."""
    values = joins.tolist()
    low, high = [0] * len(values), [len(values) + 1] * len(values)
    pending: list[int] = []
    for here, value in enumerate(values):
        while pending and values[pending[-1]] < value:
            high[pending.pop()] = here + 1
        low[here] = pending[-1] + 1 if pending else 0
        pending.append(here)
    return np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Edges:
    """Sums over the edges inside groups.

    Parameters
    ----------
    total, count : tuple of two ndarrays
        Prefix sums of the linkage, and of 1: by the ends of the edges, and by their joins.
    """

    total: tuple[FloatSums, FloatSums]
    count: tuple[FloatSums, FloatSums]

    @classmethod
    def inside(
        cls, graph: RunGraph, labels: IntArray, points: IntArray, n_all: int, joins: IntArray
    ) -> _Edges:
        """Sum the edges whose two ends are in one group."""
        position = np.full(n_all, -1, dtype=np.int64)
        position[points] = np.arange(len(points))
        neighbours = np.asarray(graph.neighbours[points])
        inside = (labels[neighbours] == labels[points][:, None]) & (neighbours != points[:, None])
        here, place = np.nonzero(inside)
        there = position[neighbours[here, place]]
        linkage = np.asarray(graph.linkage[points])[here, place].astype(np.float64)
        join = _RangeMaximum(joins).find(np.minimum(here, there), np.maximum(here, there))
        sums = []
        for values in (linkage, np.ones_like(linkage)):
            ends = np.bincount(here, values, len(points)) + np.bincount(there, values, len(points))
            by_join = np.bincount(join, values, max(len(joins), 1))
            sums.append((np.append(0.0, np.cumsum(ends)), np.append(0.0, np.cumsum(by_join))))
        return cls(*sums)

    @staticmethod
    def within(sums: tuple[FloatSums, FloatSums], first: IntArray, last: IntArray) -> FloatSums:
        """Sum the edges with both ends in each range."""
        return np.maximum(sums[1][last - 1] - sums[1][first], 0)

    @classmethod
    def cut(cls, sums: tuple[FloatSums, FloatSums], first: IntArray, last: IntArray) -> FloatSums:
        """Sum the edges with one end in each range."""
        ends = sums[0][last] - sums[0][first]
        return np.maximum(ends - 2 * cls.within(sums, first, last), 0)


class _RangeMaximum:
    """Position of the largest value between two positions, for many pairs at once."""

    def __init__(self, values: IntArray) -> None:
        self.values = values
        self.tables = [np.arange(len(values))]
        width = 1
        while 2 * width <= len(values):
            below = self.tables[-1]
            left, right = below[:-width], below[width:]
            self.tables.append(np.where(values[left] >= values[right], left, right))
            width *= 2

    def find(self, low: IntArray, high: IntArray) -> IntArray:
        """Return the position of the largest value in each range from low to before high."""
        found = np.zeros(len(low), dtype=np.int64)
        length = high - low
        level = np.zeros(len(low), dtype=np.int64)
        level[length > 0] = np.floor(np.log2(length[length > 0])).astype(np.int64)
        for number in np.unique(level).tolist():
            chosen = np.flatnonzero((level == number) & (length > 0))
            table = self.tables[number]
            left, right = table[low[chosen]], table[high[chosen] - (1 << number)]
            found[chosen] = np.where(self.values[left] >= self.values[right], left, right)
        return found
