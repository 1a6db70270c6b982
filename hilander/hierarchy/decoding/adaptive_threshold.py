"""How large and how unlike in size clusters are, and the threshold that suits it.

A threshold that is right for identities of one size is too low where a few are far larger than the
rest: there, one wrong merge takes in more pairs than many right ones. The sizes are not known
before the points are clustered, but a plain first clustering shows how much they spread, once the
few points that it left alone are counted with those they belong to. How far links reach bounds how
far the threshold may rise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.graph.edges import logit_of
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.decoding.contraction import contract_edges

TYPICAL_SPREAD = 1.05
# A spread beyond those of any training set says no more.
_LEAST, _MOST = 0.4, 2.2
# Sets of one size ask for a lower threshold if it is one of so many points. Single points are of
# one size too, and strangers: a lower threshold would join them.
_LARGE = 8.0
# Clusters of up to so many points are strays if a link as likely as this leads to a larger one.
_SMALL, _LIKELY = 3, 0.3
# The threshold rises no further than leaves this share of the links above even odds.
_KEPT = 0.7


class SizeDistribution(NamedTuple):
    """What a first clustering shows of the sizes, and its scores of the links.

    Parameters
    ----------
    spread : float
        Standard deviation of the logarithm of the size of a point's cluster, strays at home.
    usual : float
        Median size of a point's cluster, strays alone.
    reach : float
        Linkage that most of the links above even odds have, in [0, 1]; 1 if there are none.
    """

    spread: float
    usual: float
    reach: float = 1.0

    @property
    def excess_spread(self) -> float:
        """How much more the sizes spread than usual; less than 0 only where clusters are large."""
        beyond = float(np.clip(self.spread, _LEAST, _MOST)) - TYPICAL_SPREAD
        if beyond >= 0:
            return beyond
        return beyond * min(float(np.log(self.usual) / np.log(_LARGE)), 1.0)


def measure_sizes(graph: KnnGraph, scores: EdgeScores) -> SizeDistribution:
    """Sizes as verified merges at even odds find them, strays at home, and how far links reach.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph
    """
    labels = contract_edges(graph, logit_of(scores.linkage))
    reassigned = reassign_fragments(labels, graph, scores)
    spread = np.log(np.bincount(reassigned)[reassigned]).std()
    # Strangers, too, may have likely links: whether clusters are large is said before they go home.
    usual = np.median(np.bincount(labels)[labels])
    likely = scores.linkage[scores.linkage > 0.5]
    reach = np.quantile(likely, 1 - _KEPT) if len(likely) else 1.0
    return SizeDistribution(float(spread), float(usual), float(reach))


def reassign_fragments(labels: IntArray, graph: KnnGraph, scores: EdgeScores) -> IntArray:
    """The same clusters, with points of tiny ones in the larger one they are likeliest linked to.

    Where identities are hard to tell apart, even odds leave a few points of each alone. Beside a
    large identity each of them looks like one of another size, though sizes may be even. Most
    points that are of no other's identity have no likely link.

    Parameters
    ----------
    labels : ndarray of shape (n_nodes,)
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph
    """
    size = np.bincount(labels)
    small = np.flatnonzero(size[labels] <= _SMALL)
    there = labels[graph.neighbours[small]]
    linkage = np.where(size[there] > _SMALL, scores.linkage[small], 0)
    likeliest = linkage.argmax(axis=1)[:, None]
    likely = np.take_along_axis(linkage, likeliest, axis=1)[:, 0] > _LIKELY
    reassigned = labels.copy()
    reassigned[small[likely]] = np.take_along_axis(there, likeliest, axis=1)[likely, 0]
    return reassigned


def adapt_p_tau(p_tau: float, found: SizeDistribution, slope: float) -> float:
    """The threshold for such sizes, as far as links reach it.

    Where identities are hard to tell apart, few links are as sure as large ones beside single
    points ask for; a threshold above most of them would leave every point alone.

    Parameters
    ----------
    p_tau : float, in [0, 1]
        What suits a usual spread.
    found : FoundSizes
    rise : float
        Log-odds for each unit of spread.

    Returns
    -------
    p_tau : float, in [0, 1]
    """
    if slope == 0 or not 0 < p_tau < 1:
        return p_tau
    odds = p_tau / (1 - p_tau) * np.exp(slope * found.excess_spread)
    return float(min(odds / (1 + odds), max(p_tau, found.reach)))
