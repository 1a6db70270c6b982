"""Merges of super-nodes by their links: agglomeration, the most probable pair first.

Each merge adds up the links of both sides to every third super-node, and the probability that two
are one identity is estimated anew. So one probable link between two large clusters is outweighed by
the many that are missing, and fragments of a large identity merge however many they are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, triu
from scipy.sparse.csgraph import connected_components

from hilander.arrays.rows import IntArray
from hilander.graph.links import Links
from hilander.graph.same_identity import estimate_same
from hilander.hierarchy.decoding.contraction import find_dominant, number_by_appearance
from hilander.hierarchy.merge_edges import MergeEdges

# Both ends of a merge prefer each other: nearly always the result of merging one pair at a time.
_MUTUALLY_BEST = 1.0


def merge_by_links(links: Links, size: IntArray, least: float) -> IntArray:
    """Merge super-nodes while two of them are one identity with a probability of `least` or more.

    Parameters
    ----------
    links : Links of n_nodes nodes
    size : ndarray of shape (n_nodes,)
        Points of each super-node.
    least : float, in [0, 1]

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
        Cluster of each node, numbered by first appearance.
    """
    edges = collect_edges(links)
    points: npt.NDArray[np.float64] = size.astype(np.float64)
    labels = np.arange(len(size))
    while len(edges.low):
        joined = _join_best(edges, points, links.k, least)
        if joined is None:
            break
        labels = joined[labels]
        points = np.bincount(joined, weights=points).astype(np.float64)
        edges = edges.renumber(joined, len(points))
    return number_by_appearance(labels)


def collect_edges(links: Links) -> MergeEdges:
    """The links as edges, once each."""
    count, total = triu(links.count, format="coo"), triu(links.linkage, format="coo")
    return MergeEdges(
        count.row.astype(np.int64),
        count.col.astype(np.int64),
        total.data.astype(np.float64),
        count.data.astype(np.float64),
    )


def _join_best(
    edges: MergeEdges, points: npt.NDArray[np.float64], k: int, least: float
) -> IntArray | None:
    """New number of each node after the pairs that prefer each other merged; None without a pair.

    Parameters
    ----------
    edges : MergeEdges
    points : ndarray of shape (n_nodes,)
    k : int
    least : float
    """
    n_nodes = len(points)
    smaller = np.minimum(points[edges.low], points[edges.high])
    same = estimate_same(edges.total, edges.count, k * smaller)
    weight = np.where(same >= least, same, 0.0)
    chosen = find_dominant(edges.low, edges.high, weight, n_nodes, _MUTUALLY_BEST)
    if not chosen.any():
        return None
    ends = edges.low[chosen], edges.high[chosen]
    joins = coo_matrix((np.ones(len(ends[0])), ends), (n_nodes, n_nodes))
    number: IntArray = connected_components(joins, directed=False)[1].astype(np.int64)
    return number
