"""Labels of which some are unknown."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, IntArray
from hilander.embeddings.labels import as_label_column, encode_labels, is_missing
from hilander.errors import LabelError

_NOTHING = "empty, NaN or None"
_RENAME = "If -1 is an identity, give it another label."


def encode_partly(y: Any, n_rows: int) -> tuple[IntArray, str]:
    """Number the identities; -1 where a label is unknown.

    Empty text, NaN, None and masked values are unknown. So is -1, as in scikit-learn, if no other
    label is a negative number; the same holds for the text "-1".

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        As for `encode_labels`.
    n_rows : int

    Returns
    -------
    codes : ndarray of shape (n_rows,), int64
        From 0 without a gap, in the order of the sorted labels; -1 where it is unknown.
    what : str
        What the unknown labels are, in words; empty if all are known.
    """
    labels = as_label_column(_fill_masked(y))
    if len(labels) != n_rows or not n_rows:
        encode_labels(labels, n_rows)  # raises the error
    empty = _find_empty(labels)
    codes = np.full(n_rows, -1)
    kinds = [_NOTHING] if empty.any() else []
    if not empty.all():
        found, classes = encode_labels(labels[~empty].tolist() if empty.any() else labels)
        unknown = _unknown_class(classes)
        codes[~empty] = np.where(found == unknown, -1, found - ((found > unknown) & (unknown >= 0)))
        if unknown >= 0:
            kinds.insert(0, "-1" if classes.dtype.kind == "i" else "the text '-1'")
    return codes, " or ".join(kinds)


def encode_known(y: Any, n_rows: int) -> tuple[IntArray, BoolArray | slice]:
    """Number the identities of the embeddings whose identity is known.

    Unknown labels are those of `encode_partly`; a warning gives their number.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        As for `encode_labels`.
    n_rows : int

    Returns
    -------
    codes : ndarray of shape (n_known,), int64, from 0 without a gap
    known : ndarray of shape (n_rows,), bool, or a slice of all rows
        Which embeddings the codes belong to.

    Raises
    ------
    LabelError
        As for `encode_labels`, and when fewer than two identities remain without the unknown.
    """
    codes, what = encode_partly(y, n_rows)
    if not what:
        return codes, slice(None)
    known = codes >= 0
    if codes.max() < 1:
        raise LabelError(_too_few_known(y, codes, what))
    warnings.warn(
        f"{count_unknown(codes, what)}: those embeddings are clustered, but not trained on.",
        stacklevel=3,
    )
    return codes[known], known


def count_unknown(codes: IntArray, what: str) -> str:
    """How many labels are unknown, as a warning says it."""
    text = f"{int((codes < 0).sum()):,} of {len(codes):,} labels are {what}, which means unknown"
    return f"{text} ({_RENAME[:-1]})" if "-1" in what else text


def fill_empty(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The labels; as text, with "" for unknown ones, if some are empty, NaN or None.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
    """
    empty = _find_empty(y)
    if not empty.any():
        return y
    known = np.full(len(y), "", dtype=object)
    values = y[~empty]
    known[~empty] = (values.astype(np.int64) if values.dtype.kind == "f" else values).astype(str)
    return known.astype(str)


def _too_few_known(y: Any, codes: IntArray, what: str) -> str:
    known = codes >= 0
    others = ""
    if known.any():
        name = as_label_column(_fill_masked(y))[known][0]
        name = int(name) if isinstance(name, float) else name
        others = f", and the other {int(known.sum()):,} name one identity only, {name}"
    return (
        f"{int((~known).sum()):,} of {len(codes):,} labels are {what}, which means unknown{others}"
        "; need at least 2 identities: label points of others or, if -1 is an identity, give it "
        "another label"
    )


def _fill_masked(y: Any) -> Any:
    """Masked values as None."""
    if not isinstance(y, np.ma.MaskedArray):
        return y
    values = zip(y.data.tolist(), np.ma.getmaskarray(y).tolist(), strict=True)
    return [None if is_hidden else value for value, is_hidden in values]


def _find_empty(labels: npt.NDArray[Any]) -> BoolArray:
    """Whether a label is empty text, NaN or None, shape (n_rows,)."""
    empty: BoolArray
    if labels.dtype.kind == "f":
        empty = np.isnan(labels)
    elif labels.dtype.kind in "mM":
        empty = np.isnat(labels)
    elif labels.dtype.kind in "US":
        empty = np.char.strip(labels) == labels.dtype.type()
    elif labels.dtype == object:
        empty = np.array([_is_empty(one) for one in labels], dtype=bool)
    else:
        empty = np.zeros(len(labels), dtype=bool)
    return empty


def _is_empty(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def _unknown_class(classes: npt.NDArray[Any]) -> int:
    """Number of the class that means unknown; -1 for none."""
    if classes.dtype.kind == "i":
        return 0 if classes[0] == -1 else -1
    if classes.dtype.kind != "U" or "-1" not in classes:
        return -1
    is_negative = [one.startswith("-") and one[1:].isdigit() for one in classes.tolist()]
    return classes.tolist().index("-1") if sum(is_negative) == 1 else -1
