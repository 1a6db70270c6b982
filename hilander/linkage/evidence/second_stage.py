"""Measures of edges for the second stage: the first stage's probabilities around an edge.

If i and j are of one identity, a node that is linked to i is linked to j as well.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray
from hilander.graph.edges import logit_of
from hilander.graph.knn_graph import KnnGraph
from hilander.linkage.evidence.common_neighbours import CommonLinks, link_both_ways

TRACE = np.float32(1e-6)  # probability added to every edge, so that a sparse matrix keeps zeros


class SecondStageMeasures:
    """Measures of all edges of a graph, from the probabilities of the first stage.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    probability : ndarray of shape (n_nodes, k)
        ``p_ij`` of the first stage.
    rank_back : ndarray of shape (n_nodes, k)
        Rank of each node in the list of its neighbour, from 1; 0 where it is not listed.
    """

    def __init__(
        self, graph: KnnGraph, probability: FloatArray, rank_back: npt.NDArray[np.uint16]
    ) -> None:
        self.graph, self.probability, self.rank_back = graph, probability, rank_back
        links = link_both_ways(graph, probability + TRACE, rank_back)
        self.common = CommonLinks(links, graph)
        self.degree = probability.sum(axis=1)
        self.best_logit = logit_of(probability.max(axis=1))

    def block(self, rows: slice) -> SecondStageBlock:
        """The measures of the edges of consecutive nodes."""
        return SecondStageBlock(self, rows)


class SecondStageBlock:
    """Measures of the edges (i, j) of consecutive nodes i.

    Arrays have shape (block, k), or (block, 1) where they depend on i alone. ``q_im`` is the
    larger of ``p_im`` and ``p_mi``. Sums run over the nodes m that both i and j have an edge to or
    from.
    """

    def __init__(self, measures: SecondStageMeasures, rows: slice) -> None:
        graph = measures.graph
        j, place = graph.neighbours[rows], measures.rank_back[rows].astype(np.int64)
        self.k = np.float32(graph.k)
        self.probability = measures.probability[rows]
        self.logit = logit_of(self.probability)
        is_mutual = place > 0
        at = j * graph.k + np.maximum(place - 1, 0)
        back = np.take(measures.probability.ravel(), at, mode="clip") + TRACE
        back = np.where(is_mutual, back, np.float32(0))
        self.higher = np.maximum(self.probability, back)
        self.lower = np.where(is_mutual, np.minimum(self.probability, back), self.probability)
        self.n_common, self.sum_i, self.sum_j, self.sum_products = measures.common.of(rows)
        self.at_least_one = np.maximum(self.n_common, 1)
        self.degree_i, self.degree_j = measures.degree[rows, None], measures.degree.take(j)
        self.best_logit_i, self.best_logit_j = (
            measures.best_logit[rows, None],
            measures.best_logit.take(j),
        )
