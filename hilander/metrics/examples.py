"""Clusters to inspect: the largest, and those with most points of a wrong identity."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.metrics.contingency import build_contingency, encode_side


def largest_clusters(labels: ArrayLike, count: int) -> list[IntArray]:
    """Members of the largest clusters.

    Parameters
    ----------
    labels : array-like of shape (n_points,)
        Cluster of each point.
    count : int
        Number of clusters; fewer are returned if there are fewer.

    Returns
    -------
    clusters : list of ndarray of shape (n_members,)
        Row numbers of the members, ascending; the largest cluster first.
    """
    _check_count(count)
    codes, n_groups = encode_side(labels, "labels")
    sizes = np.bincount(codes, minlength=n_groups)
    return _members(codes, np.argsort(-sizes, kind="stable")[:count], n_groups)


def worst_mistakes(true: ArrayLike, pred: ArrayLike, count: int) -> list[IntArray]:
    """Members of the clusters that hold most points of a wrong identity.

    The right identity of a cluster is its commonest one. All other points in it are wrong.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point.
    count : int
        Number of clusters; fewer are returned if fewer hold several identities.

    Returns
    -------
    clusters : list of ndarray of shape (n_members,)
        Row numbers of the members, ascending; the cluster with most wrong points first.
        Empty if every cluster is pure.
    """
    _check_count(count)
    table = build_contingency(true, pred)
    commonest = np.zeros(table.n_clusters, dtype=np.int64)
    np.maximum.at(commonest, table.cell_pred, table.counts)
    wrong = table.pred_sizes - commonest
    worst = np.argsort(-wrong, kind="stable")[: min(count, int((wrong > 0).sum()))]
    codes, n_groups = encode_side(pred, "pred")
    return _members(codes, worst, n_groups)


def _members(codes: IntArray, chosen: IntArray, n_groups: int) -> list[IntArray]:
    # One pass over the points, instead of one for each cluster.
    rank = np.full(n_groups, -1, dtype=np.int64)
    rank[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(rank[codes] >= 0)
    order = np.argsort(rank[codes[rows]], kind="stable")
    sizes = np.bincount(rank[codes[rows]], minlength=len(chosen))
    return np.split(rows[order], np.cumsum(sizes)[:-1]) if len(chosen) else []


def _check_count(count: int) -> None:
    if count < 1:
        raise SettingError(f"count={count} clusters, expected at least 1")
