"""Compiled loops over edges: cosines of the ends with the mean neighbours of the ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.compiled import compiled
from hilander.arrays.rows import FloatArray

_SHORTEST = 1e-12  # least length that a sum of neighbours is divided by


@compiled
def dot(left: FloatArray, right: FloatArray) -> Any:
    """Dot product of two vectors."""
    total = np.float32(0)
    for at in range(len(left)):
        total += left[at] * right[at]
    return total


@compiled
def average_neighbours(
    rows: FloatArray, ends: npt.NDArray[Any], reach: int, mean: FloatArray
) -> None:
    """Sum of the first `reach` neighbours of each node, at unit length.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, dim)
    ends : ndarray of shape (block, k)
        Rows of the neighbours of each node.
    reach : int
    mean : ndarray of shape (block, dim)
        Written.
    """
    dim = rows.shape[1]
    for node in range(len(ends)):
        total = mean[node]
        total[:] = 0
        for rank in range(reach):
            end = rows[ends[node, rank]]
            for at in range(dim):
                total[at] += end[at]
        length = max(np.sqrt(dot(total, total)), np.float32(_SHORTEST))
        for at in range(dim):
            total[at] /= length


@compiled
def dot_ends(
    left: FloatArray, rows: FloatArray, ends: npt.NDArray[Any], products: FloatArray
) -> None:
    """Dot product of each node's vector with the rows of its neighbours.

    Parameters
    ----------
    left : ndarray of shape (block, dim)
    rows : ndarray of shape (n_rows, dim)
    ends : ndarray of shape (block, k)
        Rows of the neighbours of each node.
    products : ndarray of shape (block, k)
        Written.
    """
    for node in range(len(ends)):
        for rank in range(ends.shape[1]):
            products[node, rank] = dot(left[node], rows[ends[node, rank]])
