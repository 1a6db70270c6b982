"""Dealing: a row goes to the partition of its cell, and visits those of the cells it probes.

Rows are numbered anew, by cell and then in canonical order. So a partition is a range of
numbers, and neighbours mostly are in the same one. The numbers do not depend on the partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, sort_by_group
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


def assign_cells(points: PartedRows, cells: Cells, rank: IntArray) -> tuple[list[Any], IntArray]:
    """Find the cells of all rows: held `PieceCells` of each piece, and the cell of each row."""
    log = points.log
    held = log.engine.put(cells)

    def submit() -> Iterator[Any]:
        for part, (start, stop) in zip(points.parts, pairwise(points.starts.tolist()), strict=True):
            yield log.engine.submit(
                _assign, held, part, rank[start:stop], len(points), n_results=2, rows=stop - start
            )

    tasks = log.run("prepare", submit(), len(points))
    home = [log.engine.fetch(task.results[0]) for task in tasks]
    return [task.results[1] for task in tasks], np.concatenate(home).astype(np.int64)


def _assign(
    cells: Cells, features: FloatArray, rank: IntArray, n_points: int
) -> tuple[npt.NDArray[np.uint16], PieceCells]:
    found = assign_piece(cells, features, rank, n_points)
    return found.home, found


def lay_out(home: IntArray, order: IntArray, n_cells: int, n_parts: int) -> Layout:
    """Number the rows by cell, and cut the cells into partitions of about as many rows.

    Parameters
    ----------
    home : ndarray of shape (n_points,)
        Cell of each row.
    order : ndarray of shape (n_points,)
        Canonical order, which rows of a cell keep.
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
    return Layout(order[np.argsort(home[order], kind="stable")], cell_starts, cells)


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

    def deal(self) -> PartedRows:
        """Give each partition its rows, in the order of the new numbers."""
        log, starts = self.points.log, self.layout.starts
        n_parts = len(starts) - 1
        own = log.run("prepare", self._submit(_cut_own, n_parts + 1, starts), len(self.points))
        sizes = np.diff(starts).tolist()

        def build() -> Iterator[Any]:
            for part, (start, size) in enumerate(zip(starts[:-1].tolist(), sizes, strict=True)):
                fragments = [task.results[part] for task in own]
                yield log.engine.submit(_build_part, start, size, *fragments, rows=size)

        built = log.run("prepare", build(), len(self.points))
        parts = [task.results[0] for task in built]
        return PartedRows(log, parts, starts, self.points.dim, self.points.total, "score")

    def visit(self) -> list[list[list[Any]]]:
        """Held `Visit` of each partition, in groups that fit a share of the memory."""
        log, n_parts = self.points.log, len(self.layout.starts) - 1
        submitted = self._submit(_cut_visits, n_parts + 1, self.layout, with_cells=True)
        tasks = log.run("search", submitted, 0)
        counts = np.array([log.engine.fetch(task.results[-1]) for task in tasks])
        most = max(1, int(VISIT_SHARE * self.memory / (4 * self.points.dim)))
        visits = []
        for part, visitors in enumerate(counts.T):
            groups: dict[int, list[Any]] = {}
            for group, task in zip((np.cumsum(visitors) - visitors) // most, tasks, strict=True):
                groups.setdefault(int(group), []).append(task.results[part])
            visits.append(list(groups.values()))
        return visits

    def _submit(
        self, cut: Callable[..., Any], n_results: int, *how: Any, with_cells: bool = False
    ) -> Iterator[Any]:
        """Tasks that each cut some pieces into what every partition gets of them."""
        points, bounds = self.points, self.points.starts
        piece_rows = np.diff(bounds)
        step = max(int(BATCH_SHARE * self.memory / (4 * points.dim)), int(piece_rows.max()))
        batch = (np.cumsum(piece_rows) - piece_rows) // step
        for one in np.unique(batch).tolist():
            chosen = np.flatnonzero(batch == one).tolist()
            rows = slice(int(bounds[chosen[0]]), int(bounds[chosen[-1] + 1]))
            yield points.log.engine.submit(
                cut,
                self.number[rows],
                *how,
                *[points.parts[at] for at in chosen],
                *([self.cells[at] for at in chosen] if with_cells else ()),
                n_results=n_results,
                rows=0 if with_cells else rows.stop - rows.start,
            )


def _cut_own(number: IntArray, starts: IntArray, *pieces: FloatArray) -> tuple[Any, ...]:
    """The rows of some pieces that each partition has: numbers and features."""
    features = np.concatenate(pieces)
    order = np.argsort(number)
    ends = np.searchsorted(number[order], starts)
    own = [(number[order[a:b]], features[order[a:b]]) for a, b in pairwise(ends.tolist())]
    return (*own, None)  # never a single result, which would not be taken apart


def _cut_visits(number: IntArray, layout: Layout, *held: Any) -> tuple[Any, ...]:
    """The visitors of each partition among the rows of some pieces, and their numbers."""
    half = len(held) // 2
    features, cells = np.concatenate(held[:half]), held[half:]
    first = np.cumsum([0, *(len(one.home) for one in cells)]).tolist()
    row = np.concatenate(
        [one.row.astype(np.int64) + at for one, at in zip(cells, first, strict=False)]
    )
    cell = np.concatenate([one.cell for one in cells])
    part = np.searchsorted(layout.cells, cell, side="right") - 1
    by_part, bounds = sort_by_group(part, len(layout.cells) - 1)
    visits = []
    for at, (start, stop) in enumerate(pairwise(layout.starts.tolist())):
        some = by_part[bounds[at] : bounds[at + 1]]
        probing = number[row[some]]
        outside = (probing < start) | (probing >= stop)
        visiting = np.zeros(len(number), dtype=bool)
        visiting[row[some][outside]] = True
        chosen = np.flatnonzero(visiting)
        chosen = chosen[np.argsort(number[chosen])]
        visits.append(Visit(number[chosen], features[chosen], probing, cell[some]))
    return (*visits, np.array([len(one.number) for one in visits]))


def _build_part(start: int, size: int, *fragments: tuple[IntArray, FloatArray]) -> FloatArray:
    """The rows of a partition in the order of their numbers."""
    dim = fragments[0][1].shape[1]
    part = np.empty((size, dim), dtype=np.float32)
    for number, features in fragments:
        part[number - start] = features
    return part
