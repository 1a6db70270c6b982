"""Cells (inverted lists): the rows nearest to each centre, by spherical k-means on a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hilander.arrays.row_source import Index32, RowSource
from hilander.arrays.rows import BoolArray, FloatArray, IntArray, sort_by_group
from hilander.engines.threads import Workers

ROWS_PER_CENTRE = 10  # rows of the sample; more hardly improve the centres
N_ROUNDS = 3  # of k-means; later rounds move the centres little
_FLAT_UP_TO = 512  # centres, up to which each row is compared with all of them
_ONE_IN_REACH_OF = 3  # with more centres, a row is compared with one in so many

CellArray = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Centres:
    """Centres of the cells, searched in two steps.

    A row is compared with the coarse centres first, then with the centres in reach of its nearest
    coarse centre. With thousands of centres this saves most of the comparisons.

    Parameters
    ----------
    point : ndarray of shape (n_lists, dim), float32
        Of unit length.
    coarse : ndarray of shape (n_coarse, dim), float32
    reach : ndarray of shape (n_coarse, n_reach)
        The centres nearest to each coarse centre, ascending.
    share : ndarray of shape (n_lists,)
        Share of the sample that is nearest to each centre.
    """

    point: FloatArray
    coarse: FloatArray
    reach: IntArray
    share: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.point)

    def reaches(self, coarse: IntArray, cell: CellArray) -> BoolArray:
        """Whether each cell is in reach of the coarse centre of the same place."""
        table = np.zeros((len(self.coarse), len(self)), dtype=bool)
        np.put_along_axis(table, self.reach, True, axis=1)
        return table[coarse, cell]


@dataclass(frozen=True, eq=False)
class Probes:
    """The cells that consecutive rows belong to, and those that they probe.

    Parameters
    ----------
    coarse : ndarray of shape (n_rows,)
        The coarse centre nearest to each row.
    home : ndarray of shape (n_rows,), uint16
        The cell each row belongs to.
    cosine : ndarray of shape (n_rows,), float32
        Similarity to that cell's centre.
    row : ndarray of shape (n_pairs,), int32
        Rows that probe another cell, once for each such cell.
    cell : ndarray of shape (n_pairs,), uint16
        That cell.
    """

    coarse: IntArray
    home: CellArray
    cosine: FloatArray
    row: Index32
    cell: CellArray


def count_reach(n_lists: int) -> tuple[int, int]:
    """Number of coarse centres, and number of centres in reach of each."""
    if n_lists <= _FLAT_UP_TO:
        return 1, n_lists
    n_coarse = 2 ** round(np.log2(2 * np.sqrt(n_lists)))
    return n_coarse, min(n_lists, max(_FLAT_UP_TO, n_lists // _ONE_IN_REACH_OF))


def learn_centres(sample: FloatArray, n_lists: int, workers: Workers, seed: int) -> Centres:
    """Find centres by spherical k-means.

    The initial centres are drawn from the rows, so that dense regions get many.

    Parameters
    ----------
    sample : ndarray of shape (n_sample, dim), float32
    n_lists : int
        At most 65,536, and at most the number of rows.
    workers : Workers
    seed : int
    """
    rng = np.random.default_rng(seed)
    n_coarse, n_reach = count_reach(n_lists)
    coarse = sample[np.sort(rng.choice(len(sample), n_coarse, replace=False))]
    part = RowSource(sample[: ROWS_PER_CENTRE * n_coarse])
    if n_coarse > 1:
        part = RowSource(sample[np.sort(rng.choice(len(sample), len(part), replace=False))])
        coarse = _learn(part, _link(coarse, coarse[:1], n_coarse), workers).point
    first = sample[np.sort(rng.choice(len(sample), n_lists, replace=False))]
    return _learn(RowSource(sample), _link(first, coarse, n_reach), workers)


def _link(point: FloatArray, coarse: FloatArray, n_reach: int) -> Centres:
    """Find the centres in reach of each coarse centre."""
    reach = np.argpartition(-(coarse @ point.T), n_reach - 1, axis=1)[:, :n_reach]
    return Centres(point, coarse, np.sort(reach, axis=1), np.zeros(len(point)))


def _learn(source: RowSource, centres: Centres, workers: Workers) -> Centres:
    """Move each centre to the mean direction of the rows nearest to it, `N_ROUNDS` times."""
    from scipy.sparse import csr_matrix

    sample, n_lists = source.features, len(centres)
    for _ in range(N_ROUNDS):
        home = find_probes(source, centres, -1.0, None, workers).home.astype(np.int64)
        belongs = (np.ones(len(home), dtype=np.float32), (home, np.arange(len(home))))
        total = csr_matrix(belongs, shape=(n_lists, len(home))) @ sample
        length = np.linalg.norm(total, axis=1, keepdims=True)
        # A centre without rows stays where it is.
        point = np.where(length > 0, total / np.maximum(length, 1e-12), centres.point)
        centres = _link(point.astype(np.float32), centres.coarse, centres.reach.shape[1])
    return replace(centres, share=np.bincount(home, minlength=n_lists) / len(home))


def find_probes(
    source: RowSource,
    centres: Centres,
    margin: float,
    rows: slice | None,
    workers: Workers,
    *,
    beyond: float | None = None,
) -> Probes:
    """Find the cell of each row, and other cells whose centre is hardly less similar.

    Parameters
    ----------
    source : RowSource
    centres : Centres
    margin : float
        A row probes the cells in reach whose centre has a cosine within the margin of the best
        cosine. With a margin below 0 it probes none.
    rows : slice or None
        None for all rows.
    workers : Workers
    beyond : float, optional
        A smaller margin. The cells within it were probed before and are left out.
    """
    rows = slice(0, len(source)) if rows is None else rows
    coarse = _nearest_coarse(source, centres.coarse, rows, workers)
    order, starts = sort_by_cell(coarse.astype(np.uint16), len(centres.coarse))
    step = max(1, workers.product // centres.reach.shape[1])
    home = np.empty(len(coarse), dtype=np.uint16)
    best = np.empty(len(coarse), dtype=np.float32)

    def probe(piece: tuple[int, Index32]) -> tuple[Index32, CellArray]:
        number, places = piece
        reach = centres.reach[number]
        cosine = source.take(places + np.int32(rows.start)) @ centres.point[reach].T
        nearest, everyone = cosine.argmax(axis=1), np.arange(len(cosine))
        home[places], best[places] = reach[nearest], cosine[everyone, nearest]
        if margin < 0:
            return places[:0], home[:0]
        near = cosine >= (best[places] - np.float32(margin))[:, None]
        if beyond is not None:
            near &= cosine < (best[places] - np.float32(beyond))[:, None]
        near[everyone, nearest] = False
        place, cell = np.divmod(np.flatnonzero(near.ravel()), len(reach))
        return places[place] + np.int32(rows.start), reach[cell].astype(np.uint16)

    pieces = (
        (number, order[at : min(at + step, starts[number + 1])])
        for number in range(len(centres.coarse))
        for at in range(starts[number], starts[number + 1], step)
    )
    row, cell = zip(*workers.map(probe, pieces), strict=True)
    return Probes(coarse, home, best, np.concatenate(row), np.concatenate(cell))


def _nearest_coarse(
    source: RowSource, coarse: FloatArray, rows: slice, workers: Workers
) -> IntArray:
    """Number of the coarse centre nearest to each row."""
    if len(coarse) == 1:
        return np.zeros(rows.stop - rows.start, dtype=np.int64)
    step = max(1, workers.product // len(coarse))

    def find_nearest(start: int) -> IntArray:
        points = source.block(start, min(start + step, rows.stop))
        nearest: IntArray = (points @ coarse.T).argmax(axis=1)
        return nearest

    return np.concatenate(workers.map(find_nearest, range(rows.start, rows.stop, step)))


def sort_by_cell(cells: CellArray, n_lists: int) -> tuple[Index32, IntArray]:
    """Sort entries by cell: their places, cell by cell, and where each cell begins.

    Returns
    -------
    places : ndarray of shape (n_entries,), int32
    starts : ndarray of shape (n_lists + 1,)
    """
    places, starts = sort_by_group(cells, n_lists)
    return places.astype(np.int32), starts
