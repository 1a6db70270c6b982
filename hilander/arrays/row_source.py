"""Rows of an array that may be float16 or a mapped file, converted to float32 when read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, is_remote
from hilander.errors import GraphError

Index32 = npt.NDArray[np.int32]


class RowTaker(Protocol):
    """Rows that are gathered by their numbers."""

    def take(self, rows: npt.NDArray[Any]) -> FloatArray:
        """The rows of these numbers, shape (n, dim), as float32."""


def open_rows(features: npt.NDArray[Any]) -> RowTaker:
    """Gather rows of an array, or of rows that other processes hold."""
    if is_remote(features):
        held: Any = features
        return held  # type: ignore[no-any-return]
    return RowSource(features)


@dataclass(frozen=True, eq=False)
class RowSource:
    """Some rows of an array, renumbered from 0.

    Parameters
    ----------
    features : ndarray of shape (n_rows, dim), float16 or float32, also a mapped file
    chosen : ndarray of shape (n_chosen,), optional
        The rows to use; None for all.
    """

    features: npt.NDArray[Any]
    chosen: IntArray | None = None

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.features.dtype.kind != "f":
            raise GraphError(
                "features must be a floating-point array of shape (n_nodes, dim), got "
                f"{self.features.dtype} of shape {self.features.shape}; pass prepared embeddings"
            )

        # Operations on numpy.memmap are slower than on a plain array of the same memory.
        object.__setattr__(self, "features", np.asarray(self.features))

    def __len__(self) -> int:
        return len(self.features) if self.chosen is None else len(self.chosen)

    @property
    def dim(self) -> int:
        """Number of features of a row."""
        return int(self.features.shape[1])

    def take(self, rows: npt.NDArray[Any]) -> FloatArray:
        """The rows of these numbers, shape (n, dim), as float32."""
        rows = rows if self.chosen is None else self.chosen[rows]
        # mode="clip" avoids a slow path that checks every index; the indices are valid.
        taken = np.take(self.features, rows, axis=0, mode="clip")
        return taken.astype(np.float32, copy=False)

    def block(self, start: int, stop: int) -> FloatArray:
        """Consecutive rows, shape (n, dim), as float32; a view if possible."""
        if self.chosen is not None:
            return self.take(np.arange(start, stop))
        return np.asarray(self.features[start:stop], dtype=np.float32)
