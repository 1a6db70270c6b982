"""Equal rows: rows of a table of embeddings whose numbers are all the same.

A photo that was saved twice gives two equal rows. Every stage that treats equal rows in a special
way calls this module. There are four such stages:

k-NN search
    Always merged. Only the first row of each group is searched, and `expand_neighbours` gives all
    rows their neighbours. The graph is the one that a search of all rows gives, but all pairs of
    equal rows are never compared.
Clustering, method "evidence"
    Merged before the first level by `merge_equal_rows` and put back into it afterwards by
    `hilander.hierarchy.equal_points`. Equal rows add no information, but they would take the first
    places of the neighbour lists, and their affinity of 1 would make all others look small.
Training, method "evidence"
    Repeated rows of one identity are dropped by `drop_equal_rows`, for the same reason.
Linkage, both methods
    An edge between equal rows gets linkage 1, see `are_equal`. This covers equal rows that were
    not merged, and super-nodes with equal features.

Clustering and training keep all rows where hardly any are repeated (they do no harm) and where
fewer than 30 would be left. Clustering also keeps them where the table of distinct rows would take
much memory, and where the caller gives a graph, whose nodes are all rows. The method "paper" keeps
all rows, as published.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import (
    BoolArray,
    FloatArray,
    IntArray,
    is_remote,
    map_row_blocks,
    row_blocks,
)

FEWEST_DISTINCT = 30  # rows; with fewer distinct rows, all rows are kept
_LEAST_REPEATED = 0.005  # share of the rows; fewer repeated rows do no harm
_MOST_BYTES = 1 << 30  # of the table of distinct rows, which clustering holds beside the input
# Equal unit rows have a cosine of 1 up to the rounding of a float32 sum.
_EQUAL_COSINE = 1 - 2e-6
_BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}  # unsigned type by bytes of a number


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Groups of equal rows. A row that equals no other is a group of its own.

    Parameters
    ----------
    first : ndarray of shape (n_groups,)
        The lowest row of each group, ascending.
    group : ndarray of shape (n_rows,)
        The group of each row.
    members : ndarray of shape (n_rows,)
        The rows group by group, ascending within each.
    starts : ndarray of shape (n_groups + 1,)
        Where each group begins in `members`.
    """

    first: IntArray
    group: IntArray
    members: IntArray
    starts: IntArray

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each group, shape (n_groups,)."""
        return np.diff(self.starts)

    @property
    def first_of_row(self) -> IntArray:
        """The lowest row that equals each row, shape (n_rows,)."""
        return self.first[self.group]

    @property
    def is_repeated(self) -> BoolArray:
        """Whether each row equals a lower one, shape (n_rows,)."""
        repeated: BoolArray = self.first_of_row != np.arange(len(self.group))
        return repeated


def find_equal_rows(features: npt.NDArray[Any]) -> EqualRows | None:
    """Group equal rows; None if no two rows are equal.

    Parameters
    ----------
    features : ndarray of shape (n_rows, dim), float16, float32 or float64, also a mapped file
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
    repeated, originals = order[again], order[place[again]]
    for rows in row_blocks(len(repeated), 4 * features.shape[1]):
        # Rows with one hash are nearly always equal. Those that are not stay groups of their own.
        same = (features[repeated[rows]] == features[originals[rows]]).all(axis=1)
        leader[repeated[rows][same]] = originals[rows][same]
    first, group = np.unique(leader, return_inverse=True)
    if len(first) == len(leader):
        return None
    members = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[members], np.arange(len(first) + 1))
    return EqualRows(first, group, members, starts)


def merge_equal_rows(
    points: npt.NDArray[Any], *, most_bytes: int = _MOST_BYTES
) -> tuple[npt.NDArray[Any], EqualRows | None]:
    """The distinct rows and the groups of all rows; or all rows and None if they are kept.

    Parameters
    ----------
    points : ndarray of shape (n_rows, dim), also a mapped file
    most_bytes : int
        All rows are kept if the table of distinct rows would be larger.

    Returns
    -------
    distinct : ndarray of shape (n_groups, dim), or `points` itself
    equal : EqualRows or None
    """
    equal = _find_many(points)
    if equal is None or len(equal.first) * points[:1].nbytes > most_bytes:
        return points, None
    if is_remote(points):
        return points.select(equal.first), equal  # type: ignore[attr-defined]
    return points[equal.first], equal


def drop_equal_rows(points: FloatArray, labels: IntArray) -> tuple[FloatArray, IntArray]:
    """Labelled rows, each once in an identity.

    Equal rows with different labels are kept: one of the labels is wrong, but not known which. All
    rows are kept if an identity of several rows would be left with one.

    Parameters
    ----------
    points : ndarray of shape (n_rows, dim)
    labels : ndarray of shape (n_rows,), ints from 0

    Returns
    -------
    points : ndarray of shape (n_kept, dim)
    labels : ndarray of shape (n_kept,)
    """
    equal = _find_many(points)
    if equal is None:
        return points, labels
    n_identities = int(labels.max()) + 1
    kept = np.sort(np.unique(equal.group * n_identities + labels, return_index=True)[1])
    before, after = (np.bincount(one, minlength=n_identities) for one in (labels, labels[kept]))
    is_left_alone = (before > 1) & (after == 1)
    return (points, labels) if is_left_alone.any() else (points[kept], labels[kept])


def are_equal(cosine: FloatArray) -> BoolArray:
    """Whether pairs of unit rows are equal, by their cosine.

    Parameters
    ----------
    cosine : ndarray of any shape

    Returns
    -------
    are_equal : ndarray of the same shape, bool
    """
    equal: BoolArray = cosine >= _EQUAL_COSINE
    return equal


def expand_neighbours(
    equal: EqualRows, neighbours: IntArray, affinity: FloatArray, k: int
) -> tuple[IntArray, FloatArray]:
    """Turn neighbours of groups into neighbours of rows: equal rows first, then other members.

    Parameters
    ----------
    equal : EqualRows of n_rows rows in n_groups groups
    neighbours : ndarray of shape (n_groups, width)
        Groups near each group, the group itself first.
    affinity : ndarray of shape (n_groups, width), float32
        Similarity to them, descending after the group itself.
    k : int
        Neighbours of a row, the row itself not counted.

    Returns
    -------
    neighbours : ndarray of shape (n_rows, k)
    affinity : ndarray of shape (n_rows, k), float32
        Ordered by descending affinity, then by ascending index.
    """
    n_rows = len(equal.group)
    found = np.empty((n_rows, k), dtype=np.int64)
    value = np.empty((n_rows, k), dtype=np.float32)
    # At most k + 1 members of a group are needed: k neighbours and the row itself.
    sizes = np.minimum(equal.sizes, k + 1)
    for rows in row_blocks(n_rows, 8 * (2 * k + neighbours.shape[1])):
        near = neighbours[equal.group[rows]]  # (block, width)
        amount = sizes[near]
        before = np.cumsum(amount, axis=1) - amount
        amount[before > k] = 0  # the groups before these have enough members
        edges = np.repeat(np.arange(near.size), amount.ravel())
        within = np.arange(len(edges)) - np.repeat(
            np.cumsum(amount.ravel()) - amount.ravel(), amount.ravel()
        )
        member = equal.members[equal.starts[near.ravel()[edges]] + within]
        row = edges // near.shape[1]
        similar = affinity[equal.group[rows]].ravel()[edges]
        other = member != np.arange(rows.start, rows.stop)[row]
        row, member, similar = row[other], member[other], similar[other]
        order = np.lexsort((member, -similar, row))
        rank = np.arange(len(row)) - np.searchsorted(row, row)  # rows are ascending
        best = order[rank < k]
        found[rows] = member[best].reshape(-1, k)
        value[rows] = similar[best].reshape(-1, k)
    return found, value


def _find_many(points: npt.NDArray[Any]) -> EqualRows | None:
    """Equal rows, if enough rows are repeated and enough are distinct; else None."""
    equal = find_equal_rows(points)
    if equal is None or len(equal.first) < FEWEST_DISTINCT:
        return None
    n_repeated = len(points) - len(equal.first)
    return equal if n_repeated >= _LEAST_REPEATED * len(points) else None


def _hash_rows(features: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A 64-bit number for each row, the same for equal rows."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(2**63, size=features.shape[1], dtype=np.uint64)
    factors: Any = drawn * np.uint64(2) + np.uint64(1)
    codes = np.empty(len(features), dtype=np.uint64)
    code = partial(_hash_block, factors=factors)
    # 64-bit numbers take more room
    for rows, found in map_row_blocks(code, features, 16 * features.shape[1]):
        codes[rows] = found
    return codes


def _hash_block(block: npt.NDArray[Any], factors: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The numbers of the rows of a block."""
    block = np.ascontiguousarray(block) + block.dtype.type(0)  # -0.0 becomes 0.0
    bits = _BITS.get(block.dtype.itemsize)
    if bits is None:  # 8-bit numbers, booleans and long doubles
        block = block.astype(np.float64)
    return block.view(bits or np.uint64).astype(np.uint64) @ factors
