"""Rows of an array that may be half precision or on disk, given as float32 where needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import GraphError

Index32 = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class RowSource:
    """Some rows of an array, numbered anew from 0.

    Parameters
    ----------
    features : ndarray of shape (n_rows, dim), float16 or float32, also a mapped file
    chosen : ndarray of shape (n_chosen,), optional
        The rows that count; None for all of them.
    """

    features: npt.NDArray[Any]
    chosen: IntArray | None = None

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.features.dtype.kind != "f":
            raise GraphError(
                "features must be a floating-point array of shape (n_nodes, dim), got "
                f"{self.features.dtype} of shape {self.features.shape}; pass prepared embeddings"
            )

        # A mapped file's own array type costs time in every operation.
        object.__setattr__(self, "features", np.asarray(self.features))

    def __len__(self) -> int:
        return len(self.features) if self.chosen is None else len(self.chosen)

    @property
    def dim(self) -> int:
        """Width of a row."""
        return int(self.features.shape[1])

    def take(self, rows: npt.NDArray[Any]) -> FloatArray:
        """Give the rows of these numbers, shape (n, dim), as float32."""
        rows = rows if self.chosen is None else self.chosen[rows]
        # "clip" spares a check of every index, and numpy a slow path; the indices are our own.
        taken = np.take(self.features, rows, axis=0, mode="clip")
        return taken.astype(np.float32, copy=False)

    def block(self, start: int, stop: int) -> FloatArray:
        """Give consecutive rows, shape (n, dim), as float32; a view where that is possible."""
        if self.chosen is not None:
            return self.take(np.arange(start, stop))
        return np.asarray(self.features[start:stop], dtype=np.float32)
