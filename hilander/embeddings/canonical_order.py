"""An order of the rows that follows from their content, so that the given order does not matter.

The search, the community search and sums of rounded numbers depend a little on the order of the
rows, and what is drawn from a set depends on it a lot. So clustering sorts the rows by a key of
their own, and gives the result back in the given order: permuted rows give the permuted result,
exactly.

The key of a row is its cosine with the mean direction of all rows. The mean is summed in whole
numbers, and the cosine is computed from this row alone, so neither depends on the places of the
rows. A rotation, a common factor of all rows and the number type change keys by no more than their
rounding. Ties are broken by the cosine with a fixed direction, then by the length of the row. Rows
that are still equal are exchangeable, and keep the given order among each other.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray, drop_pages, map_row_blocks, row_blocks

Float64Array = npt.NDArray[np.float64]
_SEED = 29  # of the fixed direction; part of the result, never to be changed
# Unit rows are summed as multiples of this. The sum of whole numbers does not depend on the order,
# and that of 2 ** 31 rows fits 64 bits.
_STEP = 2.0**-32


@contextlib.contextmanager
def use_canonical_order() -> Iterator[None]:
    """Do nothing: rows are always clustered in canonical order. It will go in 0.3."""
    warnings.warn(
        "rows are always clustered in canonical order; leave use_canonical_order out",
        DeprecationWarning,
        stacklevel=3,
    )
    yield


def find_canonical_order(points: npt.NDArray[Any]) -> IntArray:
    """Sort rows by their content.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), of any number type, also a mapped file
        Finite. A row of zeros, which has no cosine, comes first.

    Returns
    -------
    order : ndarray of shape (n_points,)
        ``points[order]`` is in canonical order. The same rows in another order give the same
        ``points[order]``.
    """
    n_points, dim = points.shape
    mean = _sum_unit_rows(points)
    fixed = np.random.default_rng(_SEED).standard_normal((1, dim))[0]
    key = np.empty(n_points)
    for rows, found in map_row_blocks(partial(_find_keys, mean=mean), points, 4 * dim):
        key[rows] = found
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    tied = np.flatnonzero(ranked[1:] == ranked[:-1])
    if len(tied):
        places = np.union1d(tied, tied + 1)
        order[places] = _sort_ties(points, order[places], key[order[places]], fixed)
    return order


def invert_order(order: IntArray) -> IntArray:
    """The place of each row in an order: ``order[invert_order(order)[i]] == i``."""
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def _sum_unit_rows(points: npt.NDArray[Any]) -> Float64Array:
    """The direction of the mean of all unit rows, shape (dim,)."""
    dim = points.shape[1]
    total = np.zeros(dim, dtype=np.int64)
    for _, part in map_row_blocks(_sum_steps, points, 4 * dim):
        total += part
    return total.astype(np.float64)


def _sum_steps(rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Sum of unit rows in whole numbers, shape (dim,)."""
    block, length, _ = _scale(np.asarray(rows))
    block /= np.where(length > 0, length * _STEP, 1.0)[:, None]
    total: npt.NDArray[np.int64] = np.rint(block, out=block).astype(np.int64).sum(axis=0)
    return total


def _find_keys(rows: npt.NDArray[Any], mean: Float64Array) -> Float64Array:
    """The key of each row, shape (n_rows,)."""
    block, length, _ = _scale(np.asarray(rows))
    return _cosines(block, length, mean)


def _sort_ties(
    points: npt.NDArray[Any], rows: IntArray, key: Float64Array, direction: Float64Array
) -> IntArray:
    """Rows in runs of one key each, sorted by the second cosine and the length within a run."""
    second, length = np.empty(len(rows)), np.empty(len(rows))
    for part in row_blocks(len(rows), 4 * points.shape[1]):
        block, scaled, exponent = _scale(np.asarray(points[rows[part]]))
        second[part] = _cosines(block, scaled, direction)
        length[part] = np.ldexp(scaled, exponent)
        drop_pages(points)
    return rows[np.lexsort((rows, length, second, key))]


def _scale(block: npt.NDArray[Any]) -> tuple[Float64Array, Float64Array, npt.NDArray[Any]]:
    """A copy of some rows times a power of two, their lengths, and the exponents of these powers.

    A power of two as factor is exact, and keeps squares from overflow and underflow. Those of
    16-bit and 32-bit numbers have room in float64.
    """
    is_short = block.dtype.itemsize <= 4
    block = np.array(block, dtype=np.float64, order="C")
    exponent = np.zeros(len(block), dtype=np.int64)
    if not is_short:
        exponent = np.frexp(np.abs(block).max(axis=1, initial=0.0))[1].astype(np.int64)
        block = np.ldexp(block, -exponent[:, None])
    return block, np.sqrt(np.einsum("ij,ij->i", block, block)), exponent


def _cosines(block: Float64Array, length: Float64Array, direction: Float64Array) -> Float64Array:
    """Cosine of each row with a direction, up to its length; rows of zeros come first.

    A product of matrices would round a row differently in another place of the block; these sums
    do not.
    """
    along = np.einsum("ij,j->i", block, direction)
    cosine = np.full(len(block), -np.inf)
    np.divide(along, length, out=cosine, where=length > 0)
    return cosine
