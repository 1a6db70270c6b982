"""Refinement by neighbours: compare single pairs, such as neighbours of neighbours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix

from hilander.arrays.row_source import Index32
from hilander.knn.block_join import Joiner
from hilander.knn.nearest_lists import Candidates

_REFINE = 6  # best neighbours whose lists are searched; the lists of later ones add little


def refine_by_neighbours(joiner: Joiner) -> Iterator[int]:
    """Compare each row with the neighbours of its best neighbours, and update the lists of both.

    Parameters
    ----------
    joiner : Joiner
        Its lists must be full.

    Yields
    ------
    done : int
        Rows done since the previous yield.
    """
    n_rows, count = joiner.lists.column.shape
    per_row = min(_REFINE, count) * count * joiner.source.dim
    step = max(1, joiner.workers.product // per_row)

    def compare(start: int) -> Candidates:
        return _compare_block(joiner, slice(start, min(start + step, n_rows)))

    some = step * joiner.batch
    for first in range(0, n_rows, some):
        last = min(first + some, n_rows)
        # All blocks of a batch read the same lists, so the order of the threads has no effect.
        joiner.merge(joiner.workers.map(compare, range(first, last, step)))
        yield last - first


def compare_pairs(joiner: Joiner, pairs: csr_matrix) -> None:
    """Compare given pairs of rows, and update the lists of both.

    Parameters
    ----------
    joiner : Joiner of n_rows rows
    pairs : csr_matrix of shape (n_rows, n_rows)
        Symmetric; every entry is a pair, its value is not used.
    """
    row = np.repeat(np.arange(pairs.shape[0], dtype=np.int32), np.diff(pairs.indptr))
    once = np.flatnonzero(row < pairs.indices)
    row, column = row[once], pairs.indices[once].astype(np.int32)
    step = max(1, joiner.workers.product // joiner.source.dim)

    def compare(start: int) -> Candidates:
        return _compare_pairs(joiner, row[start : start + step], column[start : start + step])

    starts = range(0, len(row), step)
    for first in range(0, len(starts), joiner.batch):
        joiner.merge(joiner.workers.map(compare, starts[first : first + joiner.batch]))


def _compare_block(joiner: Joiner, rows: slice) -> Candidates:
    """Candidates from a block of rows, for its own lists and those of the compared rows."""
    return _compare_pairs(joiner, *_unlisted_pairs(joiner.lists.column, rows))


def _compare_pairs(joiner: Joiner, row: Index32, column: Index32) -> Candidates:
    """Candidates from pairs: those better than the last entry of the list of either row."""
    source, floor = joiner.source, joiner.lists.floor
    value = np.einsum("id,id->i", source.take(row), source.take(column))
    for_row, for_column = value > floor[row], value > floor[column]
    return Candidates(
        np.concatenate([row[for_row], column[for_column]]),
        np.concatenate([column[for_row], row[for_column]]),
        np.concatenate([value[for_row], value[for_column]]),
    )


def _unlisted_pairs(listed: Index32, rows: slice) -> tuple[Index32, Index32]:
    """Pairs of a row and a neighbour of its neighbours that its list does not have, each once."""
    own = listed[rows]
    itself = np.arange(rows.start, rows.stop, dtype=np.int32)[:, None]
    theirs = np.sort(listed[own[:, :_REFINE]].reshape(len(own), -1), axis=1)
    new = theirs != itself
    new[:, 1:] &= theirs[:, 1:] != theirs[:, :-1]
    for place in range(own.shape[1]):
        new &= theirs != own[:, place, None]
    column = theirs[new]
    return np.repeat(itself[:, 0], new.sum(axis=1)), column
