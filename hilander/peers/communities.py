"""Infomap and Leiden: communities of the k-NN graph."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.data.arrays import IntArray
from hilander.peers.method import Axis, Method, Params, Problem


def collect_edges(
    problem: Problem, params: Params
) -> tuple[IntArray, IntArray, npt.NDArray[np.float64]]:
    """Undirected edges of the k nearest neighbours above a cosine, once each.

    Parameters
    ----------
    problem : Problem
    params : {"k": int, "cosine": float}

    Returns
    -------
    low, high : ndarray of shape (n_edges,)
        Ends, low < high.
    weight : ndarray of shape (n_edges,)
        Cosines.
    """
    graph = problem.neighbours(params["k"])
    near = graph.affinity >= max(params["cosine"], 1e-6)
    rows, columns = np.nonzero(near)
    ends = graph.neighbours[rows, columns]
    low, high = np.minimum(rows, ends), np.maximum(rows, ends)
    pairs, at = np.unique(low * graph.n_nodes + high, return_index=True)
    weight = graph.affinity[rows, columns][at].astype(np.float64)
    return pairs // graph.n_nodes, pairs % graph.n_nodes, weight


def cluster_by_infomap(problem: Problem, state: Any, params: Params) -> IntArray:
    """Two-level Infomap on the k-NN graph; a point without an edge is a cluster of its own.

    Parameters
    ----------
    problem : Problem
    state : None
    params : {"k": int, "cosine": float}

    Returns
    -------
    labels : ndarray of shape (n_points,), -1 for points without an edge
    """
    from infomap import Infomap

    low, high, weight = collect_edges(problem, params)
    labels = np.full(len(problem.features), -1, dtype=np.int64)
    if not len(low):
        return labels
    network = Infomap(
        two_level=True, silent=True, seed=problem.seed + 1, num_trials=1, directed=False
    )
    for source, target, cosine in zip(low.tolist(), high.tolist(), weight.tolist(), strict=True):
        network.add_link(source, target, cosine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of accessors that will move in Infomap 3
        network.run()
        for node in network.nodes:
            labels[node.node_id] = node.module_id
    return labels


def cluster_by_leiden(problem: Problem, state: Any, params: Params) -> IntArray:
    """Leiden communities of highest modularity at a resolution, by networkit.

    Parameters
    ----------
    problem : Problem
    state : None
    params : {"k": int, "log_resolution": float, "cosine": float}

    Returns
    -------
    labels : ndarray of shape (n_points,)
    """
    import networkit

    low, high, weight = collect_edges(problem, {"cosine": 0.0, **params})
    networkit.setSeed(problem.seed, True)
    graph = networkit.GraphFromCoo(
        (weight, (low, high)), n=len(problem.features), weighted=True, directed=False
    )
    leiden = networkit.community.ParallelLeiden(
        graph, randomize=True, iterations=5, gamma=10.0 ** params["log_resolution"]
    )
    leiden.run()
    return np.asarray(leiden.getPartition().getVector(), dtype=np.int64)


INFOMAP = Method(
    name="Infomap",
    family="today",
    cluster=cluster_by_infomap,
    axes=(
        Axis("k", (5, 10, 20)),
        Axis("cosine", (0.0, 0.3, 0.45, 0.6, 0.75), refine=True),
    ),
    varies=True,
    memory=lambda n, d, k: 4 * n * d + 600 * n * k,
    requires=(("infomap", "infomap"),),
    package="infomap",
)
LEIDEN = Method(
    name="Leiden",
    family="today",
    cluster=cluster_by_leiden,
    axes=(
        Axis("k", (5, 10, 20)),
        Axis("log_resolution", (0.0, 0.7, 1.4, 2.1, 2.8), refine=True),
    ),
    varies=True,
    memory=lambda n, d, k: 4 * n * d + 200 * n * k,
    requires=(("networkit", "peers"),),
    package="networkit",
)
