"""The cells of a run: rows are dealt to partitions by them, and partitions are searched by them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from hilander.arrays.row_source import RowSource
from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.canonical_order import invert_order
from hilander.engines.threads import Workers, open_workers
from hilander.knn.cell_search import CellPlan, SampleDraw, plan_cells
from hilander.knn.cells import Centres, find_probes
from hilander.knn.local_order import find_local_order
from hilander.knn.recall import KnownRows, sample_rows
from hilander.sharded.lists import Lists, search_known
from hilander.sharded.parted import PartedRows

EXACT_UP_TO = 30_000  # points; all their pairs are compared, as in one process
_SAMPLE = 1_024  # rows whose exact neighbours are found, to choose the margin
_SEED = 0  # of samples
_EXACT_CELLS = 64  # cells of a set whose pairs are all compared


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells in an order in which near ones have near numbers.

    Parameters
    ----------
    n_cells : int
    centres : Centres, optional
        None for cells of consecutive rows, of which all pairs are compared.
    margin : float
        A row probes the cells whose centre has a cosine within the margin of the best.
    number : ndarray of shape (n_cells,)
        Place of each centre in the order.
    known : KnownRows, optional
        A sample of rows with their exact neighbours, by their places in the canonical order.
    sample : ndarray of shape (n_known,), optional
        Those rows by their numbers in the input.
    probes : float
        Expected number of cells that a row probes.
    """

    n_cells: int
    centres: Centres | None = None
    margin: float = 0.0
    number: IntArray | None = None
    known: KnownRows | None = None
    sample: IntArray | None = None
    probes: float = 0.0


@dataclass(frozen=True, eq=False)
class PieceCells:
    """The cells of the rows of one piece.

    Parameters
    ----------
    home : ndarray of shape (n_rows,), uint16
        Cell of each row.
    row : ndarray of shape (n_probes,), int32
        Rows of the piece that probe other cells.
    cell : ndarray of shape (n_probes,), uint16
        Those cells.
    """

    home: npt.NDArray[np.uint16]
    row: npt.NDArray[np.int32]
    cell: npt.NDArray[np.uint16]


def plan_run_cells(points: PartedRows, order: IntArray, width: int, recall: float) -> Cells:
    """Choose the cells of a set, and the margin that reaches a recall.

    Parameters
    ----------
    points : PartedRows
        Prepared points, in the order of the input.
    order : ndarray of shape (n_points,)
        Canonical order, in which samples are drawn.
    width : int
        Neighbours of each point.
    recall : float
    """
    if len(points) <= EXACT_UP_TO:
        return Cells(min(_EXACT_CELLS, len(points)))
    rows = sample_rows(len(points), _SAMPLE, _SEED)
    known = _search_known(points, order, rows, width)
    source = cast(RowSource, _Ordered(points, order))  # the plan gathers rows, and counts them
    with open_workers() as workers:
        plan: CellPlan = plan_cells(source, known, recall, workers, SampleDraw(_SEED))
    plan = plan.without_refinement or plan
    number = invert_order(find_local_order(plan.centres.point))
    return Cells(len(number), plan.centres, plan.margin, number, known, order[rows], plan.probes)


class _Ordered:
    """Rows that are numbered in another order."""

    def __init__(self, points: PartedRows, order: IntArray) -> None:
        self.points, self.order, self.dim = points, order, points.dim

    def __len__(self) -> int:
        return len(self.order)

    def take(self, rows: npt.NDArray[Any]) -> FloatArray:
        """The rows of these numbers."""
        return self.points.take(self.order[rows])


def _search_known(
    points: PartedRows, order: IntArray, rows: npt.NDArray[np.int32], width: int
) -> KnownRows:
    """Exact neighbours of some rows among all; the rows are numbered in an order."""
    log, given = points.log, order[rows]
    by_given = np.argsort(given)
    found = Lists.empty(given[by_given], width)
    features = log.engine.put(points.take(found.row))

    def submit() -> Iterator[Any]:
        for number, part in enumerate(points.parts):
            start, stop = points.starts[number : number + 2].tolist()
            yield log.engine.submit(
                search_known, found.row, features, part, start, width, rows=stop - start
            )

    for task in log.run("search", submit(), len(points)):
        found.merge(log.engine.fetch(task.results[0]))
    rank, back = invert_order(order), np.argsort(by_given)
    return KnownRows(rows, rank[found.column[back]].astype(np.int32), found.value[back])


def assign_piece(cells: Cells, features: FloatArray, rank: IntArray, n_points: int) -> PieceCells:
    """Find the cells of the rows of a piece, whose places in the canonical order are `rank`."""
    if cells.centres is None or cells.number is None:
        home = (rank * cells.n_cells // n_points).astype(np.uint16)
        later = cells.n_cells - 1 - home.astype(np.int64)  # each pair of cells is probed once
        row = np.repeat(np.arange(len(home), dtype=np.int32), later)
        offset = np.arange(len(row)) - np.repeat(np.cumsum(later) - later, later)
        return PieceCells(home, row, (home[row] + 1 + offset).astype(np.uint16))
    source = RowSource(np.asarray(features))
    probes = find_probes(source, cells.centres, cells.margin, None, Workers(None))
    number = cells.number.astype(np.uint16)
    return PieceCells(number[probes.home], probes.row, number[probes.cell])
