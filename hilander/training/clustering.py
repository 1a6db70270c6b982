"""The final partition of prepared points, for the steps of training that need only that."""

from __future__ import annotations

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import Scorer


def cluster_points(
    features: FloatArray,
    score: Scorer,
    rules: Rules,
    graph: KnnGraph | None = None,
) -> IntArray:
    """Cluster prepared points and return the last level.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        Prepared points, of unit length.
    score : Scorer
    rules : Rules
    graph : KnnGraph of n_points nodes, optional
        The first level's graph; searched for if it is not given.

    Returns
    -------
    labels : ndarray of shape (n_points,), ints from 0
    """
    steps = walk_levels(features, score, rules, graph=graph)
    return Hierarchy.of_steps(steps).labels(-1)
