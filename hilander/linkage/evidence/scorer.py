"""Scoring graphs by evidence: a network is asked about each edge, and its adviser if it has one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit, logit

from hilander.arrays.rows import FloatArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import Nodes
from hilander.graph.scores import EdgeScores, edge_density, join_copies
from hilander.learning.device import choose_device
from hilander.linkage.evidence.background import Background, measure_background
from hilander.linkage.evidence.edge_features import EdgeEvidence
from hilander.linkage.evidence.network import EvidenceNetwork

_LEAST = 0.0025  # a probability below which none is believed: few identities make overconfident


class EvidencePredictor:
    """Scores graphs with an evidence network.

    The background is measured when the points themselves are scored and kept for the levels that
    follow, as are the networks for so many points; so one predictor scores one hierarchy at a time.

    Parameters
    ----------
    network : EvidenceNetwork
    device : str
        "auto" takes a GPU if there is one.
    strangers : float, optional
        Cosine of two identities, as for `measure_background`.
    """

    def __init__(
        self, network: EvidenceNetwork, device: str = "auto", strangers: float | None = None
    ) -> None:
        self.network, self.device, self.strangers = network, device, strangers
        self._asked = [(1.0, network)]
        self._background: Background | None = None

    def begin(self, features: FloatArray) -> Background:
        """See the points of a hierarchy: how many there are, and what their background is."""
        self._asked = self.network.asked_for(len(features))
        self._background = measure_background(features, strangers=self.strangers)
        return self._background

    def __call__(self, graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        """Linkage of every edge and density of every node."""
        super_nodes = nodes.links is not None
        background = self._background
        if not super_nodes or background is None:
            background = self.begin(nodes.identity)
        opinions, shown = [], {}
        for weight, network in self._asked:
            beside_others = super_nodes and network.settings.beside_others
            if beside_others not in shown:  # of points all networks see the same
                shown[beside_others] = EdgeEvidence(
                    graph, nodes, background, beside_others=beside_others
                )
            ready = network.to(choose_device(self.device)).eval()
            opinions.append((weight, ready.judge_blocks(graph, shown[beside_others])))
        linkage = join_copies(graph, weigh_opinions(opinions))
        return EdgeScores(linkage, edge_density(graph.affinity, linkage))


def weigh_opinions(opinions: Sequence[tuple[float, FloatArray]]) -> FloatArray:
    """Probabilities whose log-odds are the weighted mean of several ones'.

    Parameters
    ----------
    opinions : sequence of (float, ndarray of shape (n_nodes, k))
        Weights that add up to 1, and probabilities.

    Returns
    -------
    probability : ndarray of shape (n_nodes, k)
    """
    if len(opinions) == 1:
        return opinions[0][1]
    log_odds = sum(weight * logit(np.clip(one, _LEAST, 1 - _LEAST)) for weight, one in opinions)
    return np.asarray(expit(log_odds), dtype=np.float32)
