"""An array as shards, so that a set in the memory of this process can be clustered by an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.embeddings.points import read_points
from hilander.io.shards import PIECE_BYTES


@dataclass(frozen=True, eq=False)
class ArrayShard:
    """Some rows of an array; reads like `hilander.io.shards.Shard`.

    Parameters
    ----------
    path : str
        Name of the array in errors.
    rows : ndarray of shape (n_rows, dim)
    """

    path: str
    rows: npt.NDArray[Any]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.rows.shape[1])

    @property
    def dtype(self) -> str:
        """Number type of the values."""
        return self.rows.dtype.str

    def pieces(self) -> list[tuple[int, int]]:
        """The shard is one piece."""
        return [(0, len(self.rows))]

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Some rows."""
        return self.rows[start:stop]


def cut_array(X: Any, dim: int | None = None) -> list[ArrayShard]:
    """The rows of an array in shards.

    Parameters
    ----------
    X : array-like of shape (n_points, dim)
    dim : int, optional
        Number of features that the model was trained on.
    """
    points = read_points(X, dim, as_stored=True)
    step = max(1, PIECE_BYTES // max(1, points.shape[1] * points.dtype.itemsize))
    return [
        ArrayShard("X", np.asarray(points[start : start + step]))
        for start in range(0, len(points), step)
    ]
