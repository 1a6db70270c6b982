"""Average linkage, and the baseline: single linkage with a cosine threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival
from hilander.comparison.rivals.threshold import SpanningTree, grow_tree

Merges = npt.NDArray[np.float64]


def grow_average_tree(problem: Problem, fitted: Any, params: Params) -> Merges:
    """Merge the two clusters of lowest mean cosine distance until one is left.

    Parameters
    ----------
    problem : Problem
    fitted : None
    params : unused

    Returns
    -------
    merges : ndarray of shape (n_points - 1, 4), in the format of scipy's `linkage`
    """
    import fastcluster

    distances = _condensed_distances(problem)
    merges: Merges = fastcluster.linkage(distances, method="average", preserve_input=False)
    return merges


def _condensed_distances(problem: Problem) -> npt.NDArray[np.float64]:
    """``1 - cos`` of every pair i < j, in one array; no square matrix is formed."""
    features = problem.features
    n_points = len(features)
    distances = np.empty(n_points * (n_points - 1) // 2)
    done = 0
    for row in range(n_points - 1):
        width = n_points - 1 - row
        np.subtract(1, features[row + 1 :] @ features[row], out=distances[done : done + width])
        done += width
    return np.maximum(distances, 0, out=distances)


def cut_average_tree(problem: Problem, state: Merges, params: Params) -> IntArray:
    """Clusters whose mean cosine distance is at most ``1 - cosine``.

    Parameters
    ----------
    problem : Problem
    state : ndarray of `grow_average_tree`
    params : {"cosine": float}

    Returns
    -------
    labels : ndarray of shape (n_points,)
    """
    from scipy.cluster.hierarchy import fcluster

    found = fcluster(state, 1 - params["cosine"], criterion="distance")
    return np.asarray(found, dtype=np.int64)


def grow_single_tree(problem: Problem, fitted: Any, params: Params) -> SpanningTree:
    """The spanning tree of highest cosines."""
    return grow_tree(problem.features)


def cut_single_tree(problem: Problem, state: SpanningTree, params: Params) -> IntArray:
    """Connected components of the pairs whose cosine reaches the threshold."""
    return state.cut(params["cosine"])


# Steps of 0.05: with finer steps, the threshold overfits the sizes of the training set.
_COSINES = tuple(np.round(np.linspace(0.05, 0.95, 19), 2).tolist())

HAC = Rival(
    name="HAC",
    family="paper",
    cluster=cut_average_tree,
    axes=(Axis("cosine", _COSINES),),
    start=grow_average_tree,
    memory=lambda n, d, k: 8 * n * n,
    requires=(("fastcluster", "rivals"),),
    package="fastcluster",
)
THRESHOLD = Rival(
    name="cosine threshold",
    family="floor",
    cluster=cut_single_tree,
    axes=(Axis("cosine", (*_COSINES, 0.97, 0.98, 0.99)),),
    start=grow_single_tree,
    memory=lambda n, d, k: 8 * n * d + 64 * n,
)
