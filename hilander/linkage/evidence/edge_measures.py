"""Measures of edges, from which edge features are computed.

Every measure is relative. Cosines are compared with the background of the data or with the other
neighbours of both ends; the rest are ranks and shares. A classifier of such features does not
depend on the dimension of the embeddings, and little on the embedder.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.row_source import RowSource
from hilander.arrays.rows import FloatArray, IntArray, read_rows
from hilander.engines.threads import open_workers
from hilander.graph.knn_graph import KnnGraph, edge_blocks
from hilander.graph.nodes import Nodes
from hilander.linkage.evidence.background import Background
from hilander.linkage.evidence.common_neighbours import compare_lists

CLOSE = 5  # neighbours that count as the closest: a third of the default k
_CLOSE_AFFINITIES = 3  # neighbours whose affinities are averaged as those of the closest


class EdgeMeasures:
    """Measures of all edges of a graph.

    Expensive measures are computed here, once. `block` computes the others for some nodes at a
    time, because all features of a million nodes take gigabytes.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    nodes : Nodes of the same length
    background : Background of the points
    n_rows : int
        Nodes whose edges are measured, the first ones.
    """

    def __init__(self, graph: KnnGraph, nodes: Nodes, background: Background, n_rows: int) -> None:
        self.graph, self.background = graph, background
        self.n_close = min(CLOSE, graph.k)
        self.lists = compare_lists(graph, self.n_close)
        self.node_affinity = summarise_affinities(graph.affinity, background)  # (4, n_nodes)
        self.to_mean, self.to_close_mean = (
            MeanNeighbourMeasures(graph, nodes.identity, reach, background, n_rows)
            for reach in (graph.k, self.n_close)
        )

    def block(self, rows: slice) -> EdgeBlock:
        """The measures of the edges of consecutive nodes."""
        return EdgeBlock(self, rows)


class EdgeBlock:
    """Measures of the edges (i, j) of consecutive nodes i.

    Arrays have shape (block, k), or (block, 1) where they depend on i alone.
    """

    def __init__(self, measures: EdgeMeasures, rows: slice) -> None:
        self.measures, self.rows = measures, rows
        graph, lists = measures.graph, measures.lists
        self.k, self.n_close = graph.k, measures.n_close
        self.affinity = measures.background.rescale(graph.affinity[rows])
        of_i = measures.node_affinity[:, rows, None]  # (4, block, 1)
        of_j = measures.node_affinity.take(graph.neighbours[rows], axis=1)  # (4, block, k)
        self.mean_i, self.best_i, self.close_i, self.last_i = of_i
        self.mean_j, self.best_j, self.close_j, self.last_j = of_j
        self.rank = np.arange(1, graph.k + 1, dtype=np.float32)  # (k,)
        self.rank_back = lists.back[rows]
        self.is_mutual = self.rank_back > 0
        self.n_shared, self.n_shared_close = lists.shared[rows], lists.shared_close[rows]

        to_mean, to_close = measures.to_mean, measures.to_close_mean
        self.i_to_mean_j, self.i_to_close_j = to_mean.i_to_mean_j[rows], to_close.i_to_mean_j[rows]
        self.mean_i_to_j, self.close_i_to_j = to_mean.mean_i_to_j[rows], to_close.mean_i_to_j[rows]
        self.mean_to_mean = to_mean.mean_to_mean[rows]
        self.close_to_close = to_close.mean_to_mean[rows]


def summarise_affinities(affinity: FloatArray, background: Background) -> FloatArray:
    """Mean, best, close and last affinity of each node, rescaled, shape (4, n_nodes)."""
    affinity = background.rescale(affinity)
    close = affinity[:, : min(_CLOSE_AFFINITIES, affinity.shape[1])].mean(axis=1)
    return np.stack([affinity.mean(axis=1), affinity.max(axis=1), close, affinity.min(axis=1)])


class MeanNeighbourMeasures:
    """Cosines between the ends of an edge and the mean neighbours of the ends.

    The mean neighbour ``m_i`` is the sum of the nearest neighbours of i, at unit length.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    own : ndarray of shape (n_nodes, dim)
        Features of the nodes, of unit length.
    reach : int
        Number of neighbours in the mean.
    background : Background
    n_rows : int
        Nodes whose edges are measured, the first ones.

    Attributes
    ----------
    i_to_mean_j, mean_i_to_j : ndarray of shape (n_rows, k)
        ``x_i · m_j`` and ``m_i · x_j``, rescaled by the background.
    mean_to_mean : ndarray of shape (n_rows, k)
        ``m_i · m_j``.
    """

    def __init__(
        self, graph: KnnGraph, own: FloatArray, reach: int, background: Background, n_rows: int
    ) -> None:
        from hilander.linkage.evidence.mean_kernels import average_neighbours, dot_ends

        neighbours = graph.neighbours
        mean = np.empty(own.shape, dtype=np.float32)
        shape = n_rows, graph.k
        to_mean, from_mean, both = (np.empty(shape, dtype=np.float32) for _ in range(3))

        def average(rows: slice) -> None:
            table, ends = _gather(own, neighbours[rows])
            average_neighbours(table, ends, reach, mean[rows])
            measured = from_mean[rows]
            n_measured = len(measured)
            dot_ends(mean[rows][:n_measured], table, ends[:n_measured], measured)

        def compare(rows: slice) -> None:
            dot_ends(read_rows(own, rows), mean, neighbours[rows], to_mean[rows])
            dot_ends(mean[rows], mean, neighbours[rows], both[rows])
            for cosine in (to_mean, from_mean):
                cosine[rows] = background.rescale(cosine[rows])

        blocks = list(edge_blocks(graph.n_nodes, graph.k * own.shape[1]))
        with open_workers(alone=len(blocks) < 2) as workers:
            workers.map(average, blocks)
            workers.map(compare, edge_blocks(n_rows, graph.k * own.shape[1]))
        self.i_to_mean_j: npt.NDArray[np.float32] = to_mean
        self.mean_i_to_j: npt.NDArray[np.float32] = from_mean
        self.mean_to_mean: npt.NDArray[np.float32] = both


def _gather(own: npt.NDArray[Any], neighbours: IntArray) -> tuple[FloatArray, IntArray]:
    """A float32 table, and the rows of the neighbours in it."""
    if own.dtype == np.float32 and own.flags.c_contiguous:
        return np.asarray(own), neighbours
    rows = RowSource(own).take(neighbours.ravel())
    return rows, np.arange(len(rows)).reshape(neighbours.shape)
