"""The embeddings of the estimator, checked before training or clustering."""

from __future__ import annotations

import warnings
from typing import Any

from hilander.arrays.rows import FloatArray
from hilander.embeddings.preparation import check_varied
from hilander.embeddings.validation import as_embeddings
from hilander.errors import EmbeddingError

_FEWEST_ROWS = 2  # a k-NN graph needs two points
_FEWEST_FEATURES = 4  # with fewer, directions hardly differ between clusters


def read_points(X: Any, dim: int | None = None, *, as_stored: bool = False) -> FloatArray:
    """Check embeddings for training or clustering, and warn if they have few features.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    dim : int, optional
        Number of features that the model was trained on.
    as_stored : bool
        As for :func:`hilander.embeddings.validation.as_embeddings`.

    Returns
    -------
    points : ndarray of shape (n_samples, n_features)
    """
    points = as_embeddings(X, min_rows=_FEWEST_ROWS, as_stored=as_stored)
    if dim is not None and points.shape[1] != dim:
        raise EmbeddingError(
            f"X has {points.shape[1]} features, but HiLander is expecting {dim} features as "
            "input, as many as it was trained on; use the embedder of the training set"
        )
    check_varied(points)
    if points.shape[1] < _FEWEST_FEATURES:
        warnings.warn(
            f"X has {points.shape[1]} features, expected at least {_FEWEST_FEATURES}: only the "
            "directions of embeddings count, not their lengths, and so few dimensions have few "
            "directions. Pass the full embeddings; for coordinates use a method such as "
            "DBSCAN.",
            stacklevel=3,
        )
    return points
