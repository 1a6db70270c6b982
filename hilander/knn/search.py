"""k-NN search: one function in, a graph out, so that the engine behind it can change."""

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
from hilander.embeddings.equal_rows import EqualRows, expand_equal_rows, find_equal_rows
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

# Candidates beyond k: their similarity is computed once more, in a fixed order of summation, and
# may then change places with the last of the k.
_SPARE = 2
# Below this many rows a second thread costs more than it brings.
_ALONE_BELOW = 2_048
_QUIET_BELOW = 50_000
# Cells are quicker from some 12,000 rows on; up to this many, being exact costs a few seconds.
_EXACT_UP_TO = 30_000
_SAMPLE = 1_024
# Cells are used if they need at most this share of the products of an exact search.
_DEAREST_CELLS = 0.8
# Rounds among the neighbours of neighbours, before the cells must reach the recall by themselves.
_MOST_ROUNDS = 3
# Of what friends brought in a round, the next one is trusted to bring so much less.
_CAUTIOUS = 0.9


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

    A row is never its own neighbour, even when others equal it; neighbours are ordered by affinity
    and, where affinities are equal, by index.

    Parameters
    ----------
    features : ndarray of shape (n_nodes, dim), float32 or float16, also a mapped file
        L2-normalised rows. No second copy of them is made.
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
        Of the sample and the lists.
    friends : bool
        Leave the last neighbours to be found among neighbours of neighbours. That saves work
        where rows come in groups, and costs where they do not.
    progress : SearchProgress, optional
        A `KeptSearch` goes on from where an earlier one with the same arguments was killed.
    pairs : csr_matrix of shape (n_nodes, n_nodes), optional
        Symmetric; an approximate search with friends shall not miss these pairs. Rows that have
        copies do without.

    Returns
    -------
    graph : KnnGraph of n_nodes nodes
        Its `search` says how it was found, and the recall that was measured.

    Raises
    ------
    GraphError
        k is too large, the recall means nothing, or the memory is too small.
    """
    check_k(k, len(features))
    if not 0 < recall <= 1:
        raise GraphError(f"recall={recall!r} is not a share; use a number above 0, at most 1")
    started = perf_counter()
    source = RowSource(features)
    copies = find_equal_rows(source.features)
    if copies is not None:
        source = RowSource(features, copies.first)
    width = min(k, len(source) - 1)
    plan = plan_blocks(len(source), source.dim, width + _SPARE, memory)
    progress = progress or SearchProgress()
    pairs = pairs if copies is None else None  # they are of rows, not of distinct rows
    options = _SearchOptions(
        recall, seed, verbose and len(source) > _QUIET_BELOW, refine, progress, pairs
    )
    with open_workers(alone=len(source) < _ALONE_BELOW, product=plan.product) as workers:
        lists, report, known = _search(source, width, workers, plan, options)
        neighbours, affinity = _settle(source, lists, width, workers)
    del lists
    if known is not None:
        report = replace(report, recall=measure_recall(known, affinity))
    if copies is not None:
        neighbours, affinity = _write_out_copies(source, copies, neighbours, affinity, k)
    drop_pages(features)
    report = replace(report, seconds=perf_counter() - started)
    return KnnGraph(neighbours, affinity, report)


def check_k(k: int, n_nodes: int) -> None:
    """Refuse a k that n_nodes points cannot have."""
    if k < 1:
        raise GraphError(f"k={k} is not a number of neighbours; use k >= 1")
    if k >= n_nodes:
        most = max(n_nodes - 1, 0)
        advice = f"use k <= {most}" if most else "give more embeddings"
        raise GraphError(f"k={k} needs {k + 1} embeddings, got only {n_nodes}; {advice}")


def edge_affinity(features: npt.NDArray[Any], neighbours: IntArray) -> FloatArray:
    """Cosine of each edge, summed in one fixed order so that equal rows give equal values.

    Parameters
    ----------
    features : ndarray of shape (n_nodes, dim)
        L2-normalised rows.
    neighbours : ndarray of shape (n_nodes, k)

    Returns
    -------
    affinity : ndarray of shape (n_nodes, k), in [-1, 1]
    """
    source = RowSource(features)
    affinity = np.empty(neighbours.shape, dtype=np.float32)
    for rows in edge_blocks(len(neighbours), neighbours.shape[1] * features.shape[1]):
        affinity[rows] = _block_affinity(source, rows, neighbours[rows])
    return affinity


def _search(
    source: RowSource, width: int, workers: Workers, plan: BlockPlan, options: _SearchOptions
) -> tuple[NearestLists, SearchReport, KnownRows | None]:
    """Fill lists of candidates by the cheapest way, and say which that was."""
    count = min(width + _SPARE, len(source) - 1)
    lists = NearestLists(len(source), count)
    if len(source) > _EXACT_UP_TO and can_search_on_gpu(count):
        # A card too small for the rows is as good as none.
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
    """Search by cells, then among friends; the number of cells that a row looked into."""
    n_rows, width = len(joiner.source), known.neighbours.shape[1]
    _follow(search_cells(joiner, cells, plan), int(cells.pairs * n_rows), options)
    wide = cells.without_refinement
    if wide is None:
        return cells.probes
    # From here on nothing is kept: taken up again, a search does all of this anew.
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
        _look_further(joiner, cells, wider, plan, options)
        cells = wider
        if cells is wide:
            return wide.probes
    _look_further(joiner, cells, wide, plan, options)
    return wide.probes


def _share_for_cells(before: float, after: float, aim: float) -> float:
    """What the cells must find so that friends, who brought this much before, bring the rest."""
    still_missed = (1 - after) / max(1 - before, 1e-9)
    return 1 - _CAUTIOUS * (1 - aim) / max(still_missed, 1e-9)


def _look_further(
    joiner: Joiner, cells: CellPlan, wider: CellPlan, plan: BlockPlan, options: _SearchOptions
) -> None:
    """Look into those cells of a wider plan that are beyond the cells looked into."""
    n_more = int(max(0.0, wider.pairs - cells.pairs) * len(joiner.source))
    _follow(search_cells(joiner, wider, plan, beyond=cells.margin), n_more, options)


def _follow(steps: Iterable[int], total: int, options: _SearchOptions) -> None:
    """Go through the steps of a search, drawing a bar where one is wished for."""
    hide = None if options.verbose else True
    with tqdm(total=total, desc="search", unit="", unit_scale=True, disable=hide) as bar:
        for done in steps:
            bar.update(done)


def _settle(
    source: RowSource, lists: NearestLists, width: int, workers: Workers
) -> tuple[IntArray, FloatArray]:
    """Order the candidates by a similarity that does not depend on blocks, and cut to width."""
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


def _write_out_copies(
    source: RowSource, copies: EqualRows, neighbours: IntArray, affinity: FloatArray, k: int
) -> tuple[IntArray, FloatArray]:
    """Turn neighbours among distinct rows into neighbours among all of them."""
    itself = np.arange(len(source))[:, None]
    own = np.empty((len(source), 1), dtype=np.float32)
    for rows in edge_blocks(len(source), source.dim):
        own[rows] = _block_affinity(source, rows, itself[rows])
    return expand_equal_rows(copies, np.hstack([itself, neighbours]), np.hstack([own, affinity]), k)
