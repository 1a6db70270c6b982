"""FINCH: merges by first neighbours, level by level (Sarfraz, Sharma and Stiefelhagen, 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival
from hilander.knn.search import build_knn_graph

_MOST_LEVELS = 30  # each level at least halves the clusters, so 30 are enough for 1e9 points
_TRIED_LEVELS = 16  # when tuning: all levels of up to 65,000 points


def link_first_neighbours(first: IntArray) -> IntArray:
    """Components of FINCH's adjacency: ``j = k(i)``, ``k(j) = i`` or ``k(i) = k(j)``.

    The third kind does not change the components: two points with the same first neighbour are
    connected through it.

    Parameters
    ----------
    first : ndarray of shape (n_points,)
        First neighbour of each point.

    Returns
    -------
    labels : ndarray of shape (n_points,), from 0
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n_points = len(first)
    ends = (np.arange(n_points), first)
    edges = coo_matrix((np.ones(n_points, dtype=np.int8), ends), (n_points, n_points))
    labels: IntArray = connected_components(edges, directed=False)[1].astype(np.int64)
    return labels


def build_finch_levels(
    problem: Problem, fitted: Any = None, params: Params | None = None
) -> list[IntArray]:
    """All partitions of FINCH, from the finest to one cluster.

    Each level links the clusters of the previous level by the first neighbour of their means, by
    cosine, as in the paper.

    Parameters
    ----------
    problem : Problem
    fitted, params : unused

    Returns
    -------
    levels : list of ndarray of shape (n_points,)
    """
    levels = [link_first_neighbours(problem.graph.neighbours[:, 0])]
    while len(levels) < _MOST_LEVELS:
        labels = levels[-1]
        means = _unit_means(problem.features, labels)
        if len(means) < 2:
            break
        merged = link_first_neighbours(build_knn_graph(means, 1).neighbours[:, 0])
        levels.append(merged[labels])
        if merged.max() == 0:
            break
    return levels


def _unit_means(features: FloatArray, labels: IntArray) -> FloatArray:
    n_clusters = int(labels.max()) + 1
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(n_clusters))
    sums = np.add.reduceat(features[order], starts, axis=0)
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    # A mean of length 0 has no direction; the first point of the cluster takes its place.
    means: FloatArray = np.where(
        length > 1e-6, sums / np.maximum(length, 1e-6), features[order[starts]]
    )
    return np.ascontiguousarray(means, dtype=np.float32)


def take_finch_level(problem: Problem, state: list[IntArray], params: Params) -> IntArray:
    """The partition of a given level, or the last one if there are fewer.

    Parameters
    ----------
    problem : Problem
    state : list of `build_finch_levels`
    params : {"level": int}
        0 is the finest.
    """
    return state[min(int(params["level"]), len(state) - 1)]


FINCH = Rival(
    name="FINCH",
    family="paper",
    cluster=take_finch_level,
    axes=(Axis("level", tuple(range(_TRIED_LEVELS))),),
    start=build_finch_levels,
    memory=lambda n, d, k: 16 * n * d + 24 * n * k,
)
