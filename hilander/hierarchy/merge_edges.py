"""Edges between the nodes of a growing merge tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class MergeEdges:
    """Undirected edges between the present nodes, once each.

    Parameters
    ----------
    low, high : ndarray of shape (n_edges,)
        Ends, low < high.
    total, count : ndarray of shape (n_edges,), float64
        Summed linkage of the points' edges between the ends, and their number.
    """

    low: IntArray
    high: IntArray
    total: npt.NDArray[np.float64]
    count: npt.NDArray[np.float64]

    @classmethod
    def of_graph(cls, neighbours: IntArray, linkage: FloatArray) -> MergeEdges:
        """The edges of a k-NN graph; one that is listed both ways counts twice."""
        n_points, k = neighbours.shape
        rows = np.repeat(np.arange(n_points), k)
        total = linkage.ravel().astype(np.float64)
        ends = np.minimum(rows, neighbours.ravel()), np.maximum(rows, neighbours.ravel())
        return cls(*ends, total, np.ones_like(total)).sum_parallel(n_points)

    @classmethod
    def of_links(cls, one: IntArray, other: IntArray, linkage: FloatArray) -> MergeEdges:
        """Single links between present nodes; those within a node are left out."""
        total = linkage.astype(np.float64)
        ends = np.minimum(one, other), np.maximum(one, other)
        return cls(*ends, total, np.ones_like(total)).take(one != other)

    def join(self, others: MergeEdges, n_nodes: int) -> MergeEdges:
        """These edges and those of `others` that these do not have."""
        known = self.low.astype(np.int64) * n_nodes + self.high
        missing = ~np.isin(others.low.astype(np.int64) * n_nodes + others.high, known)
        more = others.take(missing).sum_parallel(n_nodes)
        return MergeEdges(
            np.concatenate([self.low, more.low]),
            np.concatenate([self.high, more.high]),
            np.concatenate([self.total, more.total]),
            np.concatenate([self.count, more.count]),
        )

    def within(self, group: IntArray) -> MergeEdges:
        """The edges whose ends are in one group, for groups of shape (n_nodes,)."""
        return self.take(group[self.low] == group[self.high])

    def renumber(self, new: IntArray, n_nodes: int) -> MergeEdges:
        """The edges after nodes merged; `new` has the position of each old node."""
        low, high = new[self.low], new[self.high]
        apart = low != high
        moved = MergeEdges(np.minimum(low, high), np.maximum(low, high), self.total, self.count)
        return moved.take(apart).sum_parallel(n_nodes)

    def take(self, chosen: BoolArray) -> MergeEdges:
        """Some of the edges, chosen by a mask."""
        return MergeEdges(
            self.low[chosen], self.high[chosen], self.total[chosen], self.count[chosen]
        )

    def sum_parallel(self, n_nodes: int) -> MergeEdges:
        """The edges with parallel ones added up."""
        if not len(self.low):
            return self
        key = self.low.astype(np.int64) * n_nodes + self.high
        order = np.argsort(key, kind="stable")
        key = key[order]
        starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
        sums = (np.add.reduceat(values[order], starts) for values in (self.total, self.count))
        return MergeEdges(*np.divmod(key[starts], n_nodes), *sums)
