"""The points to learn from or to cluster, checked before anything is done with them."""

from __future__ import annotations

import warnings
from typing import Any

from hilander.arrays.rows import FloatArray
from hilander.embeddings.preparation import check_varied
from hilander.embeddings.validation import as_embeddings
from hilander.errors import EmbeddingError

_FEWEST_ROWS = 2
_FEWEST_FEATURES = 4  # below it directions are too few to tell clusters apart by


def read_points(X: Any, dim: int | None = None, *, as_stored: bool = False) -> FloatArray:
    """Check the embeddings to learn from or to group; a warning says if they are very narrow.

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
            "input, for it was trained on so many; use the embedder of the training set"
        )
    check_varied(points)
    if points.shape[1] < _FEWEST_FEATURES:
        warnings.warn(
            f"X has {points.shape[1]} features, expected at least {_FEWEST_FEATURES}: only the "
            "directions of embeddings count, not their lengths, and in so few dimensions they tell "
            "little apart. Give the embeddings as the embedder made them; coordinates are for "
            "methods such as DBSCAN.",
            stacklevel=3,
        )
    return points
