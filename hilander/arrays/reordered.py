"""The rows of an array in another order, gathered when they are read and never all at once."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray


class ReorderedRows:
    """Reads like an array of shape (n_rows, dim): blocks of rows, or rows by their numbers.

    Parameters
    ----------
    base : ndarray of shape (n_rows, dim), of any number type, also a mapped file
    order : ndarray of shape (n_rows,)
        Row ``i`` of this is row ``order[i]`` of `base`.
    """

    def __init__(self, base: npt.NDArray[Any], order: IntArray) -> None:
        self.base = base
        self.order = order
        self.shape: tuple[int, ...] = (len(order), *base.shape[1:])
        self.dtype = base.dtype
        self.ndim = base.ndim

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        """Rows of a slice, a mask or an array of numbers, as a new array."""
        return np.asarray(self.base[self.order[rows]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """All rows as a new array."""
        return np.asarray(self[:], dtype=dtype)


def reorder_rows(base: npt.NDArray[Any], order: IntArray) -> npt.NDArray[Any]:
    """The rows of an array in another order, without a copy, for code that reads them by blocks.

    Parameters
    ----------
    base : ndarray of shape (n_rows, dim)
    order : ndarray of shape (n_rows,)

    Returns
    -------
    rows : ReorderedRows
        Typed as the array that it reads like.
    """
    return cast("npt.NDArray[Any]", ReorderedRows(base, order))
