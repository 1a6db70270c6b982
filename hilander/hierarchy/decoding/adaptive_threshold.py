"""The threshold of a set, adapted to its size distribution.

A threshold that is right for identities of equal size is too low where a few identities are much
larger than the rest: there, one wrong merge adds more wrong pairs than many right merges add right
ones. The sizes are unknown before the points are clustered. A first clustering estimates them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.graph.edges import logit_of
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.decoding.contraction import contract_edges

# Spread (standard deviation of log size) at which the threshold stays as it was chosen.
TYPICAL_SPREAD = 1.05
# Spreads are clipped to this range, which covers all training sets.
_LEAST_SPREAD, _MOST_SPREAD = 0.4, 2.2
# Points of a typical cluster from which on the threshold may fall by its full amount. Clusters of
# one point have equal sizes too, and a lower threshold would join them.
_LARGE_CLUSTER = 8.0
# A cluster of at most this many points is a small fragment if it has a link of more than this
# probability to a larger cluster.
_FRAGMENT_POINTS, _FRAGMENT_LINKAGE = 3, 0.3
# Share of the links above probability 0.5 that a raised threshold must keep.
_KEPT_LINKS = 0.7


class SizeDistribution(NamedTuple):
    """Cluster sizes that a first clustering finds, and how probable its links are.

    Parameters
    ----------
    spread : float
        Standard deviation of the logarithm of the size of a point's cluster, after small fragments
        were reassigned.
    typical : float
        Median size of a point's cluster, before small fragments were reassigned.
    reach : float
        Probability that 70% of the links above 0.5 have at least, in [0, 1]; 1 if there are no
        such links.
    """

    spread: float
    typical: float
    reach: float = 1.0

    @property
    def excess_spread(self) -> float:
        """The spread less the typical one; a negative value is scaled down for small clusters."""
        excess = float(np.clip(self.spread, _LEAST_SPREAD, _MOST_SPREAD)) - TYPICAL_SPREAD
        if excess >= 0:
            return excess
        return excess * min(float(np.log(self.typical) / np.log(_LARGE_CLUSTER)), 1.0)


def measure_sizes(graph: KnnGraph, scores: EdgeScores) -> SizeDistribution:
    """Estimate the size distribution by verified merges at probability 0.5.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph
    """
    labels = contract_edges(graph, logit_of(scores.linkage))
    reassigned = reassign_fragments(labels, graph, scores)
    spread = np.log(np.bincount(reassigned)[reassigned]).std()
    # Points of different identities may have probable links too, so the typical size is measured
    # before fragments are reassigned.
    typical = np.median(np.bincount(labels)[labels])
    probable = scores.linkage[scores.linkage > 0.5]
    reach = np.quantile(probable, 1 - _KEPT_LINKS) if len(probable) else 1.0
    return SizeDistribution(float(spread), float(typical), float(reach))


def reassign_fragments(labels: IntArray, graph: KnnGraph, scores: EdgeScores) -> IntArray:
    """Move points of tiny clusters to the larger cluster of their most probable link.

    Where identities are hard to separate, a threshold of 0.5 leaves a few points of each identity
    alone. Each of them would count as an identity of another size, though all sizes may be equal.
    Most identities of a single point have no probable link.

    Parameters
    ----------
    labels : ndarray of shape (n_nodes,)
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
    """
    size = np.bincount(labels)
    small = np.flatnonzero(size[labels] <= _FRAGMENT_POINTS)
    there = labels[graph.neighbours[small]]
    linkage = np.where(size[there] > _FRAGMENT_POINTS, scores.linkage[small], 0)
    best = linkage.argmax(axis=1)[:, None]
    moves = np.take_along_axis(linkage, best, axis=1)[:, 0] > _FRAGMENT_LINKAGE
    reassigned = labels.copy()
    reassigned[small[moves]] = np.take_along_axis(there, best, axis=1)[moves, 0]
    return reassigned


def adapt_p_tau(p_tau: float, sizes: SizeDistribution, slope: float) -> float:
    """The threshold for a size distribution.

    ``logit(p) = logit(p_tau) + slope * excess_spread``. A raised threshold is limited to `reach`:
    where identities are hard to separate, few links are more probable than that, and a higher
    threshold would leave every point in a cluster of its own.

    Parameters
    ----------
    p_tau : float, in [0, 1]
        The threshold at the typical spread.
    sizes : SizeDistribution
    slope : float
        Log-odds for each unit of spread.

    Returns
    -------
    p_tau : float, in [0, 1]
    """
    if slope == 0 or not 0 < p_tau < 1:
        return p_tau
    odds = p_tau / (1 - p_tau) * np.exp(slope * sizes.excess_spread)
    return float(min(odds / (1 + odds), max(p_tau, sizes.reach)))
