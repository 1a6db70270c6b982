"""The score that settings are chosen by: the mean of pairwise F and BCubed F."""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import BoolArray, IntArray


def mean_f(true: IntArray, found: IntArray, rows: BoolArray | None = None) -> float:
    """Mean of pairwise and BCubed F, over all points or some of them.

    BCubed F averages over the points in `rows`. A pair counts once for each of its points that is
    in `rows`. Clusters and identities always hold all points.

    Parameters
    ----------
    true, found : ndarray of shape (n_points,), ints from 0
    rows : ndarray of shape (n_points,), bool, optional
        Points to score; all by default.

    Returns
    -------
    f : float, in [0, 1]
    """
    cell, counts = np.unique(
        true * (found.max() + 1) + found, return_inverse=True, return_counts=True
    )[1:]
    chosen = slice(None) if rows is None else rows
    together = counts[cell][chosen].astype(np.float64)  # points with equal identity and cluster
    in_identity = np.bincount(true)[true][chosen]
    in_cluster = np.bincount(found)[found][chosen]
    precision, recall = (together / in_cluster).mean(), (together / in_identity).mean()
    bcubed = 2 * precision * recall / (precision + recall)
    pairs = (in_cluster - 1).sum() + (in_identity - 1).sum()
    pairwise = 2 * (together - 1).sum() / pairs if pairs else 1.0
    return float((bcubed + pairwise) / 2)
