"""The best candidates of every row so far, and the merging of new ones into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.data.arrays import BoolArray, FloatArray, IntArray
from hilander.graph.row_source import Index32

_NOBODY = -1


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
        """Give those that a mask or indices choose."""
        return Candidates(self.row[kept], self.column[kept], self.value[kept])

    @classmethod
    def gather(cls, parts: list[Candidates]) -> Candidates:
        """Put candidates behind one another."""
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
        Similarity; -inf where nothing was seen.
    column : ndarray of shape (n_rows, count), int32
        -1 where nothing was seen.
    """

    def __init__(self, n_rows: int, count: int) -> None:
        self.value: FloatArray = np.full((n_rows, count), -np.inf, dtype=np.float32)
        self.column: Index32 = np.full((n_rows, count), _NOBODY, dtype=np.int32)

    @property
    def count(self) -> int:
        """Length of each list."""
        return int(self.value.shape[1])

    @property
    def floor(self) -> FloatArray:
        """What a candidate of each row must exceed, shape (n_rows,)."""
        return self.value[:, -1]

    def merge(self, found: Candidates) -> None:
        """Take in those candidates that are better than what the lists hold.

        A pair may come several times; it is listed once.
        """
        found = self._without_known(_without_repeats(found))
        if not len(found):
            return
        rows, local = np.unique(found.row, return_inverse=True)
        places = np.repeat(np.arange(len(rows), dtype=np.int64), self.count)
        pooled = Candidates(
            np.concatenate([places, local]).astype(np.int32),
            np.concatenate([self.column[rows].ravel(), found.column]),
            np.concatenate([self.value[rows].ravel(), found.value]),
        )
        # Every row has at least `count` entries, for its old list is among them.
        best = pooled.where(best_of_each_row(pooled, self.count))
        self.value[rows] = best.value.reshape(len(rows), self.count)
        self.column[rows] = best.column.reshape(len(rows), self.count)

    def _without_known(self, found: Candidates) -> Candidates:
        """Leave out what is too poor for its list, or listed already."""
        found = found.where(found.value > self.floor[found.row])
        return found.where((self.column[found.row] != found.column[:, None]).all(axis=1))


def best_of_each_row(found: Candidates, count: int) -> IntArray:
    """Indices of the best `count` candidates of each row, rows rising and values falling."""
    order = np.argsort(_row_then_value(found))
    row = found.row[order]
    starts = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
    lengths = np.diff(np.append(starts, len(row)))
    rank = np.arange(len(row)) - np.repeat(starts, lengths)
    kept: IntArray = order[rank < count]
    return kept


def _row_then_value(found: Candidates) -> IntArray:
    """One integer that sorts by rising row and falling value: the row, then the value's bits."""
    bits = found.value.view(np.int32)
    # The bits of a negative float rise as it falls; turned over they sort as the values do.
    rising = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits).astype(np.int64)
    keys: IntArray = (found.row.astype(np.int64) << 32) + (np.int64(0x7FFFFFFF) - rising)
    return keys


def _without_repeats(found: Candidates) -> Candidates:
    """Give the candidates sorted by row and column, each pair once."""
    keys = (found.row.astype(np.int64) << 32) + found.column
    order = np.argsort(keys)
    ordered: npt.NDArray[Any] = keys[order]
    first = np.ones(len(order), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return found.where(order[first])
