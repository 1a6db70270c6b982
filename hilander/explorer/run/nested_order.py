"""An order of the points in which every cluster of every level is a contiguous range.

Levels only merge clusters, so one order serves all levels. A cluster is then a start and a size.
Its members, its sub-clusters and the drawing of the whole tree need no search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.hierarchy.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class LevelTable:
    """The clusters of one level.

    Clusters of the last level are numbered by their ids. A number that is no id has size 0.

    Parameters
    ----------
    labels : ndarray of shape (n_points,)
        Cluster of each point.
    sizes, starts : ndarray of shape (n_numbers,)
        Range of the order that each cluster occupies.
    ranked, places : ndarray of shape (n_clusters,)
        The clusters sorted by start, and those starts.
    peaks : ndarray of shape (n_numbers,)
        Peak point of each cluster; -1 for none.
    weakest : ndarray of shape (n_numbers,), float32, in [0, 1]
        Linkage of the weakest merge inside each cluster, 1 where nothing was merged. At the first
        level these are merges of points; at later levels only merges of clusters count.
    quality : ndarray of shape (n_numbers,), float32, in [0, 1]
        Mean confidence of the members.
    """

    labels: IntArray
    sizes: IntArray
    starts: IntArray
    ranked: IntArray
    places: IntArray
    peaks: IntArray
    weakest: FloatArray
    quality: FloatArray

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.ranked)

    @property
    def n_numbers(self) -> int:
        """Numbers of clusters are below this."""
        return len(self.sizes)

    @property
    def mean_quality(self) -> float:
        """Mean quality of the clusters."""
        return float(self.quality[self.ranked].mean())

    def renumber(self, numbers: IntArray, n_numbers: int) -> LevelTable:
        """The same clusters with other numbers, all below `n_numbers`."""

        def spread(values: npt.NDArray[Any], empty: float) -> npt.NDArray[Any]:
            found = np.full(n_numbers, empty, dtype=values.dtype)
            found[numbers] = values
            return found

        return replace(
            self,
            labels=numbers[self.labels],
            ranked=numbers[self.ranked],
            sizes=spread(self.sizes, 0),
            starts=spread(self.starts, 0),
            peaks=spread(self.peaks, -1),
            weakest=spread(self.weakest, 1),
            quality=spread(self.quality, 1),
        )


@dataclass(frozen=True, eq=False)
class NestedOrder:
    """The order of the points and the tables of all levels.

    Parameters
    ----------
    order : ndarray of shape (n_points,)
        The points in order; within a first-level cluster the densest first.
    tables : tuple of LevelTable, the finest first
    """

    order: IntArray
    tables: tuple[LevelTable, ...]

    def members(self, level: int, cluster: int) -> IntArray:
        """Return the points of a cluster, in order."""
        table = self.tables[level]
        start = int(table.starts[cluster])
        return self.order[start : start + int(table.sizes[cluster])]

    def children(self, level: int, cluster: int) -> IntArray:
        """Return the clusters of the level below that a cluster consists of, the largest first."""
        if level == 0:
            return np.empty(0, dtype=np.int64)
        table, below = self.tables[level], self.tables[level - 1]
        start = table.starts[cluster]
        first = np.searchsorted(below.places, start)
        last = np.searchsorted(below.places, start + table.sizes[cluster])
        return below.ranked[first:last]

    def cluster_of(self, level: int, node: int) -> int:
        """Return the cluster of a node of a level: of a point, or a cluster of the level below."""
        point = node if level == 0 else int(self.tables[level - 1].peaks[node])
        return int(self.tables[level].labels[point])


def build_nested_order(hierarchy: Hierarchy, n_numbers: int | None = None) -> NestedOrder:
    """Compute the order and the tables.

    Parameters
    ----------
    hierarchy : Hierarchy of n_points points
    n_numbers : int, optional
        Ids of clusters are below this; by default, one more than the highest.

    Returns
    -------
    nested : NestedOrder
    """
    n_levels = hierarchy.n_levels
    sizes = [hierarchy.sizes(level) for level in range(n_levels)]
    ranked: list[IntArray] = [np.empty(0, dtype=np.int64)] * n_levels
    rank_above: IntArray | None = None
    for level in range(n_levels - 1, -1, -1):
        keys: tuple[IntArray, ...] = (-sizes[level],)
        if rank_above is not None:
            keys = (*keys, rank_above[hierarchy.merges(level)])
        ranked[level] = np.lexsort(keys)
        rank_above = np.empty_like(ranked[level])
        rank_above[ranked[level]] = np.arange(len(rank_above))
    if rank_above is None:
        raise AssertionError("a hierarchy has at least one level")
    order = order_by_density(rank_above[hierarchy.labels(0)], hierarchy.density)
    weakest = _weakest_links(hierarchy)
    confidence = hierarchy.confidence
    tables = []
    for level in range(n_levels):
        labels = hierarchy.labels(level)
        in_order = sizes[level][ranked[level]]
        places = np.cumsum(in_order) - in_order
        starts = np.empty_like(places)
        starts[ranked[level]] = places
        total = np.bincount(labels, weights=confidence, minlength=len(starts))
        quality = (total / np.maximum(sizes[level], 1)).astype(np.float32)
        tables.append(
            LevelTable(
                labels=labels,
                sizes=sizes[level],
                starts=starts,
                ranked=ranked[level],
                places=places,
                peaks=hierarchy.peaks(level),
                weakest=weakest[level],
                quality=quality,
            )
        )
    ids = hierarchy.cluster_ids
    tables[-1] = tables[-1].renumber(ids, max(n_numbers or 0, int(ids.max()) + 1))
    return NestedOrder(order, tuple(tables))


def order_by_density(rank: IntArray, density: FloatArray) -> IntArray:
    """Order points by the rank of their cluster, and by falling density within a cluster.

    Both keys are packed into one integer: one sort is four times as fast as a sort by two keys.
    """
    bits = np.ascontiguousarray(density, dtype=np.float32).view(np.int32).astype(np.int64)
    # As integers, the bits of negative floats are in reverse order: mirror them.
    ascending = np.where(bits < 0, -(1 << 31) - bits, bits)
    return np.argsort((rank << 32) - ascending)


def _weakest_links(hierarchy: Hierarchy) -> list[FloatArray]:
    found: list[FloatArray] = []
    for number, level in enumerate(hierarchy.levels):
        weakest = np.ones(level.n_clusters, dtype=np.float32)
        linked = ~np.isnan(level.linkage)
        np.minimum.at(weakest, level.labels[linked], level.linkage[linked])
        if number > 1:  # merges of clusters at the levels in between
            np.minimum.at(weakest, level.labels, found[-1])
        found.append(weakest)
    return found
