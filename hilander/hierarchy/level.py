"""How the nodes of one level of a hierarchy were merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import LevelError
from hilander.hierarchy.levels import LevelStep


@dataclass(frozen=True, eq=False)
class Level:
    """How the nodes of one level were merged.

    Parameters
    ----------
    parent : ndarray of shape (n_nodes,), int64
        Parent of each node, the node itself for a peak.
    linkage : ndarray of shape (n_nodes,), float32
        Probability of the edge to the parent, NaN for a peak.
    density : ndarray of shape (n_nodes,), float32
    labels : ndarray of shape (n_nodes,), int64
        Cluster of each node: a node of the next level.
    peaks : ndarray of shape (n_clusters,), int64
        The node at the top of each cluster.
    stops_early : bool
        Whether early stopping would end at this level.
    """

    parent: IntArray
    linkage: FloatArray
    density: FloatArray
    labels: IntArray
    peaks: IntArray
    stops_early: bool = False

    def __post_init__(self) -> None:
        n_nodes = len(self.parent)
        if not (len(self.linkage) == len(self.density) == len(self.labels) == n_nodes):
            raise LevelError("a level's parent, linkage, density and labels differ in length")
        if not np.array_equal(self.labels[self.peaks], np.arange(len(self.peaks))):
            raise LevelError("a level's peaks do not carry the labels of their clusters")

    @property
    def n_nodes(self) -> int:
        """Number of nodes merged at this level."""
        return len(self.parent)

    @property
    def n_clusters(self) -> int:
        """Number of clusters that come out of it."""
        return len(self.peaks)

    @classmethod
    def of_step(cls, step: LevelStep) -> Level:
        """Keep of a step of the level loop what the hierarchy needs."""
        one = step.joined or step
        density = step.scores.density if step.joined is None else step.joined.density
        index, linkage = one.parents.index, one.parents.linkage
        return cls(index, linkage, density, one.labels, one.peaks, step.stops_early)

    @classmethod
    def of_one_cluster(cls, n_nodes: int) -> Level:
        """All nodes under the first one."""
        linkage = np.ones(n_nodes, dtype=np.float32)
        linkage[0] = np.nan
        zeros = np.zeros(n_nodes, dtype=np.int64)
        return cls(zeros, linkage, zeros.astype(np.float32), zeros, zeros[:1], stops_early=True)

    @classmethod
    def of_single_nodes(cls, n_nodes: int, group: IntArray | None = None) -> Level:
        """Every node by itself, or under the first one of its group, shape (n_nodes,)."""
        nodes, none = np.arange(n_nodes), np.full(n_nodes, np.nan, dtype=np.float32)
        zeros = np.zeros(n_nodes, dtype=np.float32)
        if group is None:
            return cls(nodes, none, zeros, nodes, nodes, True)
        _, peaks, labels = np.unique(group, return_index=True, return_inverse=True)
        parent = peaks[labels]
        linkage = np.where(parent == nodes, np.float32(np.nan), np.float32(1))
        return cls(parent, linkage, zeros, labels, peaks, True)
