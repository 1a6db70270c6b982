"""Enforcement: keep the constraints at every level, whatever the decoder finds.

The level loop goes on with the decoder's own clusters, changed only where a node moves or a cluster
is split. Clusters of one must-link component are joined in what a level gives out, not in the
loop: two clusters that only a must-link joins are not alike, and the mean of both would resemble
neither. Their component holds them together at all later levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import Nodes
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.constraints.agglomeration import Agglomeration
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.hierarchy.constraints.evidence import condition_scores
from hilander.hierarchy.constraints.joining import relocate_misfits
from hilander.hierarchy.decoding.contraction import number_by_appearance
from hilander.hierarchy.decoding.decode import attach_within
from hilander.hierarchy.decoding.parents import Parents
from hilander.hierarchy.decoding.trees import label_trees


@dataclass(frozen=True, eq=False)
class JoinedLevel:
    """A level after clusters of one must-link component were joined.

    Parameters
    ----------
    parents : Parents of n_joined nodes
        Nodes are the joined clusters of the level before.
    density : ndarray of shape (n_joined,)
    labels : ndarray of shape (n_joined,)
    peaks : ndarray of shape (n_clusters,)
    """

    parents: Parents
    density: FloatArray
    labels: IntArray
    peaks: IntArray


@dataclass(frozen=True, eq=False)
class HeldConstraints:
    """The constraints at one level of the loop.

    Parameters
    ----------
    constraints : Constraints of n_nodes nodes
    node : ndarray of shape (n_nodes,)
        Joined cluster of the level before that each node belongs to.
    """

    constraints: Constraints
    node: IntArray

    @classmethod
    def of_points(cls, constraints: Constraints | None) -> HeldConstraints | None:
        """The constraints of the first level; None without constraints."""
        if constraints is None:
            return None
        return cls(constraints, np.arange(constraints.n_points))

    def condition(self, graph: KnnGraph, scores: EdgeScores) -> EdgeScores:
        """The scores of the level's graph, given the constraints."""
        return condition_scores(graph, scores, self.constraints)

    def enforce(
        self, graph: KnnGraph, scores: EdgeScores, nodes: Nodes, parents: Parents
    ) -> tuple[Parents, JoinedLevel | None]:
        """Amend what a decoder found.

        Parameters
        ----------
        graph : KnnGraph of n_nodes nodes
        scores : EdgeScores of that graph
        nodes : Nodes
        parents : Parents of n_nodes nodes

        Returns
        -------
        parents : Parents of n_nodes nodes
            For the loop. Those of clusters that break nothing are unchanged.
        joined : JoinedLevel, optional
            What the level gives out, if that differs.
        """
        before = label_trees(parents.index)[0]
        labels = relocate_misfits(nodes, before, self.constraints)
        joined = join_components(labels, self.constraints)
        kept = split_mixed(graph, scores, joined, self.constraints)
        labels = _intersect(labels, kept)
        joined = join_components(labels, self.constraints)
        parents = _attach_changed(graph, scores, parents, before, labels)
        is_plain = np.array_equal(self.node, np.arange(len(self.node)))
        if is_plain and joined.max() == labels.max():
            return parents, None
        return parents, self._join(graph, scores, parents, joined)

    def merge(self, labels: IntArray, n_nodes: int, joined: JoinedLevel | None) -> HeldConstraints:
        """The constraints at the next level.

        Parameters
        ----------
        labels : ndarray of shape (n_nodes_before,)
            Cluster of each node, as the loop goes on with it.
        n_nodes : int
        joined : JoinedLevel, optional
        """
        node = np.empty(n_nodes, dtype=np.int64)
        node[labels] = labels if joined is None else joined.labels[self.node]
        return HeldConstraints(self.constraints.contract(labels, n_nodes), node)

    @property
    def _n_joined(self) -> int:
        return int(self.node.max()) + 1

    def _join(
        self, graph: KnnGraph, scores: EdgeScores, parents: Parents, labels: IntArray
    ) -> JoinedLevel:
        """The level of the joined nodes, for joined clusters of shape (n_nodes,)."""
        n_joined = self._n_joined
        density = np.full(n_joined, -np.inf, dtype=np.float32)
        np.maximum.at(density, self.node, scores.density)
        cluster = np.empty(n_joined, dtype=np.int64)
        cluster[self.node] = labels
        rows = np.repeat(self.node, graph.k)
        ends = self.node[graph.neighbours.ravel()]
        attached = _attach_edges(rows, ends, scores.linkage.ravel(), density, cluster)
        index, linkage = attached
        # Where a cluster was not joined, a node keeps the parent that the decoder chose.
        own = label_trees(parents.index)[0]
        whole = ~find_changed(own, labels) & (np.bincount(self.node)[self.node] == 1)
        index[self.node[whole]] = self.node[parents.index[whole]]
        linkage[self.node[whole]] = parents.linkage[whole]
        found, peaks = label_trees(index)
        return JoinedLevel(Parents(index, linkage, parents.p_tau), density, found, peaks)


def join_components(labels: IntArray, constraints: Constraints) -> IntArray:
    """Clusters after those of one component were joined, shape (n_nodes,), ints from 0."""
    n_labels = int(labels.max()) + 1
    ends = labels, n_labels + constraints.component
    n_all = n_labels + constraints.n_components
    joins = csr_matrix((np.ones(len(labels), dtype=np.int8), ends), (n_all, n_all))
    return number_by_appearance(connected_components(joins, directed=False)[1][labels])


def split_mixed(
    graph: KnnGraph, scores: EdgeScores, labels: IntArray, constraints: Constraints
) -> IntArray:
    """Split each cluster with nodes that must be apart along its weakest links.

    Its components are merged again, by `Agglomeration`, as far as the constraints allow.

    Parameters
    ----------
    labels : ndarray of shape (n_nodes,)
        Each component lies in one cluster.

    Returns
    -------
    labels : ndarray of shape (n_nodes,), numbered from 0 by first appearance
    """
    mixed = constraints.find_mixed(labels)
    if not len(mixed):
        return labels
    nodes = np.flatnonzero(np.isin(labels, mixed))
    units, unit = np.unique(constraints.component[nodes], return_inverse=True)
    inside = Constraints(np.arange(len(units)), constraints.apart[units], constraints.known[units])
    growing = Agglomeration(inside, np.bincount(unit).astype(np.float64))
    place = np.full(len(labels), -1)
    place[nodes] = unit
    left = np.repeat(nodes, graph.k)
    right = graph.neighbours[nodes].ravel()
    kept = labels[left] == labels[right]
    linkage = scores.linkage[nodes].ravel()[kept]
    growing.add_edges(place[left[kept]], place[right[kept]], linkage, np.ones(len(linkage)))
    for _ in growing.merge():
        pass
    found = labels.copy()
    found[nodes] = labels.max() + 1 + growing.labels()[unit]
    return number_by_appearance(found)


def find_changed(before: IntArray, after: IntArray) -> BoolArray:
    """Nodes whose cluster has other members than before, shape (n_nodes,)."""
    before = np.unique(before, return_inverse=True)[1]
    pairs, pair = np.unique(np.stack([before, after]), axis=1, return_inverse=True)
    size = np.bincount(pair.ravel())
    whole = (size == np.bincount(before)[pairs[0]]) & (size == np.bincount(after)[pairs[1]])
    changed: BoolArray = ~whole[pair.ravel()]
    return changed


def _intersect(one: IntArray, other: IntArray) -> IntArray:
    """The clusters in which both partitions agree, shape (n_nodes,), by first appearance."""
    return number_by_appearance(one * (int(other.max()) + 1) + other)


def _attach_changed(
    graph: KnnGraph, scores: EdgeScores, parents: Parents, before: IntArray, labels: IntArray
) -> Parents:
    """Parents of a changed partition; those of clusters that did not change stay."""
    changed = find_changed(before, labels)
    if not changed.any():
        return parents
    attached = attach_within(graph, scores, labels, parents.p_tau)
    index = np.where(changed, attached.index, parents.index)
    linkage = np.where(changed, attached.linkage, parents.linkage)
    return Parents(index, linkage, parents.p_tau)


def _attach_edges(
    rows: IntArray, ends: IntArray, linkage: FloatArray, density: FloatArray, labels: IntArray
) -> tuple[IntArray, FloatArray]:
    """Parent of each node, and its linkage, for edges in a list; as `attach_within` does it.

    Parameters
    ----------
    rows, ends, linkage : ndarray of shape (n_edges,)
    density, labels : ndarray of shape (n_nodes,)
    """
    n_nodes = len(labels)
    inside = (labels[rows] == labels[ends]) & (rows != ends)
    rows, ends, linkage = rows[inside], ends[inside], linkage[inside]
    strongest = np.zeros(n_nodes, dtype=np.float32)
    for side in (rows, ends):
        np.maximum.at(strongest, side, linkage)
    by_density = np.lexsort((np.arange(n_nodes), -density))
    rank = np.empty(n_nodes, dtype=np.int64)
    rank[by_density] = np.arange(n_nodes)
    order = np.lexsort((ends, -linkage, rows))
    order = order[rank[ends[order]] < rank[rows[order]]]
    first = order[np.flatnonzero(np.diff(rows[order], prepend=-1))]
    index = np.full(n_nodes, -1)
    index[rows[first]] = ends[first]
    strongest[rows[first]] = linkage[first]
    peak_of = np.empty(int(labels.max()) + 1, dtype=np.int64)
    peak_of[labels[by_density[::-1]]] = by_density[::-1]
    index = np.where(index < 0, peak_of[labels], index)
    strongest[index == np.arange(n_nodes)] = np.nan
    return index, strongest
