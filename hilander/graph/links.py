"""Links between super-nodes: the edges of the points that cross between two clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import GraphError
from hilander.graph.knn_graph import KnnGraph

Sums = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Links:
    """Edges of the points that cross between clusters, summed over each pair of clusters.

    The matrices are sparse and symmetric, of shape (n_nodes, n_nodes), with an empty diagonal and
    entries at the same places. An edge that is listed both ways counts twice.

    Parameters
    ----------
    count : csr_matrix
        Number of crossing edges.
    linkage : csr_matrix
        Sum of their linkages.
    inside : ndarray of shape (2, n_nodes)
        Number of the edges inside each cluster, and the sum of their linkages.
    k : int
        Neighbours of each point in the graph that the edges are of.
    """

    count: csr_matrix
    linkage: csr_matrix
    inside: Sums
    k: int

    def __post_init__(self) -> None:
        if not np.array_equal(self.linkage.indices, self.count.indices):
            raise GraphError(
                "the matrices of links have entries at different places, expected the same; "
                "build them with cross_links"
            )

    def merge(self, labels: IntArray, n_clusters: int) -> Links:
        """Links between clusters of nodes: sums over the links between their nodes."""
        rows = np.repeat(np.arange(len(labels)), np.diff(self.count.indptr))
        here, there = labels[rows], labels[self.count.indices]
        # Every link is in the matrix twice, once for each end.
        once = rows < self.count.indices
        crosses, joins = once & (here != there), once & (here == there)
        matrices = self.count.data, self.linkage.data
        inside = [
            sum_by(labels, before, n_clusters) + sum_by(here[joins], matrix[joins], n_clusters)
            for before, matrix in zip(self.inside, matrices, strict=True)
        ]
        values = [matrix[crosses] for matrix in matrices]
        return _collect(here[crosses], there[crosses], values, np.stack(inside), self.k)

    def first(self, n_nodes: int) -> Links:
        """The links between the first nodes."""
        part = slice(None, n_nodes)
        return Links(self.count[part, part], self.linkage[part, part], self.inside[:, part], self.k)


def sum_by(group: IntArray, values: npt.NDArray[Any], n_groups: int) -> Sums:
    """Sum of the values of each group, shape (n_groups,)."""
    sums: Sums = np.bincount(group, values, n_groups).astype(np.float64, copy=False)
    return sums


def cross_links(graph: KnnGraph, linkage: FloatArray, labels: IntArray, n_clusters: int) -> Links:
    """Collect the edges of the points that cross between clusters.

    Parameters
    ----------
    graph : KnnGraph of the points
    linkage : ndarray of shape (n_points, k)
    labels : ndarray of shape (n_points,)
        Cluster of each point.
    n_clusters : int
    """
    there = labels[graph.neighbours]
    crosses = there != labels[:, None]
    here = np.repeat(labels, crosses.sum(axis=1))
    values = [np.ones(len(here), dtype=np.float32), linkage[crosses]]
    of_point = (~crosses).sum(axis=1), np.where(crosses, 0, linkage).sum(axis=1, dtype=np.float64)
    inside = np.stack([sum_by(labels, sums, n_clusters) for sums in of_point])
    return _collect(here, there[crosses], values, inside, graph.k)


def _collect(
    here: IntArray, there: IntArray, values: Sequence[npt.NDArray[Any]], inside: Sums, k: int
) -> Links:
    """Sum single links by the pair of clusters that they connect.

    `values` has the counts and the linkages. The links are sorted once for both.
    """
    n_nodes = inside.shape[1]
    low, high = np.minimum(here, there).astype(np.int64), np.maximum(here, there)
    key = low * n_nodes + high
    order = np.argsort(key, kind="stable")
    key = key[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    pair = key[starts]
    ends = pair // n_nodes, pair % n_nodes
    sums = [np.add.reduceat(one[order].astype(np.float64), starts) for one in values]
    count, linkage = (_both_ways(*ends, one, n_nodes) for one in sums)
    return Links(count, linkage, inside, k)


def _both_ways(low: IntArray, high: IntArray, values: Sums, n_nodes: int) -> csr_matrix:
    """A symmetric matrix from the entries above its diagonal; entries of 0 are stored too."""
    rows, columns = np.concatenate([low, high]), np.concatenate([high, low])
    entries = np.tile(values.astype(np.float32), 2)
    matrix = csr_matrix((entries, (rows, columns)), (n_nodes, n_nodes))
    matrix.sort_indices()
    return matrix
