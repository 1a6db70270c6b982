"""Infomap and Leiden: communities of the k-NN graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival
from hilander.hierarchy.decoding.communities import WeightedEdges, find_by_infomap, find_by_leiden


def collect_edges(problem: Problem, params: Params) -> WeightedEdges:
    """Undirected edges to the k nearest neighbours with at least a given cosine, weighted by it.

    Parameters
    ----------
    problem : Problem
    params : {"k": int, "cosine": float}
    """
    graph = problem.neighbours(params["k"])
    near = graph.affinity >= max(params["cosine"], 1e-6)
    return WeightedEdges.of_matrix(graph.neighbours, np.where(near, graph.affinity, 0))


def cluster_by_infomap(problem: Problem, state: Any, params: Params) -> IntArray:
    """Two-level Infomap on the k-NN graph; a point without an edge is a cluster of its own.

    Parameters
    ----------
    problem : Problem
    state : None
    params : {"k": int, "cosine": float}

    Returns
    -------
    labels : ndarray of shape (n_points,)
    """
    return find_by_infomap(collect_edges(problem, params), problem.seed)


def cluster_by_leiden(problem: Problem, state: Any, params: Params) -> IntArray:
    """Communities by Leiden, which maximises modularity at a resolution (networkit).

    Parameters
    ----------
    problem : Problem
    state : None
    params : {"k": int, "log_resolution": float, "cosine": float}

    Returns
    -------
    labels : ndarray of shape (n_points,)
    """
    edges = collect_edges(problem, {"cosine": 0.0, **params})
    return find_by_leiden(edges, 10.0 ** params["log_resolution"], problem.seed)


INFOMAP = Rival(
    name="Infomap",
    family="today",
    cluster=cluster_by_infomap,
    axes=(
        Axis("k", (5, 10, 20, 40)),
        Axis("cosine", (0.0, 0.3, 0.45, 0.6, 0.75), refine=True),
    ),
    varies=True,
    memory=lambda n, d, k: 4 * n * d + 600 * n * k,
    requires=(("infomap", "infomap"),),
    package="infomap",
)
LEIDEN = Rival(
    name="Leiden",
    family="today",
    cluster=cluster_by_leiden,
    axes=(
        Axis("k", (5, 10, 20)),
        Axis("log_resolution", (-0.7, 0.0, 0.7, 1.4, 2.1, 2.8), refine=True),
    ),
    varies=True,
    memory=lambda n, d, k: 4 * n * d + 200 * n * k,
    package="networkit",
)
