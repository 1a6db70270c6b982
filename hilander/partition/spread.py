"""How unlike the sizes of clusters are, and the threshold that suits it.

A threshold that is right for identities of one size is too low where a few are far larger than the
rest: there, one wrong merge takes in more pairs than many right ones. The sizes are not known
before the points are clustered, but a plain first clustering shows how much they spread.
"""

from __future__ import annotations

import numpy as np

from hilander.graph import EdgeScores, KnnGraph
from hilander.graph.edges import logit_of
from hilander.partition.contraction import contract_edges

USUAL_SPREAD = 1.2
# A spread beyond those of any training set says no more.
_LEAST, _MOST = 0.4, 2.2


def measure_spread(graph: KnnGraph, scores: EdgeScores) -> float:
    """Standard deviation of the logarithm of the size of a point's cluster.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph
        The clusters are those of verified merges at even odds.

    Returns
    -------
    spread : float, 0 for clusters of one size
    """
    labels = contract_edges(graph, logit_of(scores.linkage))
    return float(np.log(np.bincount(labels)[labels]).std())


def suit_p_tau(p_tau: float, spread: float, rise: float) -> float:
    """The threshold for sizes that spread so much.

    Parameters
    ----------
    p_tau : float, in [0, 1]
        What suits a usual spread.
    spread : float
    rise : float
        Log-odds for each unit of spread.

    Returns
    -------
    p_tau : float, in [0, 1]
    """
    if rise == 0 or not 0 < p_tau < 1:
        return p_tau
    odds = p_tau / (1 - p_tau) * np.exp(rise * (np.clip(spread, _LEAST, _MOST) - USUAL_SPREAD))
    return float(odds / (1 + odds))
