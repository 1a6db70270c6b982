"""Compiled loops over pairs of rows whose result does not depend on blocks, order or machine.

The cosine of a pair is summed in the order of the features, whatever else is computed beside it. A
list keeps the best columns by cosine, equal ones by number. So the lists of some pairs are the same
in whatever order, and in however many parts, the pairs are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.compiled import compiled
from hilander.arrays.rows import FloatArray, IntArray
from hilander.arrays.vector_kernels import LANES, OUTPUTS, multiply

_COLUMNS = 8 * LANES  # rows of the right side at a time; with 128 features they fit the cache


@compiled
def insert(value: FloatArray, column: npt.NDArray[Any], cosine: Any, number: Any) -> None:
    """Insert one candidate into a list, unless it is listed or worse than the last entry.

    Parameters
    ----------
    value, column : ndarray of shape (count,)
        The list, best first; -inf and -1 where it is empty.
    cosine : float32
    number : int
    """
    at = len(value)
    while at > 0 and (
        cosine > value[at - 1] or (cosine == value[at - 1] and number < column[at - 1])
    ):
        at -= 1
    if at == len(value) or (at > 0 and value[at - 1] == cosine and column[at - 1] == number):
        return
    for place in range(len(value) - 1, at, -1):
        value[place], column[place] = value[place - 1], column[place - 1]
    value[at], column[at] = cosine, number


@compiled
def compare_rows(
    features: FloatArray,
    number: IntArray,
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    is_same: bool,
    value: FloatArray,
    column: IntArray,
) -> None:
    """Compare each row of the left with each of the right, for the lists of both.

    Parameters
    ----------
    features : ndarray of shape (n_rows, dim)
        Unit rows.
    number : ndarray of shape (n_rows,)
        Under which a row is listed.
    left, right : ndarray of row numbers
        No row is in both, unless they are the same rows.
    is_same : bool
        Whether left and right are the same rows; then each pair is compared once.
    value : ndarray of shape (n_rows, count), float32
    column : ndarray of shape (n_rows, count), int64
        The lists.
    """
    dim, count = features.shape[1], value.shape[1]
    x = np.zeros((dim, _COLUMNS), dtype=np.float32)
    packed = np.zeros((1, dim, OUTPUTS), dtype=np.float32)
    bias = np.zeros(OUTPUTS, dtype=np.float32)
    y = np.zeros((OUTPUTS, _COLUMNS), dtype=np.float32)
    floor = np.zeros(_COLUMNS, dtype=np.float32)
    for start in range(0, len(right), _COLUMNS):
        n_columns = min(_COLUMNS, len(right) - start)
        for at in range(n_columns):
            row = features[right[start + at]]
            floor[at] = value[right[start + at], count - 1]
            for feature in range(dim):
                x[feature, at] = row[feature]
        last = min(len(left), start + n_columns) if is_same else len(left)
        for first in range(0, last, OUTPUTS):
            n_rows = min(OUTPUTS, last - first)
            for at in range(n_rows):
                row = features[left[first + at]]
                for feature in range(dim):
                    packed[0, feature, at] = row[feature]
            multiply(x, packed, bias, y)
            for at in range(n_rows):
                i = left[first + at]
                begin = max(0, first + at + 1 - start) if is_same else 0
                least = value[i, count - 1]
                for place in range(begin, n_columns):
                    cosine = y[at, place]
                    if cosine >= least:
                        insert(value[i], column[i], cosine, number[right[start + place]])
                        least = value[i, count - 1]
                    if cosine >= floor[place]:
                        j = right[start + place]
                        insert(value[j], column[j], cosine, number[i])
                        floor[place] = value[j, count - 1]
