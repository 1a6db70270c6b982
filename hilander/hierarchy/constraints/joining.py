"""Must-links between clusters: join the clusters, or move the node that does not fit its own.

A must-link between nodes of two clusters has two explanations. Either both clusters are of one
identity, and are joined. Or one of the nodes is in a wrong cluster, and moves. The first holds if
each node is more similar to its own cluster than to the other one, and fits its own about as well
as the other members do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from hilander.arrays.row_source import RowSource
from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.nodes import Nodes
from hilander.hierarchy.constraints.constraints import Constraints

# Least similarity of a node to the rest of its cluster, as a share of the mean similarity between
# members of that cluster, to be sure that it is in the right one.
LEAST_FIT = 0.6


def relocate_misfits(nodes: Nodes, labels: IntArray, constraints: Constraints) -> IntArray:
    """Move nodes that must-links show to be in a wrong cluster.

    Parameters
    ----------
    nodes : Nodes
    labels : ndarray of shape (n_nodes,), ints from 0
        Cluster of each node.
    constraints : Constraints of n_nodes nodes

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
        With moved nodes in the cluster of the best fitting node of their component. Components may
        still be in several clusters.
    """
    segments = _find_segments(labels, constraints)
    if not len(segments.component):
        return labels
    fit = _Fit(nodes, labels, segments)
    own, ratio = fit.own()
    alone = np.isnan(own)
    # The best fitting segment of each component is its head; one that is its whole cluster is not.
    order = np.lexsort((segments.cluster, -np.where(alone, -np.inf, ratio), segments.component))
    first = np.flatnonzero(np.diff(segments.component[order], prepend=-1))
    head = np.empty(len(order), dtype=np.int64)
    head[order] = np.repeat(order[first], np.diff(np.r_[first, len(order)]))
    fits = alone | ((own > fit.to_cluster_of(head)) & (ratio >= LEAST_FIT))
    head_fits = (alone | (own[head] > fit.of_to(head))) & (ratio[head] >= LEAST_FIT) | alone[head]
    leaves = ~(fits & head_fits) & ~alone
    moved = labels.copy()
    moves = leaves[segments.of_node]
    moved[segments.node[moves]] = segments.cluster[head[segments.of_node[moves]]]
    return np.unique(moved, return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class _Segments:
    """The parts of components that are in one cluster each, of components in several clusters.

    Parameters
    ----------
    component, cluster : ndarray of shape (n_segments,)
    node, of_node : ndarray of shape (n_chosen,)
        Nodes of the segments, and the segment of each.
    """

    component: IntArray
    cluster: IntArray
    node: IntArray
    of_node: IntArray


def _find_segments(labels: IntArray, constraints: Constraints) -> _Segments:
    linked = constraints.linked
    pairs = np.stack([constraints.component[linked], labels[linked]])
    distinct = np.unique(pairs, axis=1)
    parts = np.bincount(distinct[0], minlength=constraints.n_components)
    node = linked[parts[pairs[0]] > 1]
    pairs = np.stack([constraints.component[node], labels[node]])
    distinct, of_node = np.unique(pairs, axis=1, return_inverse=True)
    return _Segments(distinct[0], distinct[1], node, of_node.ravel())


class _Fit:
    """Mean similarities between segments and clusters."""

    def __init__(self, nodes: Nodes, labels: IntArray, segments: _Segments) -> None:
        clusters, self.at = np.unique(segments.cluster, return_inverse=True)
        member = np.flatnonzero(np.isin(labels, clusters))
        place = np.searchsorted(clusters, labels[member])
        total = RowSource(nodes.total)
        self.cluster_total = _sum(total.take(member), place, len(clusters))
        self.cluster_size = np.bincount(place, nodes.size[member])
        n_segments = len(segments.component)
        self.total = _sum(total.take(segments.node), segments.of_node, n_segments)
        self.size = np.bincount(segments.of_node, nodes.size[segments.node], n_segments)

    def own(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Similarity of each segment to the rest of its cluster, and its share of the cohesion.

        NaN where the segment is the whole cluster.
        """
        cluster, n_cluster = self.cluster_total[self.at], self.cluster_size[self.at]
        rest = n_cluster - self.size
        with np.errstate(invalid="ignore", divide="ignore"):
            own = _dot(self.total, cluster - self.total) / np.where(rest, self.size * rest, np.nan)
            squared = _dot(self.cluster_total, self.cluster_total)
            pairs = self.cluster_size * (self.cluster_size - 1)
            cohesion = (squared - self.cluster_size) / np.where(pairs, pairs, np.nan)
            return own, own / np.maximum(cohesion[self.at], 1e-6)

    def to_cluster_of(self, others: IntArray) -> npt.NDArray[np.float64]:
        """Similarity of each segment to the cluster of another one."""
        at = self.at[others]
        return _dot(self.total, self.cluster_total[at]) / (self.size * self.cluster_size[at])

    def of_to(self, others: IntArray) -> npt.NDArray[np.float64]:
        """Similarity of another segment to the cluster of each one."""
        product = _dot(self.total[others], self.cluster_total[self.at])
        return product / (self.size[others] * self.cluster_size[self.at])


def _sum(values: FloatArray, group: IntArray, n_groups: int) -> npt.NDArray[np.float64]:
    entries = np.ones(len(group)), (group, np.arange(len(group)))
    total: npt.NDArray[np.float64] = csr_matrix(entries, (n_groups, len(group))) @ values
    return total


def _dot(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    product: npt.NDArray[np.float64] = np.einsum("ij,ij->i", left, right)
    return product
