"""Links between super-nodes: how many edges of the points cross between two clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from hilander.data.arrays import FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph


@dataclass(frozen=True, eq=False)
class Links:
    """Edges of the points that cross between clusters, summed over each pair of clusters.

    Every matrix is sparse, symmetric, of shape (n_nodes, n_nodes), with an empty diagonal.

    Parameters
    ----------
    count : number of crossing edges
    affinity : sum of their affinities
    best : largest of their affinities
    linkage : sum of their linkages
    log_odds : sum of the logits of their linkages
    """

    count: csr_matrix
    affinity: csr_matrix
    best: csr_matrix
    linkage: csr_matrix
    log_odds: csr_matrix

    def merge(self, labels: IntArray, n_clusters: int) -> Links:
        """Sum the links of nodes that go into one cluster."""
        summed = [
            sum_pairs(*_entries(matrix, labels), n_clusters)
            for matrix in (self.count, self.affinity, self.linkage, self.log_odds)
        ]
        best = best_pairs(*_entries(self.best, labels), n_clusters)
        return Links(summed[0], summed[1], best, summed[2], summed[3])


def cross_links(
    graph: KnnGraph, linkage: FloatArray, log_odds: FloatArray, labels: IntArray, n_clusters: int
) -> Links:
    """Collect the edges of the points that cross between clusters.

    Parameters
    ----------
    graph : KnnGraph of the points
    linkage, log_odds : ndarray of shape (n_points, k)
    labels : ndarray of shape (n_points,)
        Cluster of each point.
    n_clusters : int
    """
    here, there = np.repeat(labels, graph.k), labels[graph.neighbours.ravel()]
    crosses = here != there
    rows = np.concatenate([here[crosses], there[crosses]])
    columns = np.concatenate([there[crosses], here[crosses]])

    def both_ways(values: FloatArray) -> FloatArray:
        return np.tile(values.ravel()[crosses], 2)

    affinity = both_ways(graph.affinity)
    return Links(
        count=sum_pairs(rows, columns, np.ones_like(affinity), n_clusters),
        affinity=sum_pairs(rows, columns, affinity, n_clusters),
        best=best_pairs(rows, columns, affinity, n_clusters),
        linkage=sum_pairs(rows, columns, both_ways(linkage), n_clusters),
        log_odds=sum_pairs(rows, columns, both_ways(log_odds), n_clusters),
    )


def sum_pairs(rows: IntArray, columns: IntArray, values: FloatArray, n_nodes: int) -> csr_matrix:
    """A sparse matrix of the sums of the values of each pair."""
    matrix = csr_matrix((values, (rows, columns)), (n_nodes, n_nodes))
    matrix.sum_duplicates()
    return matrix


def best_pairs(rows: IntArray, columns: IntArray, values: FloatArray, n_nodes: int) -> csr_matrix:
    """A sparse matrix of the largest value of each pair."""
    order = np.lexsort((values, columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    last = np.ones(len(rows), dtype=bool)
    last[:-1] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    return csr_matrix((values[last], (rows[last], columns[last])), (n_nodes, n_nodes))


def _entries(matrix: csr_matrix, labels: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Entries between different clusters, under the clusters' numbers."""
    rows = labels[np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))]
    columns = labels[matrix.indices]
    crosses = rows != columns
    return rows[crosses], columns[crosses], matrix.data[crosses]
