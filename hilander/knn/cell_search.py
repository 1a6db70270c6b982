"""Search by cells: rows are compared with the rows of their own cell and of probed cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hilander.arrays.row_source import Index32, RowSource
from hilander.arrays.rows import FloatArray
from hilander.engines.threads import Workers
from hilander.knn.block_join import Block, Joiner
from hilander.knn.block_plan import BlockPlan
from hilander.knn.cells import (
    N_ROUNDS,
    ROWS_PER_CENTRE,
    CellArray,
    Centres,
    Probes,
    count_reach,
    find_probes,
    learn_centres,
    sort_by_cell,
)
from hilander.knn.exact_search import cut_rows, pairs_of_blocks
from hilander.knn.recall import KnownRows, aim_above, sample_rows, search_rows

_MOST_LISTS = 1 << 16  # a cell number has 16 bits
_PAIR_BLOCK = 4_096  # pairs whose needed margin is computed at once; bounds memory
_SHARE_OF_DOUBLING = 0.6  # with twice the cells, a row is compared with about this share of rows
_LEFT_TO_REFINEMENT = 1.9  # times the permitted misses; refinement finds more than half of them
_SORTED_AT_ONCE = 1 << 22  # probes sorted by cell at a time; bounds memory


@dataclass(frozen=True)
class SampleDraw:
    """How the sample is drawn from which the centres are learned.

    Parameters
    ----------
    seed : int
    most : int
        Largest number of rows, but at least one for each centre.
    """

    seed: int = 0
    most: int = 1 << 30


@dataclass(frozen=True, eq=False)
class CellPlan:
    """Cells, and the margin within which rows probe other cells.

    Parameters
    ----------
    centres : Centres
    margin : float
        A row probes the cells whose centre has a cosine within the margin of the best cosine.
    pairs : float
        Expected number of rows that a row is compared with, from the sample.
    probes : float
        Expected number of cells that a row probes, its own included, from the sample.
    cost : float
        Products of two rows for each row, including those that find the centres and the cells.
    needed : ndarray of shape (n_known * k,)
        The margin at which each neighbour of a sample of rows would be found.
    without_refinement : CellPlan, optional
        The same cells with a margin that reaches the target without refinement. This plan leaves
        some neighbours to the refinement by neighbours.
    """

    centres: Centres
    margin: float
    pairs: float
    probes: float
    cost: float
    needed: FloatArray
    without_refinement: CellPlan | None = None


def plan_cells(
    source: RowSource, known: KnownRows, target: float, workers: Workers, draw: SampleDraw
) -> CellPlan:
    """Find the number of cells and the margin that reach a recall for the least work.

    A pair is found if either row probes the cell of the other. So the margin that a pair needs
    follows from the centres, and the margin for a recall is a quantile of the needed margins. No
    trial search is made.

    Parameters
    ----------
    source : RowSource
    known : KnownRows
        A sample of rows and their exact neighbours.
    target : float
        Share of the neighbours to be found.
    workers : Workers
    draw : SampleDraw
        Sample from which the centres are learned.
    """

    def plan_with(n_lists: int) -> CellPlan:
        size = min(len(source), ROWS_PER_CENTRE * n_lists, max(draw.most, n_lists))
        sample = source.take(sample_rows(len(source), size, draw.seed + 1))
        centres = learn_centres(sample, n_lists, workers, draw.seed)
        return _plan_with(source, known, target, centres, workers)

    n_lists = min(_MOST_LISTS, 2 ** round(np.log2(4 * np.sqrt(len(source)))))
    best = plan_with(n_lists)
    while 2 * n_lists <= min(_MOST_LISTS, len(source) // 4):
        spared = (1 - _SHARE_OF_DOUBLING) * best.pairs
        if spared < _fixed_cost(len(source), 2 * n_lists) - _fixed_cost(len(source), n_lists):
            break
        n_lists *= 2
        finer = plan_with(n_lists)
        if finer.cost >= best.cost:
            break
        best = finer
    return best


def _fixed_cost(n_rows: int, n_lists: int) -> float:
    """Products for each row to find the centres and the cells."""
    n_sample = min(n_rows, ROWS_PER_CENTRE * n_lists)
    return sum(count_reach(n_lists)) * (1 + N_ROUNDS * n_sample / n_rows)


def _plan_with(
    source: RowSource, known: KnownRows, target: float, centres: Centres, workers: Workers
) -> CellPlan:
    needed = _needed_margins(source, known, centres, workers)
    aim = aim_above(target)
    wide = _plan_margin(source, known, centres, needed, aim, workers)
    first = max(0.0, 1 - _LEFT_TO_REFINEMENT * (1 - aim))
    near = _plan_margin(source, known, centres, needed, first, workers)
    return replace(near, without_refinement=wide)


def _plan_margin(
    source: RowSource,
    known: KnownRows,
    centres: Centres,
    needed: FloatArray,
    share: float,
    workers: Workers,
) -> CellPlan:
    """The plan with the margin at which the cells alone find a share of the neighbours."""
    margin = float(np.quantile(needed, share, method="higher"))
    pairs, probes = _predict_work(source, known, centres, margin, workers)
    cost = pairs + _fixed_cost(len(source), len(centres))
    return CellPlan(centres, margin, pairs, probes, cost, needed)


def widen_cells(
    source: RowSource, known: KnownRows, cells: CellPlan, share: float, workers: Workers
) -> CellPlan:
    """The same cells with a margin at which they alone find a share of the neighbours.

    Parameters
    ----------
    source : RowSource
    known : KnownRows
        The sample that the plan was made with.
    cells : CellPlan
    share : float
        If it needs the margin of the plan without refinement, that plan is returned.
    workers : Workers
    """
    wide = cells.without_refinement
    wider = _plan_margin(source, known, cells.centres, cells.needed, share, workers)
    if wide is not None and wider.margin < wide.margin:
        return replace(wider, without_refinement=wide)
    return wide or wider


def _predict_work(
    source: RowSource, known: KnownRows, centres: Centres, margin: float, workers: Workers
) -> tuple[float, float]:
    """Mean numbers of rows that a row is compared with and of cells that it probes."""
    probes = find_probes(RowSource(source.take(known.rows)), centres, margin, None, workers)
    rows_met = centres.share[probes.home].sum() + centres.share[probes.cell].sum()
    pairs = float(rows_met / len(known.rows) * len(source))
    return pairs, 1 + len(probes.row) / len(known.rows)


def _needed_margins(
    source: RowSource, known: KnownRows, centres: Centres, workers: Workers
) -> FloatArray:
    """The margin at which each exact neighbour would be found, shape (n_known * k,)."""
    rows = source.take(known.rows)
    own = find_probes(RowSource(rows), centres, -1.0, None, workers)
    here = np.repeat(np.arange(len(rows)), known.neighbours.shape[1])
    needed = np.empty(len(here), dtype=np.float32)
    for start in range(0, len(here), _PAIR_BLOCK):
        pairs = slice(start, start + _PAIR_BLOCK)
        at, there = here[pairs], source.take(known.neighbours.ravel()[pairs])
        other = find_probes(RowSource(there), centres, -1.0, None, workers)
        from_here = own.cosine[at] - _dot(rows[at], centres.point[other.home])
        from_here[~centres.reaches(own.coarse[at], other.home)] = np.inf
        from_there = other.cosine - _dot(there, centres.point[own.home[at]])
        from_there[~centres.reaches(other.coarse, own.home[at])] = np.inf
        # Rows of one cell find each other with any margin.
        needed[pairs] = np.maximum(np.minimum(from_here, from_there), 0)
    return needed


def _dot(left: FloatArray, right: FloatArray) -> FloatArray:
    product: FloatArray = np.einsum("id,id->i", left, right)
    return product


def search_cells(
    joiner: Joiner, cells: CellPlan, plan: BlockPlan, *, beyond: float | None = None
) -> Iterator[int]:
    """Fill the lists of the joiner approximately.

    Parameters
    ----------
    joiner : Joiner
    cells : CellPlan
    plan : BlockPlan
    beyond : float, optional
        The margin of an earlier search with the same cells and lists. The cells that it probed are
        left out.

    Yields
    ------
    done : int
        Pairs compared since the previous yield, of about ``cells.pairs`` for each row.
    """
    n_rows = len(joiner.source)
    step, home = n_rows, None
    if cells.probes * n_rows > plan.pairs:
        # In two passes: the cells of all rows must be known before the first row probes one.
        step = max(1, int(plan.pairs / cells.probes))
        home = _find(joiner, cells, -1.0, slice(0, n_rows)).home
    members: list[Index32] = []
    for start in range(0, n_rows, step):
        chunk = slice(start, min(start + step, n_rows))
        probes = _find(joiner, cells, cells.margin, chunk, beyond)
        if not members:
            members = _members(probes.home if home is None else home, len(cells.centres))
            if beyond is None:
                yield from _start_cells(joiner, members, plan.block)
        yield from joiner.join(_blocks_of(probes, members, plan.block))
    _fill_gaps(joiner)


def _find(
    joiner: Joiner, cells: CellPlan, margin: float, rows: slice, beyond: float | None = None
) -> Probes:
    return find_probes(joiner.source, cells.centres, margin, rows, joiner.workers, beyond=beyond)


def _members(home: CellArray, n_lists: int) -> list[Index32]:
    """Rows of each cell."""
    places, starts = sort_by_cell(home, n_lists)
    return [places[starts[cell] : starts[cell + 1]] for cell in range(n_lists)]


def _start_cells(joiner: Joiner, members: list[Index32], block: int) -> Iterator[int]:
    """Compare the rows of each cell with one another."""
    pieces = [cut_rows(rows, block) for rows in members]
    yield from joiner.start(piece for cell in pieces for piece in cell)
    yield from joiner.join(pair for cell in pieces for pair in pairs_of_blocks(cell))


def _blocks_of(probes: Probes, members: list[Index32], block: int) -> Iterator[Block]:
    """For each cell, blocks of the rows that probe it and the rows of the cell."""
    n_parts = 1 + len(probes.row) // _SORTED_AT_ONCE
    for part in np.array_split(np.arange(len(members)), n_parts):
        first, last = int(part[0]), int(part[-1])
        chosen = np.flatnonzero((probes.cell >= first) & (probes.cell <= last))
        places, starts = sort_by_cell(probes.cell[chosen] - np.uint16(first), len(part))
        row = probes.row[chosen[places]]
        for cell, inside in enumerate(members[first : last + 1]):
            outside = row[starts[cell] : starts[cell + 1]]
            if len(inside):
                for left in cut_rows(outside, block):
                    for right in cut_rows(inside, block):
                        yield Block(left, right)


def _fill_gaps(joiner: Joiner) -> None:
    """Search exactly for rows that were compared with too few others."""
    lists = joiner.lists
    rows = np.flatnonzero(lists.column[:, -1] < 0).astype(np.int32)
    if len(rows):
        known = search_rows(joiner.source, rows, lists.count, joiner.workers)
        lists.column[rows], lists.value[rows] = known.neighbours, known.affinity
