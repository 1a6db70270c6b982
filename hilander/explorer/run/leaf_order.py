"""An order of the points in which every node of the merge tree is a range.

With it, a node is a start and a size, and the merge that joins two points is the largest number
between their places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.hierarchy.merge_tree import MergeTree


@dataclass(frozen=True, eq=False)
class LeafOrder:
    """The points as leaves of the merge tree, from left to right.

    Nodes are numbered as in `MergeTree`: points first, then merges.

    Parameters
    ----------
    order, place : ndarray of shape (n_points,)
        The points in order, and the place of each point.
    start, size : ndarray of shape (n_nodes,)
        Range of the order that each node occupies.
    between : ndarray of shape (n_points,)
        Merge that joins each point of the order with the next one; ``n_merges`` if none does.
    """

    order: IntArray
    place: IntArray
    start: IntArray
    size: IntArray
    between: IntArray

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.order)

    @property
    def n_merges(self) -> int:
        """Number of merges."""
        return len(self.start) - len(self.order)

    def rows_of(self, node: int) -> IntArray:
        """Return the points below a node."""
        start = int(self.start[node])
        return self.order[start : start + int(self.size[node])]


def build_leaf_order(tree: MergeTree) -> LeafOrder:
    """Order the points of a merge tree.

    Parameters
    ----------
    tree : MergeTree

    Returns
    -------
    leaves : LeafOrder
    """
    n_points, n_merges = tree.n_points, tree.n_merges
    children = tree.children.tolist()
    size = [1] * n_points + tree.sizes().tolist()
    is_child = np.zeros(n_points + n_merges, dtype=bool)
    is_child[tree.children] = True
    start = [0] * (n_points + n_merges)
    next_start = 0
    for root in np.flatnonzero(~is_child).tolist():
        start[root] = next_start
        next_start += size[root]
    between = np.full(n_points, n_merges, dtype=np.int64)
    for merge in range(n_merges - 1, -1, -1):
        left, right = children[merge]
        begin = start[n_points + merge]
        start[left], start[right] = begin, begin + size[left]
        between[begin + size[left] - 1] = merge
    starts = np.asarray(start, dtype=np.int64)
    place = starts[:n_points]
    order = np.empty(n_points, dtype=np.int64)
    order[place] = np.arange(n_points)
    return LeafOrder(order, place, starts, np.asarray(size, dtype=np.int64), between)
