"""Encode identity labels of any type as integers from 0."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.errors import LabelError


def encode_labels(y: Any, n_rows: int | None = None) -> tuple[IntArray, npt.NDArray[Any]]:
    """Number the identities.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, 1)
        Integers, whole floats, booleans, strings or a mixture; a list, numpy array, pandas
        Series, Arrow column or torch tensor.
    n_rows : int, optional
        Number of embeddings that the labels belong to.

    Returns
    -------
    codes : ndarray of shape (n_samples,), int64
        ``classes[codes]`` are the labels.
    classes : ndarray of shape (n_identities,)
        Distinct labels in ascending order. Labels of several types are ordered by the name of
        their type and then by their text; 1 and "1" are two identities.

    Raises
    ------
    LabelError
        For a missing label, a fraction, another number of labels than embeddings, or labels
        that are not one column.
    """
    labels = as_label_column(y)
    if n_rows is not None and len(labels) != n_rows:
        raise LabelError(
            f"got {len(labels)} labels for {n_rows} embeddings, expected one each; "
            "pass labels in the order of the embeddings"
        )
    if not len(labels):
        raise LabelError("got no labels, expected one for each embedding; pass a non-empty array")
    _refuse_missing(labels)
    if labels.dtype == object:
        labels = _unbox(labels)
    if labels.dtype == object:
        return _encode_mixed(labels)
    if labels.dtype.kind == "f":
        labels = _whole(labels)
    if labels.dtype.kind not in "iubUSMm":
        raise LabelError(
            f"labels have dtype {labels.dtype}, expected integers or strings; convert them"
        )
    classes, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64, copy=False), classes


def check_trainable(labels: npt.NDArray[Any]) -> None:
    """Refuse labels without a pair of one identity, or without a pair of two.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        Labels or codes.

    Raises
    ------
    LabelError
        When there is one identity only (no pair to keep apart), or when each identity has one
        embedding (no pair to join).
    """
    _, sizes = np.unique(labels, return_counts=True)
    if len(sizes) < 2:
        raise LabelError(
            f"the {len(labels)} labels name one identity only (one class), need at least 2; "
            "train on embeddings of several identities"
        )
    if sizes.max() < 2:
        raise LabelError(
            f"each of the {len(sizes)} identities has a single embedding, need identities with "
            "at least 2; add embeddings of the same identities"
        )


def as_label_column(y: Any) -> npt.NDArray[Any]:
    """Labels as a one-dimensional array, of dtype object if their types may differ."""
    if y is None:
        raise LabelError(
            "training requires y to be passed, but the target y is None; pass the identity of "
            "each embedding, or cluster without labels: HiLander.pretrained().cluster(X)"
        )
    if isinstance(y, str | bytes | dict | set):
        raise LabelError(
            f"labels are a {type(y).__name__}, expected a list or array with one label for each "
            "embedding"
        )
    if hasattr(y, "to_pylist"):  # Arrow
        y = y.to_pylist()
    elif hasattr(y, "detach") and hasattr(y, "cpu"):  # torch
        y = y.detach().cpu().numpy()
    elif hasattr(y, "to_numpy"):  # pandas
        y = y.to_numpy()
    if isinstance(y, np.ndarray):
        if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
            row = int(np.argwhere(np.ma.getmaskarray(y))[0][0])
            raise LabelError(_missing_message(row, "masked"))
        array = np.asarray(y)
    else:
        try:
            array = _box(list(y))
        except TypeError as error:
            raise LabelError(
                f"labels are a {type(y).__name__}, expected a list or array; pass one label for "
                "each embedding"
            ) from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise LabelError(
            f"y should be a 1d array, got an array of shape {array.shape} instead; pass one "
            "column of labels"
        )
    return array


def _box(values: list[Any]) -> npt.NDArray[Any]:
    """An object array of the values: numpy would turn [1, "a"] into two strings."""
    if values and all(isinstance(value, list | tuple | np.ndarray) for value in values):
        widths = {len(value) if np.ndim(value) else 0 for value in values}
        if widths == {1}:
            values = [value[0] for value in values]
        elif widths != {0}:
            raise LabelError(
                "y should be a 1d array, got rows of several values instead; pass one column of "
                "labels"
            )
    array = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        # Scalars of numpy and torch and 0-d arrays are unwrapped; strings have no item().
        array[row] = value.item() if hasattr(value, "item") else value
    return array


def _refuse_missing(labels: npt.NDArray[Any]) -> None:
    if labels.dtype.kind in "fc":
        missing = np.flatnonzero(np.isnan(labels))
    elif labels.dtype.kind in "mM":
        missing = np.flatnonzero(np.isnat(labels))
    elif labels.dtype == object:
        missing = np.flatnonzero([is_missing(value) for value in labels])
    else:
        return
    if len(missing):
        row = int(missing[0])
        raise LabelError(_missing_message(row, repr(labels[row]), len(missing)))


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or the missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def _missing_message(row: int, what: str, count: int = 1) -> str:
    return (
        f"label of row {row} is missing ({what}; {count} in all), expected a label for each "
        "embedding; drop those rows from embeddings and labels (NaN and None are not identities)"
    )


def _unbox(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of the labels' own type if they share one; else the input."""
    kinds = {type(value.item() if isinstance(value, np.generic) else value) for value in labels}
    if kinds == {str}:
        return np.array([str(value) for value in labels])
    if kinds == {bool}:
        return labels.astype(np.bool_)
    if kinds <= {int, float}:
        try:
            return labels.astype(np.int64 if kinds == {int} else np.float64)
        except OverflowError:
            return labels  # integers of more than 64 bits are compared as objects
    return labels


def _whole(labels: npt.NDArray[Any]) -> IntArray:
    # Above 2**53 neighbouring integers are the same float, so identities would merge silently.
    bad = np.flatnonzero((labels != np.floor(labels)) | (np.abs(labels) > 2.0**53))
    if len(bad):
        row = int(bad[0])
        raise LabelError(
            f"label of row {row} is {labels[row]}, expected a whole number or a string; "
            "pass identities, not measurements"
        )
    return labels.astype(np.int64)


def _encode_mixed(labels: npt.NDArray[Any]) -> tuple[IntArray, npt.NDArray[Any]]:
    # Keyed by type as well: in Python 1, 1.0 and True are equal.
    keys = [(type(value).__name__, str(value)) for value in labels]
    for row, value in enumerate(labels):
        if not isinstance(value, str | bytes | int | float | np.generic) and np.ndim(value):
            raise LabelError(
                f"label of row {row} is a {type(value).__name__}, expected a number or a string; "
                "pass one label for each embedding"
            )
    first_of = dict(zip(reversed(keys), reversed(labels), strict=True))
    ordered = sorted(first_of)
    code_of = {key: code for code, key in enumerate(ordered)}
    classes = np.empty(len(ordered), dtype=object)
    classes[:] = [first_of[key] for key in ordered]
    return np.array([code_of[key] for key in keys], dtype=np.int64), classes
