"""An order of the rows that follows from their content, so that the given order does not matter.

The search, the community search and sums of rounded numbers depend a little on the order of the
rows. Clustering can sort the rows by a key of their own, and give the result back in the given
order: permuted rows then give the permuted result, exactly.

The key of a row is its cosine with a fixed direction. It is computed from this row alone, in
float64, so it depends neither on the place of the row nor on the other rows. A common factor of
all rows and the number type change it by no more than their rounding. Ties are broken by the cosine
with a second direction, then by the length of the row. Rows that are still equal are exchangeable,
and keep the given order among each other.

It is off unless `use_canonical_order` or ``hilander cluster --canonical-order`` turns it on: it
changes the result as much as a permutation of the rows does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray, drop_pages, row_blocks

Float64Array = npt.NDArray[np.float64]
_SEED = 29  # of the directions; part of the result, never to be changed

in_use = False  # whether clustering sorts the rows; one setting for the process


@contextlib.contextmanager
def use_canonical_order() -> Iterator[None]:
    """Cluster rows in canonical order until the block ends."""
    global in_use
    former = in_use
    in_use = True
    try:
        yield
    finally:
        in_use = former


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
    directions = np.random.default_rng(_SEED).standard_normal((2, dim))
    key = np.empty(n_points)
    for rows in row_blocks(n_points, 4 * dim):
        key[rows] = _cosines(np.asarray(points[rows]), directions[0])[0]
        drop_pages(points)
    order = np.argsort(key, kind="stable")
    tied = np.flatnonzero(np.diff(key[order]) == 0)
    if len(tied):
        places = np.union1d(tied, tied + 1)
        order[places] = _sort_ties(points, order[places], key[order[places]], directions[1])
    return order


def invert_order(order: IntArray) -> IntArray:
    """The place of each row in an order: ``order[invert_order(order)[i]] == i``."""
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def _sort_ties(
    points: npt.NDArray[Any], rows: IntArray, key: Float64Array, direction: Float64Array
) -> IntArray:
    """Rows in runs of one key each, sorted by the second cosine and the length within a run."""
    second, length = np.empty(len(rows)), np.empty(len(rows))
    for block in row_blocks(len(rows), 4 * points.shape[1]):
        second[block], length[block] = _cosines(np.asarray(points[rows[block]]), direction)
        drop_pages(points)
    return rows[np.lexsort((rows, length, second, key))]


def _cosines(block: npt.NDArray[Any], direction: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Cosine of each row with a direction, up to its length, and the length of the row.

    A product of matrices would round a row differently in another place of the block; these sums
    do not.
    """
    block = np.ascontiguousarray(block, dtype=np.float64)
    # A power of two as factor is exact, and keeps squares from overflow and underflow.
    largest = np.abs(block).max(axis=1, initial=0.0)
    exponent = np.frexp(largest)[1]
    block = np.ldexp(block, -exponent[:, None])
    length = np.sqrt(np.einsum("ij,ij->i", block, block))
    along = np.einsum("ij,j->i", block, direction)
    cosine = np.divide(along, length, out=np.full(len(block), -np.inf), where=length > 0)
    return cosine, np.ldexp(length, exponent)
