"""Greedy agglomeration with a veto: the strongest edge merges first, unless its ends are apart."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.hierarchy.constraints.constraints import Constraints


@dataclass(frozen=True)
class Merge:
    """One merge of an agglomeration.

    Parameters
    ----------
    left, right : int
        The two nodes, each named by one of the nodes that merged into it; the new one is `left`.
    total, count : float
        Summed linkage of the edges between the two, and their number.
    smaller : float
        Size of the smaller of the two.
    """

    left: int
    right: int
    total: float
    count: float
    smaller: float


class Agglomeration:
    """Nodes that merge along edges, the strongest first, never against the constraints.

    The strength of an edge is the summed linkage between its ends, divided by the size of the
    smaller end. Of edges of equal strength, the one of the lowest nodes merges first.

    Parameters
    ----------
    constraints : Constraints
        Its n_nodes components are the nodes.
    size : ndarray of shape (n_nodes,)
    """

    def __init__(self, constraints: Constraints, size: npt.NDArray[np.float64]) -> None:
        apart = constraints.apart
        starts, groups = apart.indptr.tolist(), apart.indices.tolist()
        self.size: list[float] = size.tolist()
        self.known: list[int] = constraints.known.tolist()
        self.groups = [set(groups[a:b]) for a, b in itertools.pairwise(starts)]
        self.edges: list[dict[int, list[float]]] = [{} for _ in self.size]
        self.parent = list(range(len(self.size)))

    def add_edges(
        self, left: IntArray, right: IntArray, total: npt.ArrayLike, count: npt.ArrayLike
    ) -> None:
        """Add edges; parallel ones add up.

        Parameters
        ----------
        left, right : ndarray of shape (n_edges,)
        total, count : array-like of shape (n_edges,)
            Summed linkage of each, and number of edges that it stands for.
        """
        sums, counts = np.asarray(total).tolist(), np.asarray(count).tolist()
        for a, b, weight, number in zip(left.tolist(), right.tolist(), sums, counts, strict=True):
            if a != b:
                self._add(a, b, weight, number)

    def merge(self) -> Iterator[Merge]:
        """Merge until no edge is left that may; gives the merges in order."""
        heap = [
            (-self._strength(a, b), a, b)
            for a, near in enumerate(self.edges)
            for b in near
            if a < b
        ]
        heapq.heapify(heap)
        while heap:
            negative, a, b = heapq.heappop(heap)
            if self.parent[a] != a or self.parent[b] != b or b not in self.edges[a]:
                continue
            strength = self._strength(a, b)
            if strength < -negative:  # an end has grown since
                heapq.heappush(heap, (-strength, a, b))
                continue
            if strength > -negative:  # it is in the heap again, with this strength
                continue
            total, count = self.edges[a][b]
            if self._are_apart(a, b):
                del self.edges[a][b], self.edges[b][a]
                continue
            smaller = min(self.size[a], self.size[b])
            yield Merge(*self._unite(a, b, heap), total, count, smaller)

    def labels(self) -> IntArray:
        """A node of its cluster for each node, shape (n_nodes,)."""
        return np.array([self._find(node) for node in range(len(self.parent))], dtype=np.int64)

    def _unite(self, a: int, b: int, heap: list[tuple[float, int, int]]) -> tuple[int, int]:
        left, right = (a, b) if len(self.edges[a]) >= len(self.edges[b]) else (b, a)
        self.parent[right] = left
        self.size[left] += self.size[right]
        self.known[left] = max(self.known[left], self.known[right])
        if len(self.groups[left]) < len(self.groups[right]):
            self.groups[left], self.groups[right] = self.groups[right], self.groups[left]
        self.groups[left] |= self.groups[right]
        moved, self.edges[right] = self.edges[right], {}
        for other, (total, count) in moved.items():
            del self.edges[other][right]
            if other != left:
                self._add(left, other, total, count)
                low, high = min(left, other), max(left, other)
                heapq.heappush(heap, (-self._strength(low, high), low, high))
        return left, right

    def _add(self, a: int, b: int, total: float, count: float) -> None:
        held = self.edges[a].get(b)
        if held is None:
            held = [0.0, 0.0]
            self.edges[a][b] = self.edges[b][a] = held
        held[0] += total
        held[1] += count

    def _strength(self, a: int, b: int) -> float:
        return self.edges[a][b][0] / min(self.size[a], self.size[b])

    def _are_apart(self, a: int, b: int) -> bool:
        if self.known[a] >= 0 and self.known[b] >= 0 and self.known[a] != self.known[b]:
            return True
        return not self.groups[a].isdisjoint(self.groups[b])

    def _find(self, node: int) -> int:
        while self.parent[node] != node:
            self.parent[node] = self.parent[self.parent[node]]
            node = self.parent[node]
        return node
