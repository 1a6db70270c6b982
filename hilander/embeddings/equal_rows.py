"""Rows that are equal: searched for once, then written out again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, row_blocks

_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Groups of equal rows.

    Parameters
    ----------
    first : ndarray of shape (n_groups,)
        The lowest row of each group, rising.
    group : ndarray of shape (n_rows,)
        The group of each row.
    members : ndarray of shape (n_rows,)
        The rows group by group, rising within each.
    starts : ndarray of shape (n_groups + 1,)
        Where each group begins in `members`.
    """

    first: IntArray
    group: IntArray
    members: IntArray
    starts: IntArray

    @property
    def sizes(self) -> IntArray:
        """Rows of each group."""
        return np.diff(self.starts)


def find_equal_rows(features: npt.NDArray[Any]) -> EqualRows | None:
    """Group equal rows; None if no two rows are equal.

    Parameters
    ----------
    features : ndarray of shape (n_rows, dim)
    """
    codes = _hash_rows(features)
    order = np.argsort(codes, kind="stable")
    again = np.flatnonzero(codes[order[1:]] == codes[order[:-1]]) + 1
    if not len(again):
        return None
    leader = np.arange(len(order))
    is_new = np.ones(len(order), dtype=bool)
    is_new[again] = False
    place = np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))
    copies, originals = order[again], order[place[again]]
    for rows in row_blocks(len(copies), 4 * features.shape[1]):
        # Two rows of one code are all but certainly equal; where they are not, nothing is lost.
        same = (features[copies[rows]] == features[originals[rows]]).all(axis=1)
        leader[copies[rows][same]] = originals[rows][same]
    first, group = np.unique(leader, return_inverse=True)
    if len(first) == len(leader):
        return None
    members = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[members], np.arange(len(first) + 1))
    return EqualRows(first, group, members, starts)


def _hash_rows(features: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A number of 64 bits for each row, equal for equal rows."""
    rng = np.random.default_rng(0)
    factors = rng.integers(2**63, size=features.shape[1], dtype=np.uint64) * np.uint64(2)
    factors += np.uint64(1)
    codes = np.empty(len(features), dtype=np.uint64)
    bits = _BITS[features.dtype.itemsize]
    for rows in row_blocks(len(features), 16 * features.shape[1]):  # integers of 64 bits are large
        block = np.ascontiguousarray(features[rows]) + features.dtype.type(0)  # -0.0 becomes 0.0
        codes[rows] = block.view(bits).astype(np.uint64) @ factors
    return codes


def expand_equal_rows(
    copies: EqualRows, neighbours: IntArray, affinity: FloatArray, k: int
) -> tuple[IntArray, FloatArray]:
    """Give every row the neighbours of its group: its copies, then the neighbours' members.

    Parameters
    ----------
    copies : EqualRows of n_rows rows in n_groups groups
    neighbours : ndarray of shape (n_groups, width)
        Groups near each group, itself first.
    affinity : ndarray of shape (n_groups, width), float32
        Similarity to them, falling but for the group itself.
    k : int
        Neighbours of a row, the row itself not counted.

    Returns
    -------
    neighbours : ndarray of shape (n_rows, k)
    affinity : ndarray of shape (n_rows, k), float32
        Ordered by falling affinity, then by rising index.
    """
    n_rows = len(copies.group)
    found = np.empty((n_rows, k), dtype=np.int64)
    value = np.empty((n_rows, k), dtype=np.float32)
    # Of no group more than k + 1 members can be needed: k neighbours and the row itself.
    sizes = np.minimum(copies.sizes, k + 1)
    for rows in row_blocks(n_rows, 8 * (2 * k + neighbours.shape[1])):
        near = neighbours[copies.group[rows]]  # (block, width)
        amount = sizes[near]
        before = np.cumsum(amount, axis=1) - amount
        amount[before > k] = 0  # enough without these
        edges = np.repeat(np.arange(near.size), amount.ravel())
        within = np.arange(len(edges)) - np.repeat(
            np.cumsum(amount.ravel()) - amount.ravel(), amount.ravel()
        )
        member = copies.members[copies.starts[near.ravel()[edges]] + within]
        row = edges // near.shape[1]
        similar = affinity[copies.group[rows]].ravel()[edges]
        other = member != np.arange(rows.start, rows.stop)[row]
        row, member, similar = row[other], member[other], similar[other]
        order = np.lexsort((member, -similar, row))
        rank = np.arange(len(row)) - np.searchsorted(row, row)  # rows are rising
        best = order[rank < k]
        found[rows] = member[best].reshape(-1, k)
        value[rows] = similar[best].reshape(-1, k)
    return found, value
