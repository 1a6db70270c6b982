"""Exact neighbours of a few rows, and what share of them a search found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.row_source import Index32, RowSource
from hilander.arrays.rows import FloatArray, IntArray
from hilander.engines.threads import Workers
from hilander.knn.nearest_lists import Candidates, NearestLists

_ROWS = 1_024
# Blocks between two updates of the lists; a number of its own, whatever the number of workers.
_BATCH = 8
# Similarities of one pair computed in different orders differ by less.
_ROUNDING = 1e-5
# Share of what may be missed that a search leaves unused, for the sample is one of many.
_CAUTION = 0.1


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Some rows with their exact neighbours.

    Parameters
    ----------
    rows : ndarray of shape (n_known,), int32
        Rising.
    neighbours : ndarray of shape (n_known, k), int32
    affinity : ndarray of shape (n_known, k), float32
        Falling.
    """

    rows: Index32
    neighbours: Index32
    affinity: FloatArray


def aim_above(target: float) -> float:
    """The recall to aim for on a sample, a little above the one that all rows shall have."""
    return target + _CAUTION * (1 - target)


def sample_rows(n_rows: int, size: int, seed: int) -> Index32:
    """Draw rows without repeats, in rising order."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n_rows, min(size, n_rows), replace=False)).astype(np.int32)


def search_rows(source: RowSource, rows: Index32, k: int, workers: Workers) -> KnownRows:
    """Find the exact k nearest of some rows among all.

    Parameters
    ----------
    source : RowSource of n_rows rows
    rows : ndarray of shape (n_known,), int32
    k : int
        At most n_rows - 1.
    workers : Workers

    Returns
    -------
    known : KnownRows
    """
    lists = NearestLists(len(rows), k)
    for start in range(0, len(rows), _ROWS):
        _search_some(source, rows[start : start + _ROWS], start, lists, workers)
    return KnownRows(rows, lists.column, lists.value)


def _search_some(
    source: RowSource, rows: Index32, first: int, lists: NearestLists, workers: Workers
) -> None:
    """Fill the lists `first` and following, of rows few enough for one block."""
    points = source.take(rows)
    width = max(1, workers.product // len(rows))

    def look(start: int) -> Candidates:
        cosine = points @ source.block(start, min(start + width, len(source))).T
        inside = np.flatnonzero((rows >= start) & (rows < start + width))
        cosine[inside, rows[inside] - start] = -np.inf  # a row is not its own neighbour
        found = _pick(cosine, lists.floor[first : first + len(rows)], lists.count)
        return Candidates(found.row + np.int32(first), found.column + np.int32(start), found.value)

    starts = range(0, len(source), width)
    # The first block alone: everything is promising until the lists hold something.
    batches = [starts[:1], *(starts[at : at + _BATCH] for at in range(1, len(starts), _BATCH))]
    for batch in batches:
        lists.merge(Candidates.gather(workers.map(look, batch)))


def _pick(cosine: FloatArray, floor: FloatArray, count: int) -> Candidates:
    """Give the best entries of each row of a matrix, at least those that exceed the row's floor."""
    n_columns = cosine.shape[1]
    if n_columns > count and np.isneginf(floor).any():
        column = np.argpartition(cosine, n_columns - count, axis=1)[:, -count:].ravel()
        row = np.repeat(np.arange(len(cosine)), count)
    else:
        # Of the raveled mask: numpy finds what is true in one dimension many times faster.
        row, column = np.divmod(np.flatnonzero((cosine > floor[:, None]).ravel()), n_columns)
    return Candidates(row.astype(np.int32), column.astype(np.int32), cosine[row, column])


def measure_recall(known: KnownRows, affinity: FloatArray) -> float:
    """Share of the exact neighbours of the known rows that a search found.

    Counted by similarity: one as near as the last exact neighbour is as good as it.

    Parameters
    ----------
    known : KnownRows
    affinity : ndarray of shape (n_rows, k), float32
        Similarity of what was found for every row.

    Returns
    -------
    recall : float, in [0, 1]
    """
    needed = known.affinity[:, -1:] - _ROUNDING
    return float((affinity[known.rows] >= needed).mean())


def share_found(found: IntArray, exact: IntArray) -> float:
    """Share of the exact neighbours that are among those found, by index.

    Parameters
    ----------
    found, exact : ndarray of shape (n_rows, k)

    Returns
    -------
    share : float, in [0, 1]
    """
    return float((exact[:, :, None] == found[:, None, :]).any(axis=2).mean())
