"""The best candidates of every row so far, and how new ones are merged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.row_source import Index32
from hilander.arrays.rows import BoolArray, FloatArray, IntArray

_NO_ROW = -1  # column of an empty place
_WORST = np.iinfo(np.int64).max  # key of an empty place


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs that may belong to the lists: ``value[e]`` is the cosine of two rows of the features.

    Parameters
    ----------
    row, column : ndarray of shape (n_candidates,), int32
    value : ndarray of shape (n_candidates,), float32
    """

    row: Index32
    column: Index32
    value: FloatArray

    def __len__(self) -> int:
        return len(self.row)

    def where(self, kept: BoolArray | IntArray) -> Candidates:
        """The candidates that a mask or indices select."""
        return Candidates(self.row[kept], self.column[kept], self.value[kept])

    @classmethod
    def gather(cls, parts: list[Candidates]) -> Candidates:
        """Concatenate candidates."""
        return cls(
            np.concatenate([part.row for part in parts]),
            np.concatenate([part.column for part in parts]),
            np.concatenate([part.value for part in parts]),
        )


class NearestLists:
    """For every row the `count` best columns seen so far, best first.

    Parameters
    ----------
    n_rows, count : int

    Attributes
    ----------
    value : ndarray of shape (n_rows, count), float32
        Similarity; -inf in an empty place.
    column : ndarray of shape (n_rows, count), int32
        -1 in an empty place.
    """

    def __init__(self, n_rows: int, count: int) -> None:
        self.value: FloatArray = np.full((n_rows, count), -np.inf, dtype=np.float32)
        self.column: Index32 = np.full((n_rows, count), _NO_ROW, dtype=np.int32)

    @property
    def count(self) -> int:
        """Length of each list."""
        return int(self.value.shape[1])

    @property
    def floor(self) -> FloatArray:
        """The similarity that a candidate of each row must exceed, shape (n_rows,)."""
        return self.value[:, -1]

    def merge(self, found: Candidates) -> None:
        """Merge candidates that are better than the last entry of their list.

        A pair that occurs several times is listed once.
        """
        found = _without_repeats(self._without_known(found))
        if not len(found):
            return
        starts = np.flatnonzero(np.diff(found.row, prepend=np.int32(_NO_ROW)))
        lengths = np.diff(np.append(starts, len(found)))
        # Few lists get many candidates. They are merged apart, so that the others stay narrow.
        for low, high in ((0, self.count), (self.count, int(lengths.max()))):
            chosen = (lengths > low) & (lengths <= high)
            if chosen.any():
                self._insert(found.where(np.repeat(chosen, lengths)), lengths[chosen])

    def _insert(self, found: Candidates, lengths: IntArray) -> None:
        """Merge candidates, sorted by row, into their lists; `lengths` counts them for each row."""
        starts = np.cumsum(lengths) - lengths
        rows = found.row[starts]
        keys = np.full((len(rows), self.count + int(lengths.max())), _WORST, dtype=np.int64)
        keys[:, : self.count] = _value_then_column(self.value[rows], self.column[rows])
        place = np.arange(len(found)) - np.repeat(starts, lengths)
        each = np.repeat(np.arange(len(rows)), lengths)
        keys[each, self.count + place] = _value_then_column(found.value, found.column)
        # One integer holds value and column: sorting integers is faster than argsort.
        keys.sort(axis=1)
        self.value[rows], self.column[rows] = _read_keys(keys[:, : self.count])

    def _without_known(self, found: Candidates) -> Candidates:
        """The candidates above the floor of their list that it does not have yet."""
        found = found.where(found.value > self.floor[found.row])
        return found.where((self.column[found.row] != found.column[:, None]).all(axis=1))


def best_of_each_row(found: Candidates, count: int) -> IntArray:
    """Indices of the best `count` candidates of each row, rows ascending and values descending."""
    order = np.argsort(_row_then_value(found))
    row = found.row[order]
    starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
    lengths = np.diff(np.append(starts, len(row)))
    rank = np.arange(len(row)) - np.repeat(starts, lengths)
    kept: IntArray = order[rank < count]
    return kept


def best_of_matrix(cosine: FloatArray, count: int) -> IntArray:
    """Columns of the largest entries of each row of a matrix, in no order.

    Parameters
    ----------
    cosine : ndarray of shape (n_rows, n_columns)
    count : int
        At most n_columns.

    Returns
    -------
    columns : ndarray of shape (n_rows, count)
    """
    n_rows, n_columns = cosine.shape
    # partition is several times faster than argpartition.
    least = np.partition(cosine, n_columns - count, axis=1)[:, n_columns - count]
    places = np.flatnonzero((cosine >= least[:, None]).ravel())
    columns: IntArray = places % n_columns
    if len(places) != n_rows * count:
        # Several entries equal the least: take only as many as are needed.
        columns = np.argpartition(cosine, n_columns - count, axis=1)[:, -count:]
    return columns.reshape(n_rows, count)


def _row_then_value(found: Candidates) -> IntArray:
    """One integer that sorts by ascending row, then by descending value."""
    keys: IntArray = (found.row.astype(np.int64) << 32) + (
        np.int64(0x7FFFFFFF) - _ordered_bits(found.value)
    )
    return keys


def _value_then_column(value: FloatArray, column: Index32) -> IntArray:
    """One integer that sorts by descending value, then by ascending column."""
    keys: IntArray = (-_ordered_bits(value) << 32) + (column.astype(np.int64) - _NO_ROW)
    return keys


def _read_keys(keys: IntArray) -> tuple[FloatArray, Index32]:
    """Value and column of the integers that `_value_then_column` returns."""
    ordered = -(keys >> 32)
    bits = np.where(ordered < 0, ordered ^ 0x7FFFFFFF, ordered).astype(np.int32)
    column = ((keys & 0xFFFFFFFF) + _NO_ROW).astype(np.int32)
    return bits.view(np.float32), column


def _ordered_bits(value: FloatArray) -> IntArray:
    """Floats as integers of the same order."""
    bits = value.view(np.int32)
    # The bits of negative floats sort in reverse; inverted they sort as the values do.
    return np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).astype(np.int64)


def _without_repeats(found: Candidates) -> Candidates:
    """The candidates sorted by row and column, each pair once."""
    keys = (found.row.astype(np.int64) << 32) + found.column
    order = np.argsort(keys)
    ordered: npt.NDArray[Any] = keys[order]
    first = np.ones(len(order), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return found.where(order[first])
