"""The merge tree: one dendrogram over all points, which can be cut anywhere.

Points merge along the edges of the k-NN graph, those with the most linkage between them first. The
levels of the hierarchy are respected: a cluster of a level is complete before it merges with
another. So every level is a set of subtrees. Above the last level, clusters merge until no edge is
left between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import SettingError
from hilander.graph.same_identity import estimate_same
from hilander.hierarchy.constraints.agglomeration import Agglomeration
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.hierarchy.decoding.contraction import find_dominant, number_by_appearance
from hilander.hierarchy.merge_edges import MergeEdges

# In a round, an edge is merged if its strength is the highest of one end and at least this share of
# the highest of the other. At 1 a large cluster would absorb one point a round.
_DOMINANT_SHARE = 0.9
# Height that separates the merges inside the final partition from those above it.
RECOMMENDED = 0.5


@dataclass(frozen=True, eq=False)
class MergeTree:
    """A forest of binary merges; merge m makes node ``n_points + m``.

    Parameters
    ----------
    n_points : int
    children : ndarray of shape (n_merges, 2), int64
        The two nodes of each merge.
    height : ndarray of shape (n_merges,), float32, in [0, 1], falling
        Estimated probability that the two sides are one identity, never above the heights of the
        merges below it. It is at least 0.5 inside the clusters of the final partition and below
        0.5 above them.
    allowed : (int, int), optional
        Fewest and most clusters that keep the constraints; None without constraints.
    """

    n_points: int
    children: IntArray
    height: FloatArray
    allowed: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.children.shape != (len(self.height), 2):
            raise SettingError(
                f"children {self.children.shape} and height {self.height.shape} differ; "
                "give two children for each height"
            )
        if len(self.height) and (np.diff(self.height) > 0).any():
            raise SettingError("the heights rise; give merges in the order of falling height")

    @property
    def n_merges(self) -> int:
        """Number of merges; n_points less the number of connected components."""
        return len(self.height)

    def cut(self, p: float) -> IntArray:
        """Clusters of the merges of at least this height, shape (n_points,).

        Parameters
        ----------
        p : float, in [0, 1]
            ``0.5`` gives the final partition of the hierarchy.
        """
        if not 0 <= p <= 1:
            raise SettingError(f"p={p!r} is not a probability; use 0 to 1")
        return self.label_after(int((self.height >= p).sum()))

    def cut_into(self, n_clusters: int) -> IntArray:
        """Exactly so many clusters, shape (n_points,).

        Fewer than there are connected components are made by joining the smallest components.
        """
        if not 1 <= n_clusters <= self.n_points:
            raise SettingError(
                f"n_clusters={n_clusters} is impossible for {self.n_points} points; "
                f"use 1 to {self.n_points}"
            )
        fewest, most = self.allowed or (1, self.n_points)
        if not fewest <= n_clusters <= most:
            raise SettingError(
                f"n_clusters={n_clusters} would break what is known of the points; "
                f"use {fewest} to {most}"
            )
        return self.completed().label_after(self.n_points - n_clusters)

    def label_after(self, n_merges: int) -> IntArray:
        """Clusters after the first merges, numbered by their first point, shape (n_points,)."""
        top = np.arange(self.n_points + n_merges)
        # Each child belongs to the cluster of its parent; parents come later, so go backwards.
        for merge in range(n_merges - 1, -1, -1):
            top[self.children[merge]] = top[self.n_points + merge]
        return number_by_appearance(top[: self.n_points])

    def completed(self) -> MergeTree:
        """The tree with its connected components joined at height 0, the smallest first."""
        labels = self.label_after(self.n_merges)
        roots = self._roots(labels)
        order = np.argsort(np.bincount(labels), kind="stable")
        children, last = [], int(roots[order[0]]) if len(order) else 0
        for place, component in enumerate(order[1:]):
            children.append((last, int(roots[component])))
            last = self.n_points + self.n_merges + place
        joined = np.array(children, dtype=np.int64).reshape(-1, 2)
        return MergeTree(
            self.n_points,
            np.concatenate([self.children, joined]),
            np.concatenate([self.height, np.zeros(len(joined), dtype=np.float32)]),
        )

    def _roots(self, labels: IntArray) -> IntArray:
        """The top node of each component, shape (n_components,)."""
        is_child = np.zeros(self.n_points + self.n_merges, dtype=bool)
        is_child[self.children] = True
        first_point = np.arange(self.n_points + self.n_merges)
        for merge, pair in enumerate(self.children):
            first_point[self.n_points + merge] = first_point[pair[0]]
        tops = np.flatnonzero(~is_child)
        roots = np.empty(len(tops), dtype=np.int64)
        roots[labels[first_point[tops]]] = tops
        return roots

    def sizes(self) -> IntArray:
        """Number of points below each merge, shape (n_merges,)."""
        size = np.ones(self.n_points + self.n_merges, dtype=np.int64)
        for merge, (left, right) in enumerate(self.children):
            size[self.n_points + merge] = size[left] + size[right]
        return size[self.n_points :]

    def to_scipy_linkage(self) -> npt.NDArray[np.float64]:
        """The tree as `scipy.cluster.hierarchy` reads it, shape (n_points - 1, 4).

        The distance of a merge is ``1 - height``; components without an edge between them merge at
        distance 1.
        """
        whole = self.completed()
        distance = 1 - whole.height.astype(np.float64)
        return np.column_stack([whole.children, distance, whole.sizes()])


@dataclass(frozen=True, eq=False)
class LevelLinks:
    """The clusters of one level, and the links that made them.

    Parameters
    ----------
    labels : ndarray of shape (n_points,)
        Cluster of each point.
    child, parent : ndarray of shape (n_links,)
        Points that are the peaks of the two linked nodes.
    linkage : ndarray of shape (n_links,)
    """

    labels: IntArray
    child: IntArray
    parent: IntArray
    linkage: FloatArray


def build_merge_tree(
    neighbours: IntArray,
    linkage: FloatArray,
    levels: Sequence[LevelLinks],
    constraints: Constraints | None = None,
) -> MergeTree:
    """Merge points along the edges of a graph, within the clusters of each level first.

    Two nodes have strength ``sum of linkage between them / (k * size of the smaller)``. The pair of
    the highest strength merges first.

    Parameters
    ----------
    neighbours, linkage : ndarray of shape (n_points, k)
        The graph of the points, and the linkage of its edges.
    levels : sequence of LevelLinks, the first level first
        The links of a level join what the edges of the points do not.
    constraints : Constraints of n_points points, optional
        Must-links merge first, at height 1. Above the last level, clusters that must be apart do
        not merge.

    Returns
    -------
    tree : MergeTree
    """
    if neighbours.shape != linkage.shape or any(len(one.labels) != len(linkage) for one in levels):
        raise SettingError(
            f"neighbours {neighbours.shape}, linkage {linkage.shape} and the labels differ; "
            "give the graph of the points that were clustered"
        )
    n_points, k = neighbours.shape
    growing = _Growing(n_points, k)
    edges = MergeEdges.of_graph(neighbours, linkage)
    place = np.arange(n_points)  # position of the present node of each point
    if constraints is not None:
        ends = constraints.must_links()
        links = MergeEdges.of_links(*ends, np.ones(len(ends[0]), dtype=np.float32))
        place = growing.merge_all(links, is_recommended=True, height=1)
        edges = edges.renumber(place, len(growing.node))
    for level in levels:
        inside = edges.within(level.labels[growing.point])
        links = MergeEdges.of_links(place[level.child], place[level.parent], level.linkage)
        new = growing.merge_all(inside.join(links, len(growing.node)), is_recommended=True)
        edges, place = edges.renumber(new, len(growing.node)), new[place]
    if constraints is None:
        growing.merge_all(edges, is_recommended=False)
        return growing.to_tree()
    n_nodes = len(growing.node)
    growing.merge_allowed(edges, constraints.contract(place, n_nodes))
    tree = growing.to_tree()
    is_bound = constraints.apart.nnz or (constraints.known >= 0).any()
    fewest = n_points - tree.n_merges if is_bound else 1
    return replace(tree, allowed=(fewest, constraints.n_components))


def drop_small(labels: IntArray, min_size: int) -> IntArray:
    """Labels in which clusters of fewer points are -1 and the others are numbered from 0."""
    if min_size <= 1:
        return labels
    large = np.bincount(labels) >= min_size
    number = np.where(large, np.cumsum(large) - 1, -1)
    return number[labels]


class _Growing:
    """The nodes that have not merged yet, and the merges so far."""

    def __init__(self, n_points: int, k: int) -> None:
        self.n_points, self.k = n_points, k
        self.node = np.arange(n_points)  # number in the tree of each present node
        self.point = np.arange(n_points)  # one point of each present node
        self.size: npt.NDArray[np.float64] = np.ones(n_points)
        self.limit: npt.NDArray[np.float64] = np.ones(
            n_points
        )  # lowest height below each present node
        self.children: list[tuple[int, int]] = []
        self.height: list[float] = []

    def merge_all(
        self, edges: MergeEdges, *, is_recommended: bool, height: float | None = None
    ) -> IntArray:
        """Merge along all edges; gives the new position of each node, shape (n_nodes,).

        `height` is that of all merges; None to estimate each.
        """
        position = np.arange(len(self.node))
        while len(edges.low):
            new = self._merge_round(edges, is_recommended, height)
            position = new[position]
            edges = edges.renumber(new, len(self.node))
        return position

    def merge_allowed(self, edges: MergeEdges, constraints: Constraints) -> None:
        """Merge along the edges, the strongest first, where the constraints of the nodes allow."""
        agglomeration = Agglomeration(constraints, self.size)
        agglomeration.add_edges(edges.low, edges.high, edges.total, edges.count)
        made = list(agglomeration.merge())
        ends = (np.array([getattr(one, end) for one in made], int) for end in ("left", "right"))
        sums = (np.array([getattr(one, of) for one in made]) for of in ("total", "count"))
        merged = MergeEdges(*ends, *sums)
        possible = self.k * np.array([one.smaller for one in made])
        height = _estimate_height(merged, possible, is_recommended=False)
        self._record(zip(merged.low, merged.high, height, strict=True), len(self.node))

    def _merge_round(
        self, edges: MergeEdges, is_recommended: bool, fixed: float | None = None
    ) -> IntArray:
        n_nodes = len(self.node)
        smaller = np.minimum(self.size[edges.low], self.size[edges.high])
        strength = edges.total / (self.k * smaller)
        # An edge of linkage 0 is still an edge, so its weight is above 0.
        weight = strength + np.finfo(np.float64).tiny
        ends = edges.low, edges.high
        chosen = np.flatnonzero(find_dominant(*ends, weight, n_nodes, _DOMINANT_SHARE))
        order = chosen[np.argsort(-strength[chosen], kind="stable")]
        height = _estimate_height(edges, self.k * smaller, is_recommended)
        if fixed is not None:
            height[:] = fixed
        ends = edges.low[order], edges.high[order]
        joins = coo_matrix((np.ones(len(order)), ends), (n_nodes, n_nodes))
        n_left, new = connected_components(joins, directed=False)
        kept = self._record(zip(*ends, height[order], strict=True), n_nodes)
        by_position = np.empty(n_left, dtype=np.int64)
        by_position[new[kept]] = kept
        self.node, self.limit = self.node[by_position], self.limit[by_position]
        self.point = self.point[by_position]
        self.size = np.bincount(new, self.size, n_left).astype(np.float64)
        return np.asarray(new, dtype=np.int64)

    def _record(self, merges: Iterator[tuple[int, int, float]], n_nodes: int) -> IntArray:
        """Append merges; gives one present node of each tree that is left."""
        parent = list(range(n_nodes))

        def find(node: int) -> int:
            while parent[node] != node:
                parent[node] = parent[parent[node]]
                node = parent[node]
            return node

        for low, high, height in merges:
            left, right = find(low), find(high)
            if left == right:
                continue
            height = min(float(height), float(self.limit[left]), float(self.limit[right]))
            self.children.append((int(self.node[left]), int(self.node[right])))
            self.height.append(height)
            parent[right] = left
            self.limit[left] = height
            self.node[left] = self.n_points + len(self.height) - 1
        return np.flatnonzero(np.asarray(parent) == np.arange(n_nodes))

    def to_tree(self) -> MergeTree:
        """The merges in the order of falling height, renumbered."""
        height = np.array(self.height, dtype=np.float32)
        children = np.array(self.children, dtype=np.int64).reshape(-1, 2)
        order = np.argsort(-height, kind="stable")  # a merge never comes before those below it
        number = np.arange(self.n_points + len(height))
        number[self.n_points + order] = self.n_points + np.arange(len(height))
        return MergeTree(self.n_points, number[children[order]], height[order])


def _estimate_height(
    edges: MergeEdges, possible: npt.NDArray[np.float64], is_recommended: bool
) -> npt.NDArray[np.float64]:
    """Probability that both ends of each edge are one identity, on its side of 0.5."""
    height = estimate_same(edges.total, edges.count, possible)
    if is_recommended:
        return np.maximum(height, RECOMMENDED)
    return np.minimum(height, np.nextafter(np.float32(RECOMMENDED), np.float32(0)))
