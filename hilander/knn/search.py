"""The k-NN search: `build_knn_graph` chooses exact search, search by cells, or a GPU."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from tqdm import tqdm

from hilander.arrays.row_source import RowSource
from hilander.arrays.rows import FloatArray, IntArray, drop_pages
from hilander.embeddings.equal_rows import EqualRows, expand_neighbours, find_equal_rows
from hilander.engines.threads import Workers, open_workers
from hilander.errors import GraphError
from hilander.graph.knn_graph import KnnGraph, edge_blocks
from hilander.graph.search_report import SearchReport
from hilander.knn.block_join import Joiner
from hilander.knn.block_plan import BlockPlan, plan_blocks
from hilander.knn.cell_search import CellPlan, SampleDraw, plan_cells, search_cells, widen_cells
from hilander.knn.exact_search import n_exact_pairs, search_exactly
from hilander.knn.gpu_search import can_search_on_gpu, search_on_gpu
from hilander.knn.nearest_lists import NearestLists
from hilander.knn.neighbour_refinement import compare_pairs, refine_by_neighbours
from hilander.knn.recall import KnownRows, aim_above, measure_recall, sample_rows, search_rows
from hilander.knn.search_progress import SearchProgress

# Candidates beyond k. Their similarity is computed again, in a fixed order of summation, after
# which they may replace the last of the k.
_SPARE = 2
_ALONE_BELOW = 2_048  # rows; a second thread costs more than it saves
_QUIET_BELOW = 50_000  # rows; a search without a progress bar takes seconds
_EXACT_UP_TO = 30_000  # rows; cells are faster from 12,000 on, but exact search takes seconds
_SAMPLE = 1_024  # rows whose exact neighbours are found, to measure the recall
_DEAREST_CELLS = 0.8  # share of the products of an exact search that cells may need at most
_MOST_ROUNDS = 3  # of refinement by neighbours, before the cells alone must reach the recall
_CAUTION = 0.9  # share of the gain of one refinement that is expected of the next


@dataclass(frozen=True)
class _SearchOptions:
    recall: float
    seed: int
    verbose: bool
    refine: bool
    progress: SearchProgress
    pairs: csr_matrix | None


def build_knn_graph(
    features: npt.NDArray[Any],
    k: int,
    *,
    verbose: bool = False,
    recall: float = 0.95,
    memory: float | None = None,
    seed: int = 0,
    refine: bool = True,
    progress: SearchProgress | None = None,
    pairs: csr_matrix | None = None,
) -> KnnGraph:
    """Find the k nearest neighbours of every row by cosine.

    A row is never its own neighbour, even if it equals others. Neighbours are ordered by affinity
    and, with equal affinities, by index.

    Parameters
    ----------
    features : ndarray of shape (n_nodes, dim), float32 or float16, also a mapped file
        L2-normalised rows. They are not copied.
    k : int
        Number of neighbours, the node itself not counted.
    verbose : bool
        Draw a progress bar for large inputs (only on a terminal).
    recall : float, in (0, 1]
        Share of the true neighbours that an approximate search must find on a sample; 1 for an
        exact search.
    memory : float, optional
        Bytes that the search may take beyond the features.
    seed : int
        Of the sample and of the centres of the cells.
    refine : bool
        Find the last neighbours among neighbours of neighbours. This saves work if the rows form
        clusters, and costs work if they do not.
    progress : SearchProgress, optional
        A `StoredSearch` continues an interrupted search with the same arguments.
    pairs : csr_matrix of shape (n_nodes, n_nodes), optional
        Symmetric. An approximate search that refines compares these pairs in any case. Ignored if
        some rows are equal.

    Returns
    -------
    graph : KnnGraph of n_nodes nodes
        Its `search` reports the method and the measured recall.

    Raises
    ------
    GraphError
        k is too large, the recall is not a share, or the memory is too small.
    """
    check_k(k, len(features))
    if not 0 < recall <= 1:
        raise GraphError(f"recall={recall!r} is not a share; use a number above 0, at most 1")
    started = perf_counter()
    source = RowSource(features)
    equal = find_equal_rows(source.features)
    if equal is not None:
        source = RowSource(features, equal.first)
    width = min(k, len(source) - 1)
    plan = plan_blocks(len(source), source.dim, width + _SPARE, memory)
    progress = progress or SearchProgress()
    pairs = pairs if equal is None else None  # they are pairs of rows, not of distinct rows
    options = _SearchOptions(
        recall, seed, verbose and len(source) > _QUIET_BELOW, refine, progress, pairs
    )
    with open_workers(alone=len(source) < _ALONE_BELOW, product=plan.product) as workers:
        lists, report, known = _search(source, width, workers, plan, options)
        neighbours, affinity = _settle(source, lists, width, workers)
    del lists
    if known is not None:
        report = replace(report, recall=measure_recall(known, affinity))
    if equal is not None:
        neighbours, affinity = _expand_equal_rows(source, equal, neighbours, affinity, k)
    drop_pages(features)
    report = replace(report, seconds=perf_counter() - started)
    return KnnGraph(neighbours, affinity, report)


def check_k(k: int, n_nodes: int) -> None:
    """Refuse a k that n_nodes points cannot have."""
    if k < 1:
        raise GraphError(f"k={k} is not a number of neighbours; use k >= 1")
    if k >= n_nodes:
        most = max(n_nodes - 1, 0)
        fix = f"use k <= {most}" if most else "give more embeddings"
        raise GraphError(f"k={k} needs {k + 1} embeddings, got only {n_nodes}; {fix}")


def _search(
    source: RowSource, width: int, workers: Workers, plan: BlockPlan, options: _SearchOptions
) -> tuple[NearestLists, SearchReport, KnownRows | None]:
    """Fill the lists by the cheapest method; the sample is returned if one was drawn."""
    count = min(width + _SPARE, len(source) - 1)
    lists = NearestLists(len(source), count)
    if len(source) > _EXACT_UP_TO and can_search_on_gpu(count):
        # The rows do not fit the memory of the GPU: search on the processor.
        with suppress(RuntimeError):
            _follow(search_on_gpu(source, lists), len(source), options)
            return lists, SearchReport("gpu"), None
    joiner = Joiner(source, lists, workers, plan.batch, options.progress)
    options.progress.restore(lists)
    if options.recall < 1 and len(source) > _EXACT_UP_TO:
        rows = sample_rows(len(source), _SAMPLE, options.seed)
        known = search_rows(source, rows, width, workers)
        draw = SampleDraw(options.seed, plan.sample)
        cells = plan_cells(source, known, options.recall, workers, draw)
        wide = cells.without_refinement or cells
        cells = cells if options.refine else wide
        # An exact search computes each pair once, for both of its rows.
        if wide.cost <= _DEAREST_CELLS * len(source) / 2:
            probes = _search_cells(joiner, cells, plan, known, options)
            n_lists = len(cells.centres)
            return lists, SearchReport("cells", n_lists=n_lists, n_probes=probes), known
    _follow(search_exactly(joiner, plan.block), n_exact_pairs(len(source), plan.block), options)
    return lists, SearchReport("exact"), None


def _search_cells(
    joiner: Joiner, cells: CellPlan, plan: BlockPlan, known: KnownRows, options: _SearchOptions
) -> float:
    """Search by cells, then refine by neighbours; returns the mean number of cells a row probed."""
    n_rows, width = len(joiner.source), known.neighbours.shape[1]
    _follow(search_cells(joiner, cells, plan), int(cells.pairs * n_rows), options)
    wide = cells.without_refinement
    if wide is None:
        return cells.probes
    # Progress is not stored from here on: a continued search repeats all of this.
    joiner = replace(joiner, progress=SearchProgress())
    if options.pairs is not None:
        compare_pairs(joiner, options.pairs)
    aim, share = aim_above(options.recall), 0.0
    for _ in range(_MOST_ROUNDS):
        before = measure_recall(known, joiner.lists.value[:, :width])
        _follow(refine_by_neighbours(joiner), n_rows, options)
        recall = measure_recall(known, joiner.lists.value[:, :width])
        if recall >= aim:
            return cells.probes
        share = (share + aim) / 2 if share else _share_for_cells(before, recall, aim)
        wider = widen_cells(joiner.source, known, cells, share, joiner.workers)
        _search_wider(joiner, cells, wider, plan, options)
        cells = wider
        if cells is wide:
            return wide.probes
    _search_wider(joiner, cells, wide, plan, options)
    return wide.probes


def _share_for_cells(before: float, after: float, aim: float) -> float:
    """Share that the cells must find so that the next refinement is expected to reach the aim."""
    still_missed = (1 - after) / max(1 - before, 1e-9)
    return 1 - _CAUTION * (1 - aim) / max(still_missed, 1e-9)


def _search_wider(
    joiner: Joiner, cells: CellPlan, wider: CellPlan, plan: BlockPlan, options: _SearchOptions
) -> None:
    """Search the cells of a wider plan that the present plan did not probe."""
    n_more = int(max(0.0, wider.pairs - cells.pairs) * len(joiner.source))
    _follow(search_cells(joiner, wider, plan, beyond=cells.margin), n_more, options)


def _follow(steps: Iterable[int], total: int, options: _SearchOptions) -> None:
    """Run the steps of a search, with a progress bar if `verbose`."""
    hide = None if options.verbose else True
    with tqdm(total=total, desc="search", unit="", unit_scale=True, disable=hide) as bar:
        for done in steps:
            bar.update(done)


def _settle(
    source: RowSource, lists: NearestLists, width: int, workers: Workers
) -> tuple[IntArray, FloatArray]:
    """Keep the best `width` candidates, by a similarity that does not depend on blocks."""
    neighbours = np.empty((len(source), width), dtype=np.int64)
    affinity = np.empty((len(source), width), dtype=np.float32)

    def settle_block(rows: slice) -> None:
        found = np.sort(lists.column[rows], axis=1)
        value = _block_affinity(source, rows, found)
        order = np.argsort(-value, axis=1, kind="stable")[:, :width]
        neighbours[rows] = np.take_along_axis(found, order, axis=1)
        affinity[rows] = np.take_along_axis(value, order, axis=1)

    workers.map(settle_block, edge_blocks(len(source), max(1, lists.count) * source.dim))
    return neighbours, affinity


def _block_affinity(source: RowSource, rows: slice, neighbours: npt.NDArray[Any]) -> FloatArray:
    """Cosine of the edges of consecutive rows, shape (block, k)."""
    ends = source.take(neighbours.ravel()).reshape(*neighbours.shape, source.dim)
    affinity: FloatArray = np.einsum("ikd,id->ik", ends, source.block(rows.start, rows.stop))
    return np.clip(affinity, -1.0, 1.0, out=affinity)


def _expand_equal_rows(
    source: RowSource, equal: EqualRows, neighbours: IntArray, affinity: FloatArray, k: int
) -> tuple[IntArray, FloatArray]:
    """Neighbours of all rows, from the neighbours of the distinct rows."""
    itself = np.arange(len(source))[:, None]
    own = np.empty((len(source), 1), dtype=np.float32)
    for rows in edge_blocks(len(source), source.dim):
        own[rows] = _block_affinity(source, rows, itself[rows])
    return expand_neighbours(equal, np.hstack([itself, neighbours]), np.hstack([own, affinity]), k)
