"""Every pair of groups with edges between them, and how probable it is that they are one identity.

The pairs of the run are summed once. After a change, only the edges of the changed groups are
summed again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, row_blocks
from hilander.explorer.run.graph import RunGraph
from hilander.graph.same_identity import estimate_same

FloatSums = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Joins:
    """Pairs of groups.

    Parameters
    ----------
    a, b : ndarray of shape (n_pairs,)
        Groups, a < b.
    total, count : ndarray of shape (n_pairs,), float64
        Summed linkage of the edges between the two, in both directions, and their number.
    """

    a: IntArray
    b: IntArray
    total: FloatSums
    count: FloatSums

    def take(self, chosen: npt.NDArray[np.bool_]) -> Joins:
        """Return some of the pairs."""
        return Joins(self.a[chosen], self.b[chosen], self.total[chosen], self.count[chosen])

    def estimate(self, sizes: IntArray, k: int) -> FloatArray:
        """Return the probability that each pair is one identity, shape (n_pairs,)."""
        possible = k * np.minimum(sizes[self.a], sizes[self.b])
        return estimate_same(self.total, self.count, possible).astype(np.float32)


@dataclass(frozen=True, eq=False)
class ReverseEdges:
    """The edges that lead to each point, of a graph that lists those that leave it.

    Parameters
    ----------
    starts : ndarray of shape (n_points + 1,)
    sources : ndarray of shape (n_edges,)
        Edge number, ``row * k + place``, of each edge, sorted by the point that it leads to.
    """

    starts: IntArray
    sources: IntArray

    @classmethod
    def of_graph(cls, graph: RunGraph) -> ReverseEdges:
        """Sort the edges of a graph by their end."""
        ends = np.asarray(graph.neighbours).ravel()
        counts = np.bincount(ends, minlength=len(graph.neighbours))
        starts = np.concatenate(([0], np.cumsum(counts)))
        return cls(starts, np.argsort(ends, kind="stable"))

    def edges_to(self, rows: IntArray) -> IntArray:
        """Return the numbers of all edges that lead to some points."""
        lengths = self.starts[rows + 1] - self.starts[rows]
        offsets = np.repeat(self.starts[rows] - np.cumsum(lengths) + lengths, lengths)
        return self.sources[offsets + np.arange(int(lengths.sum()))]


def find_joins(graph: RunGraph, labels: IntArray, n_groups: int) -> Joins:
    """Find the pairs of groups with edges between them.

    Parameters
    ----------
    graph : RunGraph
    labels : ndarray of shape (n_points,)
    n_groups : int
    """
    found = []
    for block in row_blocks(len(labels), graph.k):
        own = np.broadcast_to(labels[block][:, None], graph.neighbours[block].shape)
        other = labels[np.asarray(graph.neighbours[block])]
        crossing = own != other
        weight = np.asarray(graph.linkage[block])[crossing]
        found.append(_sum_pairs(own[crossing], other[crossing], weight, n_groups))
    return _add(found, n_groups)


def update_joins(
    base: Joins,
    graph: RunGraph,
    reverse: ReverseEdges,
    labels: IntArray,
    changed: dict[int, IntArray],
    n_groups: int,
) -> Joins:
    """Return the pairs after some groups changed.

    Parameters
    ----------
    base : Joins
        The pairs before.
    graph : RunGraph
    reverse : ReverseEdges
    labels : ndarray of shape (n_points,)
        Present group of each point.
    changed : dict of int to ndarray
        The points of each group that changed.
    n_groups : int
    """
    if not changed:
        return base
    is_changed = np.zeros(n_groups, dtype=bool)
    is_changed[np.fromiter(changed, dtype=np.int64, count=len(changed))] = True
    kept = base.take(~(is_changed[base.a] | is_changed[base.b]))
    rows = np.concatenate(list(changed.values()))
    leaving = (rows[:, None] * graph.k + np.arange(graph.k)).ravel()
    edges = np.unique(np.concatenate((leaving, reverse.edges_to(rows))))
    source, place = np.divmod(edges, graph.k)
    own, other = labels[source], labels[graph.neighbours[source, place]]
    crossing = own != other
    weight = np.asarray(graph.linkage[source, place])[crossing]
    return _add([kept, _sum_pairs(own[crossing], other[crossing], weight, n_groups)], n_groups)


def _sum_pairs(own: IntArray, other: IntArray, weight: FloatArray, n_groups: int) -> Joins:
    key = np.minimum(own, other) * n_groups + np.maximum(own, other)
    pairs, inverse = np.unique(key, return_inverse=True)
    total = np.bincount(inverse, weight, len(pairs)).astype(np.float64)
    count = np.bincount(inverse, minlength=len(pairs)).astype(np.float64)
    return Joins(pairs // n_groups, pairs % n_groups, total, count)


def _add(several: list[Joins], n_groups: int) -> Joins:
    if len(several) == 1:
        return several[0]
    key = np.concatenate([one.a * n_groups + one.b for one in several])
    pairs, inverse = np.unique(key, return_inverse=True)
    total, count = (
        np.bincount(
            inverse, np.concatenate([getattr(one, name) for one in several]), len(pairs)
        ).astype(np.float64)
        for name in ("total", "count")
    )
    return Joins(pairs // n_groups, pairs % n_groups, total, count)
