"""The search of a dealt set: each partition with its visitors, whose lists are then merged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, sort_by_group
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.search_report import SearchReport
from hilander.knn.recall import KnownRows, measure_recall
from hilander.sharded.cells import Cells
from hilander.sharded.dealing import Layout, Visit
from hilander.sharded.lists import Lists, Table, search_known
from hilander.sharded.parted import PartedRows

_SPARE = 2  # candidates beyond k, as in `hilander.knn.search`


@dataclass(frozen=True, eq=False)
class PartSearch:
    """What a partition is searched by.

    Parameters
    ----------
    part : int
        Number of the partition.
    starts : ndarray of shape (n_parts + 1,)
        Number of the first row of each partition.
    first_cell : int
        Its first cell.
    cells : ndarray of shape (n_own_cells + 1,)
        Number of the first row of each of its cells.
    count : int
        Length of the lists.
    """

    part: int
    starts: IntArray
    first_cell: int
    cells: IntArray
    count: int


def search_parts(
    points: PartedRows, visits: list[list[list[Any]]], layout: Layout, cells: Cells, k: int
) -> KnnGraph:
    """The k nearest neighbours of every row, by its number.

    Parameters
    ----------
    points : PartedRows
        Dealt to partitions.
    visits : list of list of list of Held
        As `Dealer.deal` gives them.
    layout : Layout
    cells : Cells
    k : int
    """
    started = perf_counter()
    count = min(k + _SPARE, len(points) - 1)
    log, starts = points.log, points.starts
    n_parts = len(points.parts)

    def search() -> Iterator[Any]:
        for part in range(n_parts):
            bounds = layout.cells[part : part + 2].tolist()
            own = PartSearch(
                part, starts, bounds[0], layout.cell_starts[bounds[0] : bounds[1] + 1], count
            )
            for number, group in enumerate(visits[part]):
                rows = 0 if number else int(starts[part + 1] - starts[part])
                yield log.engine.submit(
                    _search_part, own, not number, points.parts[part], *group,
                    n_results=n_parts + 1, rows=rows,
                )  # fmt: skip

    found = log.run("search", search(), len(points))

    def merge() -> Iterator[Any]:
        for part, (start, stop) in enumerate(pairwise(starts.tolist())):
            lists = [task.results[part] for task in found]
            yield log.engine.submit(_merge_part, start, stop, count, *lists)

    merged = log.run("search", merge(), 0)
    neighbours = np.empty((len(points), k), dtype=np.int64)
    affinity = np.empty((len(points), k), dtype=np.float32)
    for task, (start, stop) in zip(merged, pairwise(starts.tolist()), strict=True):
        lists = log.engine.fetch(task.results[0])
        neighbours[start:stop], affinity[start:stop] = lists.best(k)
    _fill_gaps(points, neighbours, affinity)
    seconds = perf_counter() - started
    return KnnGraph(neighbours, affinity, _report(cells, layout, affinity, seconds))


def _search_part(
    own: PartSearch, is_first: bool, part: FloatArray, *visits: Visit
) -> tuple[Lists | None, ...]:
    """The lists of the rows of one partition and of its visitors, by the partition of the row."""
    from hilander.knn.pair_kernels import compare_rows

    start, stop = own.starts[own.part : own.part + 2].tolist()
    here = Table.of(part, np.arange(start, stop), own.count)
    there = _join_visitors(visits, part.shape[1], own.count)
    row = np.concatenate([one.row for one in visits])
    cell = np.concatenate([one.cell for one in visits]).astype(np.int64) - own.first_cell
    n_cells = len(own.cells) - 1
    order, ends = sort_by_group(cell, n_cells)
    for at, (low, high) in enumerate(pairwise((own.cells - start).tolist())):
        inside = np.arange(low, high)
        if is_first:
            compare_rows(here.arrays, inside, here.arrays, inside, True)
        probing = row[order[ends[at] : ends[at + 1]]]
        is_own = (probing >= start) & (probing < stop)
        compare_rows(here.arrays, probing[is_own] - start, here.arrays, inside, False)
        visiting = np.searchsorted(there.number, probing[~is_own])
        compare_rows(there.arrays, visiting, here.arrays, inside, False)
    here.settle([there])
    there.settle([here])
    found = [there.lists.between(first, last) for first, last in pairwise(own.starts.tolist())]
    found[own.part] = here.lists
    return (*found, None)  # never a single result, which would not be taken apart


def _join_visitors(visits: tuple[Visit, ...], dim: int, count: int) -> Table:
    """The visitors of all fragments as one table, by number."""
    number = np.concatenate([one.number for one in visits])
    features = np.concatenate([np.empty((0, dim), np.float32), *[one.features for one in visits]])
    order = np.argsort(number)
    return Table.of(features[order], number[order], count)


def _merge_part(start: int, stop: int, count: int, *found: Lists) -> Lists:
    merged = Lists.empty(np.arange(start, stop), count)
    for one in found:
        merged.merge(one)
    return merged


def _fill_gaps(points: PartedRows, neighbours: IntArray, affinity: FloatArray) -> None:
    """Search exactly for rows that were compared with too few others, in place."""
    rows, k = np.flatnonzero((neighbours < 0).any(axis=1)), neighbours.shape[1]
    if not len(rows):
        return
    log, lists = points.log, Lists.empty(rows, min(k + _SPARE, len(points) - 1))
    features = log.engine.put(points.take(rows))

    def submit() -> Iterator[Any]:
        for part, start in zip(points.parts, points.starts.tolist(), strict=False):
            yield log.engine.submit(search_known, rows, features, part, start, lists.value.shape[1])

    for task in log.run("search", submit(), 0):
        lists.merge(log.engine.fetch(task.results[0]))
    neighbours[rows], affinity[rows] = lists.best(k)


def _report(cells: Cells, layout: Layout, affinity: FloatArray, seconds: float) -> SearchReport:
    """How the neighbours were found."""
    if cells.centres is None or cells.known is None or cells.sample is None:
        return SearchReport("exact", seconds=seconds)
    known = cells.known
    number = np.empty(len(layout.order), dtype=np.int64)
    number[layout.order] = np.arange(len(layout.order))
    rows = number[cells.sample].astype(np.int32)
    there = KnownRows(rows, known.neighbours, known.affinity)
    recall = measure_recall(there, affinity)
    return SearchReport("cells", recall, cells.n_cells, cells.probes, seconds)
