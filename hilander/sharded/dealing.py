"""Dealing: a row goes to the partition of its cell, and visits those of the cells it probes.

Rows are numbered anew, by cell and then by the order of the input. So a partition is a range of
numbers, and neighbours mostly are in the same one. The numbers do not depend on the partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.sharded.cells import Cells, PieceCells, assign_piece
from hilander.sharded.parted import PartedRows

# Shares of the memory of a worker: features of a partition, and of the rows that visit it at a
# time. The rest is for lists, halos, and the program itself.
PART_SHARE, VISIT_SHARE, BATCH_SHARE = 0.15, 0.15, 0.2


@dataclass(frozen=True, eq=False)
class Layout:
    """Which rows and cells each partition has.

    Parameters
    ----------
    order : ndarray of shape (n_points,)
        Row of the input that has each number.
    cell_starts : ndarray of shape (n_cells + 1,)
        Number at which each cell begins.
    cells : ndarray of shape (n_parts + 1,)
        Cell at which each partition begins.
    """

    order: IntArray
    cell_starts: IntArray
    cells: IntArray

    @property
    def starts(self) -> IntArray:
        """Number at which each partition begins, shape (n_parts + 1,)."""
        return self.cell_starts[self.cells]


@dataclass(frozen=True, eq=False)
class Visit:
    """Rows that a partition is searched with.

    Parameters
    ----------
    number : ndarray of shape (n_visitors,)
        Numbers of rows of other partitions, rising.
    features : ndarray of shape (n_visitors, dim)
    row : ndarray of shape (n_probes,)
        Number of a row, of this partition or another one.
    cell : ndarray of shape (n_probes,), uint16
        A cell of this partition that it probes.
    """

    number: IntArray
    features: FloatArray
    row: IntArray
    cell: npt.NDArray[np.uint16]


def count_parts(n_points: int, dim: int, memory: int) -> int:
    """Number of partitions whose features take their share of the memory of a worker."""
    return max(1, -int(-(n_points * dim * 4) // (PART_SHARE * memory)))


def assign_cells(points: PartedRows, cells: Cells) -> tuple[list[Any], IntArray]:
    """Find the cells of all rows: held `PieceCells` of each piece, and the cell of each row."""
    log = points.log
    held = log.engine.put(cells)

    def submit() -> Iterator[Any]:
        for part, (start, stop) in zip(points.parts, pairwise(points.starts.tolist()), strict=True):
            yield log.engine.submit(
                _assign, held, part, start, len(points), n_results=2, rows=stop - start
            )

    tasks = log.run("prepare", submit(), len(points))
    home = [log.engine.fetch(task.results[0]) for task in tasks]
    return [task.results[1] for task in tasks], np.concatenate(home).astype(np.int64)


def _assign(
    cells: Cells, features: FloatArray, start: int, n_points: int
) -> tuple[npt.NDArray[np.uint16], PieceCells]:
    found = assign_piece(cells, features, start, n_points)
    return found.home, found


def lay_out(home: IntArray, n_cells: int, n_parts: int) -> Layout:
    """Number the rows by cell, and cut the cells into partitions of about as many rows.

    Parameters
    ----------
    home : ndarray of shape (n_points,)
        Cell of each row.
    n_cells, n_parts : int
        There are fewer partitions where a cell is larger than one of them should be.
    """
    cell_starts = np.concatenate([[0], np.cumsum(np.bincount(home, minlength=n_cells))])
    wanted = np.arange(n_parts + 1) * len(home) / n_parts
    cuts = np.searchsorted(cell_starts, wanted)
    cuts[0], cuts[-1] = 0, n_cells
    cuts = np.unique(cuts)
    rows = cell_starts[cuts]
    cells = np.concatenate([cuts[:-1][np.diff(rows) > 0], [n_cells]])
    cells[0] = 0
    return Layout(np.argsort(home, kind="stable"), cell_starts, cells)


class Dealer:
    """Deals the rows of pieces to partitions.

    Parameters
    ----------
    points : PartedRows
        In the order of the input, in pieces.
    cells : list of Held
        `PieceCells` of each piece.
    layout : Layout
    memory : int
        Of a worker, in bytes.
    """

    def __init__(self, points: PartedRows, cells: list[Any], layout: Layout, memory: int) -> None:
        self.points, self.cells, self.layout = points, cells, layout
        self.memory = memory
        self.number = np.empty(len(layout.order), dtype=np.int64)
        self.number[layout.order] = np.arange(len(layout.order))

    def deal(self, *, with_visitors: bool = True) -> tuple[PartedRows, list[list[list[Any]]]]:
        """Give each partition its rows, and the visits that it is searched with.

        Returns
        -------
        parts : PartedRows
            In the order of the new numbers.
        visits : list of list of list of Held
            Held `Visit` of each partition, in groups that fit a share of the memory.
        """
        log, starts = self.points.log, self.layout.starts
        n_parts = len(starts) - 1
        tasks = log.run("prepare", self._submit(n_parts, with_visitors), len(self.points))
        own = [list(task.results[:n_parts]) for task in tasks]
        visits = [list(task.results[n_parts : 2 * n_parts]) for task in tasks]
        counts = np.array([log.engine.fetch(task.results[-1]) for task in tasks])
        del tasks
        sizes = np.diff(starts).tolist()

        def build() -> Iterator[Any]:
            for part, (start, size) in enumerate(zip(starts[:-1].tolist(), sizes, strict=True)):
                fragments = [one[part] for one in own]
                yield log.engine.submit(_build_part, start, size, *fragments, rows=size)

        built = log.run("prepare", build(), len(self.points))
        parts = [task.results[0] for task in built]
        dealt = PartedRows(log, parts, starts, self.points.dim, self.points.total, "score")
        groups = [self._group(part, visits, counts[:, part]) for part in range(n_parts)]
        return dealt, groups

    def _submit(self, n_parts: int, with_visitors: bool) -> Iterator[Any]:
        """Tasks that each cut some pieces into what every partition gets of them."""
        points, layout = self.points, self.layout
        bounds = points.starts
        piece_rows = np.diff(bounds)
        step = max(int(BATCH_SHARE * self.memory / (4 * points.dim)), int(piece_rows.max()))
        batch = (np.cumsum(piece_rows) - piece_rows) // step
        for one in np.unique(batch).tolist():
            chosen = np.flatnonzero(batch == one).tolist()
            rows = slice(int(bounds[chosen[0]]), int(bounds[chosen[-1] + 1]))
            yield points.log.engine.submit(
                _cut_pieces,
                self.number[rows],
                layout.starts,
                layout.cells if with_visitors else None,
                *[points.parts[at] for at in chosen],
                *[self.cells[at] for at in chosen],
                n_results=2 * n_parts + 1,
                rows=rows.stop - rows.start,
            )

    def _group(self, part: int, visits: list[list[Any]], counts: IntArray) -> list[list[Any]]:
        """The visits of a partition in groups whose features fit the memory."""
        most = VISIT_SHARE * self.memory / (4 * self.points.dim)
        group = ((np.cumsum(counts) - counts) // max(1, int(most))).tolist()
        found: dict[int, list[Any]] = {}
        for number, one in zip(group, visits, strict=True):
            found.setdefault(number, []).append(one[part])
        return list(found.values())


def _cut_pieces(
    number: IntArray, starts: IntArray, cells: IntArray | None, *held: Any
) -> tuple[Any, ...]:
    """What each partition gets of some pieces: its rows, its visitors, and how many these are."""
    n_parts, half = len(starts) - 1, len(held) // 2
    features = np.concatenate(held[:half]) if half > 1 else np.asarray(held[0])
    own = []
    for start, stop in pairwise(starts.tolist()):
        chosen = np.flatnonzero((number >= start) & (number < stop))
        own.append((number[chosen], features[chosen]))
    if cells is None:
        return (*own, *[None] * n_parts, np.zeros(n_parts, dtype=np.int64))
    ends = np.cumsum([len(one.home) for one in held[half:]])
    firsts = zip(held[half:], [0, *ends[:-1].tolist()], strict=True)
    row = np.concatenate([one.row.astype(np.int64) + first for one, first in firsts])
    cell = np.concatenate([one.cell for one in held[half:]])
    part = np.searchsorted(cells, cell, side="right") - 1
    by_part = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[by_part], np.arange(n_parts + 1))
    visits = []
    for at, (start, stop) in enumerate(pairwise(starts.tolist())):
        some = by_part[bounds[at] : bounds[at + 1]]
        probing = number[row[some]]
        outside = (probing < start) | (probing >= stop)
        visiting = np.zeros(len(number), dtype=bool)
        visiting[row[some][outside]] = True
        chosen = np.flatnonzero(visiting)
        chosen = chosen[np.argsort(number[chosen])]
        visits.append(Visit(number[chosen], features[chosen], probing, cell[some]))
    return (*own, *visits, np.array([len(one.number) for one in visits]))


def _build_part(start: int, size: int, *fragments: tuple[IntArray, FloatArray]) -> FloatArray:
    """The rows of a partition in the order of their numbers."""
    dim = fragments[0][1].shape[1]
    part = np.empty((size, dim), dtype=np.float32)
    for number, features in fragments:
        part[number - start] = features
    return part
