"""Recall of a search: exact neighbours of a few rows, and the share of them it found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.row_source import Index32, RowSource
from hilander.arrays.rows import FloatArray
from hilander.engines.threads import Workers
from hilander.knn.nearest_lists import Candidates, NearestLists

_ROWS = 1_024  # rows of a block of the product with all rows
_BATCH = 8  # blocks between two updates; fixed, so that results do not depend on the workers
_ROUNDING = 1e-5  # above the difference of one cosine summed in two orders
_CAUTION = 0.1  # share of the permitted misses left unused, since the recall of a sample varies


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Some rows with their exact neighbours.

    Parameters
    ----------
    rows : ndarray of shape (n_known,), int32
        Ascending.
    neighbours : ndarray of shape (n_known, k), int32
    affinity : ndarray of shape (n_known, k), float32
        Descending.
    """

    rows: Index32
    neighbours: Index32
    affinity: FloatArray


def aim_above(target: float) -> float:
    """The recall to reach on a sample: a little above the target for all rows."""
    return target + _CAUTION * (1 - target)


def sample_rows(n_rows: int, size: int, seed: int) -> Index32:
    """Draw rows without repeats, in ascending order."""
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(n_rows, min(size, n_rows), replace=False)).astype(np.int32)


def search_rows(source: RowSource, rows: Index32, k: int, workers: Workers) -> KnownRows:
    """Find the exact k nearest neighbours of some rows among all rows.

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
    """Fill the lists from number `first` on, for at most `_ROWS` rows."""
    points = source.take(rows)
    width = max(1, workers.product // len(rows))

    def compare(start: int) -> Candidates:
        cosine = points @ source.block(start, min(start + width, len(source))).T
        inside = np.flatnonzero((rows >= start) & (rows < start + width))
        cosine[inside, rows[inside] - start] = -np.inf  # a row is not its own neighbour
        found = _pick(cosine, lists.floor[first : first + len(rows)], lists.count)
        return Candidates(found.row + np.int32(first), found.column + np.int32(start), found.value)

    starts = range(0, len(source), width)
    # The first block alone: until the lists are filled, every pair is a candidate.
    batches = [starts[:1], *(starts[at : at + _BATCH] for at in range(1, len(starts), _BATCH))]
    for batch in batches:
        lists.merge(Candidates.gather(workers.map(compare, batch)))


def _pick(cosine: FloatArray, floor: FloatArray, count: int) -> Candidates:
    """Candidates of each row of a matrix: all entries above the floor, or the best `count`."""
    n_columns = cosine.shape[1]
    if n_columns > count and np.isneginf(floor).any():
        column = np.argpartition(cosine, n_columns - count, axis=1)[:, -count:].ravel()
        row = np.repeat(np.arange(len(cosine)), count)
    else:
        # On the raveled mask: flatnonzero is many times faster than nonzero in two dimensions.
        row, column = np.divmod(np.flatnonzero((cosine > floor[:, None]).ravel()), n_columns)
    return Candidates(row.astype(np.int32), column.astype(np.int32), cosine[row, column])


def measure_recall(known: KnownRows, affinity: FloatArray) -> float:
    """Share of the exact neighbours of the known rows that a search found.

    Counted by similarity: a row as similar as the last exact neighbour counts as found.

    Parameters
    ----------
    known : KnownRows
    affinity : ndarray of shape (n_rows, k), float32
        Similarity of the neighbours found for every row.

    Returns
    -------
    recall : float, in [0, 1]
    """
    needed = known.affinity[:, -1:] - _ROUNDING
    return float((affinity[known.rows] >= needed).mean())
