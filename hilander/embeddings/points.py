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


def is_single_row(X: Any) -> bool:
    """Whether X is a matrix of one row."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        return len(shape) == 2 and shape[0] == 1
    return isinstance(X, list | tuple) and len(X) == 1 and isinstance(X[0], list | tuple)


def read_points(
    X: Any, dim: int | None = None, *, as_stored: bool = False, fewest: int = _FEWEST_ROWS
) -> FloatArray:
    """Check embeddings for training or clustering, and warn if they have few features.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    dim : int, optional
        Number of features that the model was trained on.
    as_stored : bool
        As for :func:`hilander.embeddings.validation.as_embeddings`.
    fewest : int
        Fewest rows that are accepted; several rows of one direction are accepted only for 1.

    Returns
    -------
    points : ndarray of shape (n_samples, n_features)
    """
    points = as_embeddings(X, min_rows=fewest, as_stored=as_stored)
    if dim is not None and points.shape[1] != dim:
        raise EmbeddingError(
            f"X has {points.shape[1]} features, but HiLander is expecting {dim} features as "
            "input, as many as it was trained on; use the embedder of the training set"
        )
    if fewest > 1:
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
