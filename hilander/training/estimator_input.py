"""What `HiLander` is given, checked before anything is done with it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted, validate_data

from hilander.arrays.rows import FloatArray
from hilander.embeddings.preparation import check_varied
from hilander.embeddings.validation import as_embeddings, has_names
from hilander.errors import EmbeddingError

if TYPE_CHECKING:
    from hilander.estimator import HiLander

_FEWEST_ROWS = 2
_FEWEST_FEATURES = 4  # below it directions are too few to tell clusters apart by
_NOT_FITTED = (
    "This %(name)s instance is not fitted yet, expected one that has learnt; call fit(X, y) with "
    "labelled embeddings, or take %(name)s.pretrained(), the model in the box: it needs no labels"
)


def check_fitted(model: HiLander) -> None:
    """Refuse a model that has learnt nothing, by scikit-learn's `NotFittedError`."""
    check_is_fitted(model, "network_", msg=_NOT_FITTED)


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


def see_columns(model: HiLander, X: Any, points: FloatArray, *, reset: bool) -> None:
    """Learn, or compare, the number of features and their names; the box knows of none."""
    if reset or hasattr(model, "n_features_in_"):
        named = X if has_names(X) else points
        validate_data(model, named, reset=reset, skip_check_array=True)


def describe_fit(model: HiLander) -> str:
    """What a fit has decided, in one line."""
    told = f"embeddings are {model.preparation_.describe()}; p_tau = {model.rules_.p_tau:g}"
    if "adviser" in model.summary_:
        share = 1 - model.summary_["own_weight"]
        told += f"; advised by the model {model.summary_['adviser']!r}, which weighs {share:.0%}"
    return f"hilander: {told}"
