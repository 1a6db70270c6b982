"""DBSCAN, H-DBSCAN and fast_hdbscan: clusters are dense regions, other points are noise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival


def cluster_by_dbscan(problem: Problem, state: Any, params: Params) -> IntArray:
    """DBSCAN on the edges of the shared graph with at least a given cosine.

    A ball holds at most the k neighbours of the graph, so `min_samples` must be at most k + 1;
    scikit-learn counts the point itself.

    Parameters
    ----------
    problem : Problem
    state : None
    params : {"cosine": float, "min_samples": int}

    Returns
    -------
    labels : ndarray of shape (n_points,), -1 for noise
    """
    from scipy.sparse import csr_matrix
    from sklearn.cluster import DBSCAN

    graph = problem.graph
    near = graph.affinity >= params["cosine"]
    rows, columns = np.nonzero(near)
    # A sparse matrix stores only positive distances, and a distance matrix is symmetric.
    distance = np.maximum(1 - graph.affinity[rows, columns].astype(np.float64), 1e-9)
    ends = graph.neighbours[rows, columns]
    shape = (graph.n_nodes, graph.n_nodes)
    one_way = csr_matrix((distance, (rows, ends)), shape)
    edges = one_way.maximum(one_way.T).tocsr()
    edges.sort_indices()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns that it has to sort the rows
        labels = DBSCAN(
            eps=2.0, min_samples=params["min_samples"], metric="precomputed"
        ).fit_predict(edges)
    return np.asarray(labels, dtype=np.int64)


def cluster_by_hdbscan(problem: Problem, state: Any, params: Params) -> IntArray:
    """scikit-learn's HDBSCAN, on Euclidean distances of unit vectors.

    Parameters
    ----------
    problem : Problem
    state : None
    params : {"min_cluster_size": int, "min_samples": int}

    Returns
    -------
    labels : ndarray of shape (n_points,), -1 for noise
    """
    from sklearn.cluster import HDBSCAN

    n_points = len(problem.features)
    model = HDBSCAN(
        min_cluster_size=min(params["min_cluster_size"], n_points),
        min_samples=min(params["min_samples"], n_points - 1),
        algorithm="brute",
        copy=True,
    )
    return np.asarray(model.fit_predict(problem.features), dtype=np.int64)


def cluster_by_fast_hdbscan(problem: Problem, state: Any, params: Params) -> IntArray:
    """fast_hdbscan with its defaults: above 30 dimensions it searches by nearest-neighbour descent.

    Parameters
    ----------
    problem : Problem
    state : None
    params : {"min_cluster_size": int, "min_samples": int}

    Returns
    -------
    labels : ndarray of shape (n_points,), -1 for noise
    """
    from fast_hdbscan import HDBSCAN

    model = HDBSCAN(min_cluster_size=params["min_cluster_size"], min_samples=params["min_samples"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba warns about its version
        labels = model.fit_predict(problem.features)
    return np.asarray(labels, dtype=np.int64)


DBSCAN = Rival(
    name="DBSCAN",
    family="paper",
    cluster=cluster_by_dbscan,
    axes=(
        # Not refined: a finer threshold scores higher on the training set and lower on others.
        Axis("cosine", (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)),
        Axis("min_samples", (2, 5)),
    ),
    memory=lambda n, d, k: 4 * n * d + 60 * n * k,
    package="scikit-learn",
)
H_DBSCAN = Rival(
    name="H-DBSCAN",
    family="paper",
    cluster=cluster_by_hdbscan,
    axes=(
        Axis("min_cluster_size", (2, 5, 10, 20, 50, 100, 200), refine=True),
        Axis("min_samples", (1, 2, 5)),
    ),
    memory=lambda n, d, k: 24 * n * n,
    package="scikit-learn",
)
FAST_HDBSCAN = Rival(
    name="fast_hdbscan",
    family="today",
    cluster=cluster_by_fast_hdbscan,
    axes=(
        Axis("min_cluster_size", (2, 5, 10, 20, 50, 100, 200), refine=True),
        Axis("min_samples", (1, 2, 5)),
    ),
    varies=True,
    memory=lambda n, d, k: 12 * n * d + 1_000 * n,
    requires=(("fast_hdbscan", "rivals"), ("pynndescent", "rivals")),
    package="fast_hdbscan",
)
