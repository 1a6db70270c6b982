"""Verified merges: greedy additive edge contraction for correlation clustering, in rounds.

The weight of an edge is the log-odds of its linkage against the threshold: positive for a merge,
negative against. When two clusters merge, the weights of their edges to a third are added. So one
wrong link between two large clusters is outweighed by many negative edges.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph

# An edge is contracted if it is the heaviest of one end and at least this share of the heaviest of
# the other. At 1 a large cluster would absorb one member a round.
_DOMINANT_SHARE = 0.5


def contract_edges(
    graph: KnnGraph, weights: FloatArray, dominant_share: float = _DOMINANT_SHARE
) -> IntArray:
    """Merge along positive edges, heaviest first, adding up parallel edges.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    weights : ndarray of shape (n_nodes, k)
        Positive for a merge, negative against.
    dominant_share : float
        1 contracts only edges that are the heaviest of both ends; less merges more in a round.

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
        Cluster of each node, numbered by first appearance.
    """
    labels = np.arange(graph.n_nodes)
    left, right, weight = add_both_ways(graph, weights)
    n_clusters = graph.n_nodes
    while True:
        left, right, weight = drop_settled(left, right, weight, n_clusters)
        chosen = find_dominant(left, right, weight, n_clusters, dominant_share)
        if not chosen.any():
            return number_by_appearance(labels)
        joins = csr_matrix(
            (np.ones(chosen.sum(), dtype=np.int8), (left[chosen], right[chosen])),
            (n_clusters, n_clusters),
        )
        n_clusters, merged = connected_components(joins, directed=False)
        labels = merged[labels]
        left, right = merged[left], merged[right]
        apart = left != right
        # Drop before sorting, too: it removes about half of the edges of the first rounds.
        open_edges = drop_settled(left[apart], right[apart], weight[apart], n_clusters)
        left, right, weight = add_parallel(*open_edges, n_clusters)


def find_dominant(
    left: IntArray,
    right: IntArray,
    weight: npt.NDArray[np.floating],
    n_nodes: int,
    share: float,
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether an edge is positive and dominant, shape (n_edges,), bool.

    It is dominant if it is the heaviest of one end and at least `share` of the heaviest of the
    other.
    """
    best = np.zeros(n_nodes)
    np.maximum.at(best, left, weight)
    np.maximum.at(best, right, weight)
    higher = np.maximum(best[left], best[right])
    lower = np.minimum(best[left], best[right])
    dominant: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        (weight > 0) & (weight >= lower) & (weight >= share * higher)
    )
    return dominant


def add_both_ways(graph: KnnGraph, weights: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """The result of `add_parallel` for the edges of a graph, in time linear in their number."""
    starts = np.arange(0, weights.size + 1, graph.k)
    shape = (graph.n_nodes, graph.n_nodes)
    entries = weights.ravel().astype(np.float64), graph.neighbours.ravel(), starts
    one_way = csr_matrix(entries, shape).sorted_indices()
    both = one_way + one_way.T.tocsr()
    del one_way
    left = np.repeat(np.arange(graph.n_nodes, dtype=both.indices.dtype), np.diff(both.indptr))
    once = left < both.indices
    return left[once], both.indices[once], both.data[once]


def drop_settled(
    left: IntArray, right: IntArray, weight: FloatArray, n_nodes: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """The edges between clusters that may still merge.

    A cluster without a positive edge is settled: sums of negative weights stay negative.
    """
    is_positive = weight > 0
    is_open = np.zeros(n_nodes, dtype=bool)
    is_open[left[is_positive]] = True
    is_open[right[is_positive]] = True
    kept = is_open[left] & is_open[right]
    return left[kept], right[kept], weight[kept]


def add_parallel(
    left: IntArray, right: IntArray, weight: FloatArray, n_nodes: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Undirected edges once each, the weights of parallel ones added, loops dropped."""
    apart = left != right
    left, right, weight = left[apart], right[apart], weight[apart]
    low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
    key = low * n_nodes + high
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order]
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.arange(0)
    total = np.add.reduceat(weight, starts) if len(key) else weight
    key = key[starts]
    return key // n_nodes, key % n_nodes, total


def number_by_appearance(labels: IntArray) -> IntArray:
    """Renumber labels from 0 in the order in which they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
