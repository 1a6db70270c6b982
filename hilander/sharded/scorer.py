"""The scorer of a sharded run: edges of points are scored by tasks, those of clusters as usual."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.nodes import Nodes
from hilander.graph.scores import EdgeScores
from hilander.linkage.evidence.background import Background
from hilander.linkage.evidence.common_neighbours import link_both_ways
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.second_stage import TRACE
from hilander.sharded.parted import PartedRows
from hilander.sharded.scoring_tasks import (
    Around,
    LinkedRows,
    Networks,
    score_first,
    score_second,
)

HALO_SHARE = 0.3  # of the memory of a worker: features of rows, their halo, and the far ones
_SMALLEST = 256  # rows that are not cut further, whatever their halo


class ShardedScorer:
    """Scores points that no process holds.

    Parameters
    ----------
    scorer : EvidenceScorer
    memory : int
        Of a worker, in bytes.
    """

    def __init__(self, scorer: EvidenceScorer, memory: int) -> None:
        self.scorer, self.memory = scorer, memory

    def bind_points(self, features: FloatArray) -> None:
        """Measure the background of the points."""
        self.scorer.bind_points(features)

    def measures(self) -> dict[str, Any]:
        """Measures of the points that are bound, as plain values for JSON."""
        return self.scorer.measures()

    def bind_measures(self, measures: Mapping[str, Any]) -> None:
        """Use the measures of an earlier set of points."""
        self.scorer.bind_measures(measures)

    def estimate_merges(self, pairs: LinkedPairs) -> npt.NDArray[Any]:
        """Probability that both clusters of each pair are one identity."""
        return self.scorer.estimate_merges(pairs)

    def __call__(self, graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        """Linkage of every edge and density of every node."""
        if isinstance(nodes.identity, PartedRows):
            return self._score_points(graph, nodes.identity)
        return self.scorer(graph, nodes)

    def _score_points(self, graph: KnnGraph, points: PartedRows) -> EdgeScores:
        log = points.log
        own = Networks(
            Background(float(self.measures()["background"])), self.scorer.compiled_ensemble()
        )
        networks = log.engine.put(own)
        ranges: list[tuple[int, int]] = []

        def first() -> Iterator[Any]:
            for part, around, far in self._cut(graph, points):
                start, stop = around.first, around.first + around.n_rows
                ranges.append((start, stop))
                inside = slice(start - int(points.starts[part]), stop - int(points.starts[part]))
                held = log.engine.submit(_slice, points.parts[part], inside).results[0]
                others = [*points.gather(around.halo), *points.gather(far)]
                yield log.engine.submit(
                    score_first, networks, around, far, held, *others,
                    n_results=3, rows=around.n_rows,
                )  # fmt: skip

        tasks = log.run("score", first(), graph.n_nodes)
        shape = graph.neighbours.shape
        probability = np.empty((len(own.members), *shape), dtype=np.float32)
        back = np.empty(shape, dtype=np.uint16)
        for task, (start, stop) in zip(tasks, ranges, strict=True):
            probability[:, start:stop] = log.engine.fetch(task.results[1])
            back[start:stop] = log.engine.fetch(task.results[2])
        links = [link_both_ways(graph, one + TRACE, back) for one in probability]

        def second() -> Iterator[Any]:
            for task, (start, stop) in zip(tasks, ranges, strict=True):
                around, _ = _look_around(graph, start, stop)
                linked = [
                    _take_links(matrix, one, around)
                    for matrix, one in zip(links, probability, strict=True)
                ]
                yield log.engine.submit(
                    score_second, networks, around, task.results[0], *linked,
                    n_results=2, rows=around.n_rows,
                )  # fmt: skip

        linkage, density = np.empty(shape, np.float32), np.empty(shape[0], np.float32)
        scored = log.run("score", second(), graph.n_nodes)
        for task, (start, stop) in zip(scored, ranges, strict=True):
            linkage[start:stop], density[start:stop] = map(log.engine.fetch, task.results)
        return EdgeScores(linkage, density)

    def _cut(self, graph: KnnGraph, points: PartedRows) -> Iterator[tuple[int, Around, IntArray]]:
        """Cut the rows so that each range fits the memory, with the rows around it."""
        most = HALO_SHARE * self.memory / (4 * points.dim)
        waiting = [
            (part, int(points.starts[part]), int(points.starts[part + 1]))
            for part in reversed(range(len(points.parts)))
        ]
        while waiting:
            part, start, stop = waiting.pop()
            around, far = _look_around(graph, start, stop)
            if 2 * len(around.neighbours) + len(far) > most and stop - start > _SMALLEST:
                middle = (start + stop) // 2
                waiting += [(part, middle, stop), (part, start, middle)]
                continue
            yield part, around, far


def _look_around(graph: KnnGraph, start: int, stop: int) -> tuple[Around, IntArray]:
    """The neighbours of consecutive rows, and the neighbours of those that are neither."""
    seen = np.zeros(graph.n_nodes, dtype=bool)
    seen[graph.neighbours[start:stop]] = True
    seen[start:stop] = False
    halo = np.flatnonzero(seen)
    lists = np.concatenate([graph.neighbours[start:stop], graph.neighbours[halo]])
    affinity = np.concatenate([graph.affinity[start:stop], graph.affinity[halo]])
    seen[:] = False
    seen[lists] = True
    seen[start:stop] = False
    seen[halo] = False
    return Around(start, halo, lists, affinity, stop - start), np.flatnonzero(seen)


def _slice(part: FloatArray, rows: slice) -> FloatArray:
    return np.asarray(part)[rows]


def _take_links(matrix: Any, probability: FloatArray, around: Around) -> LinkedRows:
    """The rows of a matrix of links for some rows and their halo."""
    rows = np.concatenate([np.arange(around.first, around.first + around.n_rows), around.halo])
    begin, length = matrix.indptr[rows], np.diff(matrix.indptr)[rows]
    starts = np.concatenate([[0], np.cumsum(length)])
    at = np.repeat(begin - starts[:-1], length) + np.arange(starts[-1])
    return LinkedRows(starts, matrix.indices[at], matrix.data[at], probability[rows])
