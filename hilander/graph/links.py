"""Links between super-nodes: the edges of the points that cross between two clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import GraphError
from hilander.graph.knn_graph import KnnGraph


@dataclass(frozen=True, eq=False)
class Links:
    """Edges of the points that cross between clusters, summed over each pair of clusters.

    The matrices are sparse and symmetric, of shape (n_nodes, n_nodes), with an empty diagonal. All
    have entries at the same places.

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

    def __post_init__(self) -> None:
        for matrix in (self.affinity, self.best, self.linkage, self.log_odds):
            if not np.array_equal(matrix.indices, self.count.indices):
                raise GraphError(
                    "the matrices of links have entries at different places, expected the same; "
                    "build them with cross_links"
                )

    def merge(self, labels: IntArray, n_clusters: int) -> Links:
        """Links between clusters of nodes: sums over the links between their nodes."""
        rows = np.repeat(np.arange(len(labels)), np.diff(self.count.indptr))
        here, there = labels[rows], labels[self.count.indices]
        # Every link is in the matrix twice, once for each end.
        once = (here != there) & (rows < self.count.indices)
        held = (self.count, self.affinity, self.best, self.linkage, self.log_odds)
        values = [matrix.data[once] for matrix in held]
        return _collect(here[once], there[once], values, n_clusters)


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
    there = labels[graph.neighbours]
    crosses = there != labels[:, None]
    here = np.repeat(labels, crosses.sum(axis=1))
    affinity = graph.affinity[crosses]
    values = [np.ones_like(affinity), affinity, affinity, linkage[crosses], log_odds[crosses]]
    return _collect(here, there[crosses], values, n_clusters)


def _collect(here: IntArray, there: IntArray, values: list[FloatArray], n_nodes: int) -> Links:
    """Sum single links by the pair of clusters that they connect.

    `values` has five arrays: count, affinity, best affinity, linkage and log-odds. The links are
    sorted once for all five.
    """
    low, high = np.minimum(here, there).astype(np.int64), np.maximum(here, there)
    key = low * n_nodes + high
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.arange(0)
    pair = key[starts]
    rules = (np.add, np.add, np.maximum, np.add, np.add)
    matrices = []
    for single, combine in zip(values, rules, strict=True):
        sorted_values = single[order].astype(np.float64)
        joined = combine.reduceat(sorted_values, starts) if len(key) else sorted_values
        matrices.append(_both_ways(pair // n_nodes, pair % n_nodes, joined, n_nodes))
    return Links(*matrices)


def _both_ways(
    low: IntArray, high: IntArray, values: npt.NDArray[np.float64], n_nodes: int
) -> csr_matrix:
    """A symmetric matrix from the entries above its diagonal; entries of 0 are stored too."""
    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    entries = np.tile(values.astype(np.float32), 2)
    matrix = csr_matrix((entries, (rows, columns)), (n_nodes, n_nodes))
    matrix.sort_indices()
    return matrix
