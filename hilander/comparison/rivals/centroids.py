"""k-means. The number of clusters follows from a mean cluster size, tuned on training data."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival

_MOST_POINTS = 50_000  # points; more are clustered in mini-batches, which take less time
_MAX_ITERATIONS = 25  # of Lloyd, a bound on the time
_BATCH_SIZE = 4_096  # points in a mini-batch


def cluster_by_means(problem: Problem, state: Any, params: Params) -> IntArray:
    """Lloyd's algorithm from k-means++ seeds; in mini-batches for more than 50,000 points.

    One candidate is drawn for each seed, as in the original k-means++. scikit-learn draws several;
    with hundreds of clusters, that takes longer than the iterations.

    Parameters
    ----------
    problem : Problem
    state : None
    params : {"mean_size": float}
        Mean cluster size; the number of clusters is n / mean_size.

    Returns
    -------
    labels : ndarray of shape (n_points,)
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans, kmeans_plusplus

    n_points = len(problem.features)
    n_clusters = int(np.clip(round(n_points / params["mean_size"]), 1, n_points))
    if n_points <= _MOST_POINTS:
        seeds, _ = kmeans_plusplus(
            problem.features, n_clusters, random_state=problem.seed, n_local_trials=1
        )
        model = KMeans(n_clusters, init=seeds, n_init=1, max_iter=_MAX_ITERATIONS)
    else:
        model = MiniBatchKMeans(
            n_clusters,
            n_init=1,
            batch_size=_BATCH_SIZE,
            random_state=problem.seed,
            init_size=3 * n_clusters,
        )
    labels: IntArray = model.fit_predict(problem.features).astype(np.int64)
    return labels


K_MEANS = Rival(
    name="k-means",
    family="paper",
    cluster=cluster_by_means,
    axes=(Axis("mean_size", (5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 70.0, 120.0), refine=True),),
    varies=True,
    memory=lambda n, d, k: 12 * n * d + 4 * n * 256,
    package="scikit-learn",
)
