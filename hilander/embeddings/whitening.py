"""Whitening: shrink the directions in which members of one identity differ."""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.engines.threads import open_workers

# A unit row in float32 is off by about 1e-7; members that differ by less are equal.
_ROUNDING = 1e-6


def whiten_within(features: FloatArray, labels: IntArray, ridge: float) -> FloatArray:
    """A linear map after which identities have equal covariance in all directions.

    ``(S + ridge * mean(diag S) * I)^(-1/2)`` with S the covariance within identities. A large
    ridge gives nearly the identity matrix. If no two members differ, it is exactly that.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
    labels : ndarray of shape (n_points,)
    ridge : float
        Relative to the mean variance within identities.

    Returns
    -------
    transform : ndarray of shape (dim, dim), float32, symmetric
    """
    with open_workers(alone=True):  # more threads would change the last digits
        return _whiten(features, np.unique(labels, return_inverse=True)[1], ridge)


def _whiten(features: FloatArray, codes: IntArray, ridge: float) -> FloatArray:
    size = np.bincount(codes)
    centres = np.zeros((len(size), features.shape[1]))
    np.add.at(centres, codes, features)
    scatter = features - (centres / size[:, None])[codes]
    within = scatter.T @ scatter / max(len(features), 1)
    scale = float(np.trace(within)) / len(within)
    if scale < _ROUNDING**2:
        return np.eye(len(within), dtype=np.float32)
    values, vectors = np.linalg.eigh(within + max(ridge * scale, 1e-12) * np.eye(len(within)))
    root = (vectors / np.sqrt(np.maximum(values, 1e-12))) @ vectors.T
    transform: FloatArray = (root * np.sqrt(scale * (1 + ridge))).astype(np.float32)
    return transform
