"""The paper's decoder: one parent for each node, the node itself for a peak (eqs. 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores


@dataclass(frozen=True, eq=False)
class Parents:
    """One parent for each node; a peak is its own.

    Parameters
    ----------
    index : ndarray of shape (n_nodes,), int64
        The parent of each node, the node itself for a peak.
    linkage : ndarray of shape (n_nodes,), float32
        Probability of the edge to the parent, NaN for a peak.
    p_tau : float
        Threshold that the parents were chosen with.
    """

    index: IntArray
    linkage: FloatArray
    p_tau: float

    @property
    def n_edges(self) -> int:
        """Number of nodes whose parent is another node."""
        return int((self.index != np.arange(len(self.index))).sum())


def choose_parents(
    graph: KnnGraph, scores: EdgeScores, p_tau: float, *, strict: bool = False
) -> Parents:
    """Link each node to the most probable of its neighbours that are at least as dense.

    Candidates of i are neighbours j with ``d_i <= d_j`` and ``p_ij >= p_tau``. Of two nodes of
    equal density the one with the lower index counts as denser: the order is total, so parents
    never form a cycle. Of candidates of equal linkage, the one listed first is taken.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph
    p_tau : float
        Least linkage of a candidate.
    strict : bool
        The released code's rule: ``d_i < d_j`` and ``p_ij > p_tau``.

    Returns
    -------
    parents : Parents of n_nodes nodes
    """
    nodes = np.arange(graph.n_nodes)
    if strict:
        denser = scores.density[graph.neighbours] > scores.density[:, None]
        candidate = denser & (scores.linkage > p_tau)
    else:
        candidate = is_denser(graph, scores.density) & (scores.linkage >= p_tau)

    best = np.where(candidate, scores.linkage, -np.inf).argmax(axis=1)
    has_parent = candidate[nodes, best]
    index = np.where(has_parent, graph.neighbours[nodes, best], nodes)
    linkage = np.where(has_parent, scores.linkage[nodes, best], np.float32(np.nan))
    return Parents(index, linkage.astype(np.float32), p_tau)


def is_denser(graph: KnnGraph, density: FloatArray) -> BoolArray:
    """Whether each neighbour is denser than the node, shape (n_nodes, k).

    Of two nodes of equal density the one with the lower index counts as denser.
    """
    own, other = density[:, None], density[graph.neighbours]
    denser: BoolArray = (other > own) | (
        (other == own) & (graph.neighbours < np.arange(graph.n_nodes)[:, None])
    )
    return denser
