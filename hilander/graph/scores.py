"""Scores of a graph: a linkage for each edge and a density for each node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.equal_rows import are_equal
from hilander.errors import GraphError
from hilander.graph.knn_graph import KnnGraph

# Decimals to which densities are compared. Coarser than the rounding of float32 sums, so equal rows
# have equal densities in whatever block of a matrix product they were computed.
DENSITY_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class EdgeScores:
    """Linkage and density of one graph, predicted by a model or from labels.

    Parameters
    ----------
    linkage : ndarray of shape (n_nodes, k), float32, in [0, 1]
        ``p_ij``, the probability that node i and its neighbour j have one identity.
    density : ndarray of shape (n_nodes,), float32, in [-1, 1]
        ``d_i`` (eq. 4).
    """

    linkage: FloatArray
    density: FloatArray

    def __post_init__(self) -> None:
        if self.linkage.ndim != 2 or self.density.shape != self.linkage.shape[:1]:
            raise GraphError(
                "linkage must be (n_nodes, k) and density (n_nodes,), got "
                f"{self.linkage.shape} and {self.density.shape}"
            )

    def settle_ties(self) -> EdgeScores:
        """The same scores with densities rounded, so that ties are exact."""
        return EdgeScores(self.linkage, np.round(self.density, DENSITY_DECIMALS))


def edge_density(affinity: FloatArray, linkage: FloatArray) -> FloatArray:
    """Density of each node, from the edges that leave it (eq. 4).

    A neighbour of the same identity adds its affinity, one of another identity subtracts it:
    ``d_i = mean_j a_ij * (2 p_ij - 1)``.

    Parameters
    ----------
    affinity : ndarray of shape (n_nodes, k)
        Cosine similarity of each edge.
    linkage : ndarray of shape (n_nodes, k)
        Probability that the edge joins one identity; 0 or 1 for ground truth.

    Returns
    -------
    density : ndarray of shape (n_nodes,), in [-1, 1]
    """
    density: FloatArray = (affinity * (2 * linkage - 1)).mean(axis=1, dtype=np.float32)
    return density


def score_by_labels(graph: KnnGraph, labels: IntArray) -> EdgeScores:
    """Ground truth: linkage 1 on edges within an identity, and the density that follows.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    labels : ndarray of shape (n_nodes,)
        Identity of each node.

    Returns
    -------
    scores : EdgeScores
    """
    linkage = (labels[graph.neighbours] == labels[:, None]).astype(np.float32)
    return EdgeScores(linkage, edge_density(graph.affinity, linkage))


def join_equal_rows(graph: KnnGraph, linkage: FloatArray) -> FloatArray:
    """The same linkage, but 1 on edges between equal rows, which are certainly one identity.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    linkage : ndarray of shape (n_nodes, k), float32

    Returns
    -------
    linkage : ndarray of shape (n_nodes, k), float32
    """
    return np.where(are_equal(graph.affinity), np.float32(1), linkage)
