"""The nodes of a level: points or super-nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.links import Links


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of one level. Each represents a set of points.

    Parameters
    ----------
    identity : ndarray of shape (n_nodes, dim), float32
        Feature of each node's peak, of unit length. Those of points may be float16 or a mapped
        file; code that gathers them converts to float32.
    total : ndarray of shape (n_nodes, dim), float32
        Sum of the features of each node's points. With sums instead of means, merging two nodes is
        an addition.
    size : ndarray of shape (n_nodes,), int64
        Number of points of each node.
    point : ndarray of shape (n_nodes,), int64
        Row of the point that is each node's peak.
    links : Links, optional
        For super-nodes: the edges of the points that cross between them.
    """

    identity: FloatArray
    total: FloatArray
    size: IntArray
    point: IntArray
    links: Links | None = None

    def __len__(self) -> int:
        return len(self.identity)

    @property
    def average(self) -> FloatArray:
        """Mean feature of each node's points, shape (n_nodes, dim), at most of unit length."""
        return np.divide(self.total, self.size[:, None], dtype=np.float32)


def start_nodes(features: FloatArray) -> Nodes:
    """Make each point a node of its own.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised embeddings.
    """
    n_points = len(features)
    return Nodes(features, features, np.ones(n_points, dtype=np.int64), np.arange(n_points))
