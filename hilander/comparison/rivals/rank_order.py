"""ARO: approximate rank-order clustering (Otto, Wang and Jain, 2018)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival

_BLOCK_LOOKUPS = 4_000_000  # list look-ups in a block, about 400 MB


def rank_order_distances(neighbours: IntArray) -> FloatArray:
    """Symmetric rank-order distance of every edge of the k-NN graph.

    The list of a node is the node itself (rank 0), then its k neighbours. ``d(a, b)`` counts the
    entries of a's list up to b that are absent from b's list. The distance is
    ``D(a, b) = (d(a, b) + d(b, a)) / min(O_a(b), O_b(a))``, where ``O_a(b)`` is the rank of b in
    a's list. If a is not in b's list, ``d(b, a)`` counts all of b's list, and the minimum is
    ``O_a(b)``.

    Parameters
    ----------
    neighbours : ndarray of shape (n_nodes, k)
        Nearest first.

    Returns
    -------
    distance : ndarray of shape (n_nodes, k), of edge (i, neighbours[i, r])
    """
    n_nodes, k = neighbours.shape
    lists = np.concatenate([np.arange(n_nodes)[:, None], neighbours], axis=1)  # (n_nodes, k + 1)
    index = _ListIndex(lists)
    distance = np.empty((n_nodes, k), dtype=np.float32)
    ranks = np.arange(1, k + 1)
    step = max(1, _BLOCK_LOOKUPS // (k * (k + 1)))
    for start in range(0, n_nodes, step):
        rows = np.arange(start, min(start + step, n_nodes))
        others = neighbours[rows]  # (block, k)
        shape = (len(rows), k, k + 1)
        mine = np.broadcast_to(lists[rows][:, None, :], shape)
        theirs = lists[others]  # (block, k, k + 1)
        # absent[a, r, s]: entry s of a's list is not in the list of a's r-th neighbour
        absent = ~index.holds(np.broadcast_to(others[:, :, None], shape), mine)
        forward = _count_up_to(absent, np.broadcast_to(ranks, others.shape))
        missing = ~index.holds(np.broadcast_to(rows[:, None, None], shape), theirs)
        rank_back = _rank_in(theirs, rows, k)  # (block, k), k + 1 where missing
        backward = _count_up_to(missing, np.minimum(rank_back, k))
        distance[rows] = (forward + backward) / np.minimum(ranks, rank_back)
    return distance


class _ListIndex:
    """Looks up whether a node is in the list of another, for many pairs at once."""

    def __init__(self, lists: IntArray) -> None:
        self.n_nodes = len(lists)
        self.keys = np.sort((np.arange(self.n_nodes)[:, None] * self.n_nodes + lists).ravel())

    def holds(self, owner: IntArray, member: IntArray) -> BoolArray:
        wanted = owner * self.n_nodes + member
        at = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        found: BoolArray = self.keys[at] == wanted
        return found


def _count_up_to(absent: BoolArray, last: IntArray) -> IntArray:
    """Sum of absent[a, r, : last[a, r] + 1], shape (block, k)."""
    running = np.cumsum(absent, axis=2, dtype=np.int64)
    counts: IntArray = np.take_along_axis(running, last[:, :, None], axis=2)[:, :, 0]
    return counts


def _rank_in(lists: IntArray, rows: IntArray, k: int) -> IntArray:
    """Rank of node rows[a] in lists[a, r], k + 1 where it is missing, shape (block, k)."""
    here = lists == rows[:, None, None]
    return np.where(here.any(axis=2), here.argmax(axis=2), k + 1)


def measure_rank_order(
    problem: Problem, fitted: Any, params: Params
) -> tuple[IntArray, FloatArray]:
    """Edges of the k nearest neighbours with their rank-order distance."""
    neighbours = problem.neighbours(params["k"]).neighbours
    return neighbours, rank_order_distances(neighbours)


def link_by_rank_order(
    problem: Problem, state: tuple[IntArray, FloatArray], params: Params
) -> IntArray:
    """Connected components of the edges up to a rank-order distance.

    Parameters
    ----------
    problem : Problem
    state : pair of `measure_rank_order`
    params : {"k": int, "distance": float}

    Returns
    -------
    labels : ndarray of shape (n_points,)
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    neighbours, distance = state
    rows, columns = np.nonzero(distance <= params["distance"])
    n_nodes = len(neighbours)
    ends = (rows, neighbours[rows, columns])
    edges = coo_matrix((np.ones(len(rows), dtype=np.int8), ends), (n_nodes, n_nodes))
    return np.asarray(connected_components(edges, directed=False)[1], dtype=np.int64)


ARO = Rival(
    name="ARO",
    family="paper",
    cluster=link_by_rank_order,
    axes=(
        Axis("k", (10, 20, 40)),
        Axis("distance", (0.5, 1.0, 2.0, 4.0, 7.0), refine=True),
    ),
    start=measure_rank_order,
    started_by=("k",),
    memory=lambda n, d, k: 4 * n * d + 40 * n * k + 100 * _BLOCK_LOOKUPS,
)
