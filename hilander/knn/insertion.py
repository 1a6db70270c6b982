"""Insertion of rows into a k-NN graph: exact lists of the new rows, updated lists of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilander.arrays.row_source import Index32, RowSource
from hilander.arrays.rows import FloatArray, IntArray
from hilander.engines.threads import Workers, open_workers
from hilander.graph.knn_graph import edge_blocks
from hilander.knn.block_plan import plan_blocks
from hilander.knn.nearest_lists import Candidates, NearestLists, best_of_matrix

_ROWS = 1_024  # rows of a block of the product with all rows
_BATCH = 8  # blocks between two updates; fixed, so that results do not depend on the workers
_ALONE_BELOW = 20_000  # rows; a second thread costs more than it saves


@dataclass(frozen=True, eq=False)
class Insertion:
    """Lists after rows were inserted.

    Parameters
    ----------
    neighbours : ndarray of shape (n_rows, k), int64
    affinity : ndarray of shape (n_rows, k), float32
    changed : ndarray of shape (n_changed,), rising
        Rows whose lists changed: the inserted rows, those whose lists had empty places, and those
        that list an inserted row now.
    """

    neighbours: IntArray
    affinity: FloatArray
    changed: IntArray


def insert_rows(
    features: npt.NDArray[np.floating], neighbours: IntArray, affinity: FloatArray
) -> Insertion:
    """Insert the last rows of a table into the k-NN graph of the first, by exact search.

    A list that does not change keeps its bits.

    Parameters
    ----------
    features : ndarray of shape (n_rows, dim), float32 or float16
        L2-normalised rows; those after `n_old` are inserted.
    neighbours : ndarray of shape (n_old, k)
        Lists of the first rows; -1 in an empty place, which is filled.
    affinity : ndarray of shape (n_old, k), float32

    Returns
    -------
    insertion : Insertion of n_rows rows
    """
    source, (n_old, k) = RowSource(features), neighbours.shape
    n_rows = len(source)
    lists = NearestLists(n_rows, k)
    lists.value[:n_old], lists.column[:n_old] = affinity, neighbours
    holed = np.flatnonzero((neighbours < 0).any(axis=1)).astype(np.int32)
    _close_gaps(lists, holed)
    before = lists.column.copy()
    inserted = np.arange(n_old, n_rows, dtype=np.int32)
    plan = plan_blocks(n_rows, source.dim, k, None)
    with open_workers(alone=n_rows < _ALONE_BELOW, product=plan.product) as workers:
        for rows, n_listing in ((inserted, n_old), (holed, 0)):
            for start in range(0, len(rows), _ROWS):
                _compare_rows(source, rows[start : start + _ROWS], lists, workers, n_listing)
        differs = (lists.column != before).any(axis=1)
        differs[inserted] = True
        differs[holed] = True
        changed = np.flatnonzero(differs)
        found = np.concatenate([neighbours, np.empty((len(inserted), k), dtype=np.int64)])
        value = np.concatenate([affinity, np.empty((len(inserted), k), dtype=np.float32)])
        _settle(source, lists, changed, (found, value), workers)
    return Insertion(found, value, changed)


def _close_gaps(lists: NearestLists, rows: Index32) -> None:
    """Move the empty places of some lists to their ends."""
    value = np.where(lists.column[rows] < 0, -np.inf, lists.value[rows]).astype(np.float32)
    order = np.argsort(-value, axis=1, kind="stable")
    lists.value[rows] = np.take_along_axis(value, order, axis=1)
    lists.column[rows] = np.take_along_axis(lists.column[rows], order, axis=1)


def _compare_rows(
    source: RowSource, rows: Index32, lists: NearestLists, workers: Workers, n_listing: int
) -> None:
    """Compare some rows with all; update their lists and those of the first `n_listing` rows."""
    points = source.take(rows)
    width = max(lists.count + 1, workers.product // len(rows))

    def compare(start: int) -> Candidates:
        stop = min(start + width, len(source))
        cosine = points @ source.block(start, stop).T
        inside = np.flatnonzero((rows >= start) & (rows < stop))
        cosine[inside, rows[inside] - start] = -np.inf  # a row is not its own neighbour
        row, column = _above(cosine, lists.floor[rows], lists.count)
        found = [Candidates(rows[row], (column + start).astype(np.int32), cosine[row, column])]
        old = cosine[:, : max(0, n_listing - start)]
        if old.shape[1]:
            floor = lists.floor[start : start + old.shape[1]]
            row, column = np.divmod(np.flatnonzero((old > floor).ravel()), old.shape[1])
            listing = (column + start).astype(np.int32)
            found.append(Candidates(listing, rows[row], cosine[row, column]))
        return Candidates.gather(found)

    starts = range(0, len(source), width)
    # The first block alone: until the lists are filled, every pair is a candidate.
    batches = [starts[:1], *(starts[at : at + _BATCH] for at in range(1, len(starts), _BATCH))]
    for batch in batches:
        lists.merge(Candidates.gather(workers.map(compare, batch)))


def _above(cosine: FloatArray, floor: FloatArray, count: int) -> tuple[IntArray, IntArray]:
    """Places of a matrix above the floor of their row; the best `count` if a list has room."""
    if cosine.shape[1] > count and np.isneginf(floor).any():
        column = best_of_matrix(cosine, count)
        return np.repeat(np.arange(len(cosine)), count), column.ravel()
    row, column = np.divmod(np.flatnonzero((cosine > floor[:, None]).ravel()), cosine.shape[1])
    return row, column


def _settle(
    source: RowSource,
    lists: NearestLists,
    changed: IntArray,
    out: tuple[IntArray, FloatArray],
    workers: Workers,
) -> None:
    """Order the changed lists by a similarity that does not depend on blocks."""

    def settle_block(part: slice) -> None:
        rows = changed[part]
        found = np.sort(lists.column[rows], axis=1)
        ends = source.take(found.ravel()).reshape(*found.shape, source.dim)
        value = np.clip(np.einsum("ikd,id->ik", ends, source.take(rows)), -1.0, 1.0)
        order = np.argsort(-value, axis=1, kind="stable")
        out[0][rows] = np.take_along_axis(found, order, axis=1)
        out[1][rows] = np.take_along_axis(value, order, axis=1)

    workers.map(settle_block, edge_blocks(len(changed), lists.count * source.dim))
