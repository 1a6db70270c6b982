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
    left: tuple[FloatArray, IntArray, FloatArray, IntArray],
    left_rows: npt.NDArray[Any],
    right: tuple[FloatArray, IntArray, FloatArray, IntArray],
    right_rows: npt.NDArray[Any],
    is_same: bool,
) -> None:
    """Compare some rows of a table with some of another, for the lists of both.

    Parameters
    ----------
    left, right : (features, number, value, column)
        Unit rows of shape (n_rows, dim); the number under which each is listed, (n_rows,); and the
        lists, (n_rows, count), float32 and int64.
    left_rows, right_rows : ndarray of row numbers
        No row is in both, unless `is_same`.
    is_same : bool
        Whether both are the same rows of one table; then each pair is compared once.
    """
    dim, count = left[0].shape[1], left[2].shape[1]
    given = np.zeros(dim * _COLUMNS, dtype=np.float32)
    packed = np.zeros((1, dim, OUTPUTS), dtype=np.float32)
    bias = np.zeros(OUTPUTS, dtype=np.float32)
    product = np.zeros(OUTPUTS * _COLUMNS, dtype=np.float32)
    floor = np.zeros(_COLUMNS, dtype=np.float32)
    for start in range(0, len(right_rows), _COLUMNS):
        n_columns = min(_COLUMNS, len(right_rows) - start)
        width = -(-n_columns // LANES) * LANES  # cells are often smaller than a whole block
        x = given[: dim * width].reshape(dim, width)
        y = product[: OUTPUTS * width].reshape(OUTPUTS, width)
        for at in range(n_columns):
            row = right[0][right_rows[start + at]]
            floor[at] = right[2][right_rows[start + at], count - 1]
            for feature in range(dim):
                x[feature, at] = row[feature]
        last = min(len(left_rows), start + n_columns) if is_same else len(left_rows)
        for first in range(0, last, OUTPUTS):
            n_rows = min(OUTPUTS, last - first)
            for at in range(n_rows):
                row = left[0][left_rows[first + at]]
                for feature in range(dim):
                    packed[0, feature, at] = row[feature]
            multiply(x, packed, bias, y)
            for at in range(n_rows):
                i = left_rows[first + at]
                begin = max(0, first + at + 1 - start) if is_same else 0
                least = left[2][i, count - 1]
                for place in range(begin, n_columns):
                    cosine = y[at, place]
                    if cosine >= least:
                        number = right[1][right_rows[start + place]]
                        insert(left[2][i], left[3][i], cosine, number)
                        least = left[2][i, count - 1]
                    if cosine >= floor[place]:
                        j = right_rows[start + place]
                        insert(right[2][j], right[3][j], cosine, left[1][i])
                        floor[place] = right[2][j, count - 1]


@compiled
def merge_lists(
    value: FloatArray,
    column: IntArray,
    exact: FloatArray,
    rows: npt.NDArray[Any],
    other_value: FloatArray,
    other_column: IntArray,
    other_exact: FloatArray,
) -> None:
    """Merge further lists of some rows into their lists.

    Parameters
    ----------
    value, column, exact : ndarray of shape (n_rows, count)
        The lists; `exact` goes along with each entry.
    rows : ndarray of shape (n_others,)
        The row that each of the other lists is of.
    other_value, other_column, other_exact : ndarray of shape (n_others, count)
    """
    count = value.shape[1]
    for other in range(len(rows)):
        row = rows[other]
        for entry in range(count):
            cosine, number = other_value[other, entry], other_column[other, entry]
            if number < 0:
                break
            at = count
            while at > 0 and (
                cosine > value[row, at - 1]
                or (cosine == value[row, at - 1] and number < column[row, at - 1])
            ):
                at -= 1
            is_listed = at > 0 and value[row, at - 1] == cosine and column[row, at - 1] == number
            if at == count:
                break
            if is_listed:
                continue
            for place in range(count - 1, at, -1):
                value[row, place], column[row, place] = (
                    value[row, place - 1],
                    column[row, place - 1],
                )
                exact[row, place] = exact[row, place - 1]
            value[row, at], column[row, at] = cosine, number
            exact[row, at] = other_exact[other, entry]


@compiled
def compare_known(
    left: tuple[FloatArray, IntArray, FloatArray, IntArray], rows: FloatArray, first: int
) -> None:
    """Compare all rows of a table with consecutive rows, for the lists of the table alone.

    Parameters
    ----------
    left : (features, number, value, column)
        As for `compare_rows`.
    rows : ndarray of shape (n_rows, dim)
    first : int
        Number of the first of them. A row is not compared with itself.
    """
    dim, count = rows.shape[1], left[2].shape[1]
    given = np.zeros(dim * _COLUMNS, dtype=np.float32)
    packed = np.zeros((1, dim, OUTPUTS), dtype=np.float32)
    bias = np.zeros(OUTPUTS, dtype=np.float32)
    product = np.zeros(OUTPUTS * _COLUMNS, dtype=np.float32)
    for start in range(0, len(rows), _COLUMNS):
        n_columns = min(_COLUMNS, len(rows) - start)
        width = -(-n_columns // LANES) * LANES
        x = given[: dim * width].reshape(dim, width)
        y = product[: OUTPUTS * width].reshape(OUTPUTS, width)
        for at in range(n_columns):
            for feature in range(dim):
                x[feature, at] = rows[start + at, feature]
        for begin in range(0, len(left[1]), OUTPUTS):
            n_rows = min(OUTPUTS, len(left[1]) - begin)
            for at in range(n_rows):
                for feature in range(dim):
                    packed[0, feature, at] = left[0][begin + at, feature]
            multiply(x, packed, bias, y)
            for at in range(n_rows):
                i = begin + at
                for place in range(n_columns):
                    number = first + start + place
                    if y[at, place] >= left[2][i, count - 1] and number != left[1][i]:
                        insert(left[2][i], left[3][i], y[at, place], number)
