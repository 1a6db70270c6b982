"""Lists of the nearest rows, found in parts and merged: the same however the rows were dealt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray

_GATHERED = 1 << 20  # numbers gathered at a time


@dataclass(frozen=True, eq=False)
class Lists:
    """The best columns of some rows.

    Parameters
    ----------
    row : ndarray of shape (n_rows,)
        Number of each row, rising.
    value, exact : ndarray of shape (n_rows, count), float32
        Cosine by which the lists are ordered, and the same summed as `build_knn_graph` does.
    column : ndarray of shape (n_rows, count), int64
        -1 in an empty place.
    """

    row: IntArray
    value: FloatArray
    column: IntArray
    exact: FloatArray

    @classmethod
    def empty(cls, row: IntArray, count: int) -> Lists:
        """Lists without an entry."""
        shape = len(row), count
        worst = np.full((2, *shape), -np.inf, dtype=np.float32)
        return cls(row, worst[0], np.full(shape, -1, dtype=np.int64), worst[1])

    def merge(self, other: Lists) -> None:
        """Merge further lists of some of the rows, in place."""
        from hilander.knn.pair_kernels import merge_lists

        place = np.searchsorted(self.row, other.row)
        merge_lists(
            self.value, self.column, self.exact, place, other.value, other.column, other.exact
        )

    def between(self, start: int, stop: int) -> Lists:
        """Lists of the rows from `start` up to `stop` that have an entry."""
        first, last = np.searchsorted(self.row, [start, stop])
        kept = first + np.flatnonzero(self.column[first:last, 0] >= 0)
        return Lists(self.row[kept], self.value[kept], self.column[kept], self.exact[kept])

    def best(self, width: int) -> tuple[IntArray, FloatArray]:
        """Neighbours and affinity, ordered by affinity and then by number."""
        order = np.lexsort((self.column, -self.exact), axis=1)[:, :width]
        return (
            np.take_along_axis(self.column, order, axis=1),
            np.clip(np.take_along_axis(self.exact, order, axis=1), -1, 1),
        )


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, their numbers and their lists.

    Parameters
    ----------
    features : ndarray of shape (n_rows, dim), float32
    number : ndarray of shape (n_rows,)
        Rising.
    lists : Lists of the same rows
    """

    features: FloatArray
    number: IntArray
    lists: Lists

    @classmethod
    def of(cls, features: FloatArray, number: IntArray, count: int) -> Table:
        """A table with empty lists."""
        plain = np.ascontiguousarray(features, dtype=np.float32)
        return cls(plain, number, Lists.empty(number, count))

    @property
    def arrays(self) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
        """What the kernels take."""
        return self.features, self.number, self.lists.value, self.lists.column

    def settle(self, others: list[Table]) -> None:
        """Compute the exact cosine of each entry; its row is in this table or another one."""
        tables = [self, *others]
        count, dim = self.lists.column.shape[1], self.features.shape[1]
        step = max(1, _GATHERED // max(1, count * dim))
        for start in range(0, len(self.number), step):
            rows = slice(start, min(start + step, len(self.number)))
            column = self.lists.column[rows]
            ends = np.zeros((*column.shape, dim), dtype=np.float32)
            for table in tables:
                if not len(table.number):
                    continue
                place = np.minimum(np.searchsorted(table.number, column), len(table.number) - 1)
                here = table.number[place] == column
                ends[here] = table.features[place[here]]
            cosine = np.einsum("ikd,id->ik", ends, self.features[rows])
            self.lists.exact[rows] = np.where(column >= 0, cosine, -np.inf)


def search_known(
    number: npt.NDArray[Any], features: FloatArray, part: FloatArray, start: int, count: int
) -> Lists:
    """The best rows of a part for some rows of any part.

    Parameters
    ----------
    number : ndarray of shape (n_rows,)
        Their numbers, rising.
    features : ndarray of shape (n_rows, dim)
    part : ndarray of shape (n_part, dim)
    start : int
        Number of its first row.
    count : int
    """
    from hilander.knn.pair_kernels import compare_known

    wanted = Table.of(features, number.astype(np.int64), count)
    there = Table.of(part, np.arange(start, start + len(part)), 1)
    compare_known(wanted.arrays, there.features, start)
    wanted.settle([there])
    return wanted.lists
