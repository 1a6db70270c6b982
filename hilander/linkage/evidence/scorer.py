"""Scoring graphs by edge features: one network, and its prior model if it has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from hilander.arrays.rows import FloatArray
from hilander.embeddings.equal_rows import are_equal
from hilander.errors import ModelError
from hilander.graph.edges import look_up
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.links import Links
from hilander.graph.nodes import Nodes
from hilander.graph.scores import EdgeScores, edge_density, join_equal_rows
from hilander.learning.device import choose_device
from hilander.linkage.evidence.averaging import average_log_odds
from hilander.linkage.evidence.background import Background, measure_background
from hilander.linkage.evidence.compiled_classifier import CompiledClassifier
from hilander.linkage.evidence.edge_features import EdgeFeatures
from hilander.linkage.evidence.network import EvidenceNetwork


class EvidenceScorer:
    """Scores graphs with an evidence network, for one hierarchy at a time.

    Parameters
    ----------
    network : EvidenceNetwork
    device : str
        "auto" takes a GPU if there is one.
    between_cosine : float, optional
        Cosine between two identities, as for `measure_background`.
    """

    def __init__(
        self, network: EvidenceNetwork, device: str = "auto", between_cosine: float | None = None
    ) -> None:
        self.network, self.device, self.between_cosine = network, device, between_cosine
        self._ensemble: list[tuple[float, EvidenceNetwork]] = []
        self._background: Background | None = None
        self._n_points = 0

    def bind_points(self, features: FloatArray) -> None:
        """Measure the background of the points, and choose the networks for their number."""
        self._n_points = len(features)
        self._ensemble = self.network.ensemble_for(self._n_points)
        self._background = measure_background(features, between_cosine=self.between_cosine)

    def measures(self) -> dict[str, Any]:
        """Background and number of the points that are bound."""
        if self._background is None:
            raise ModelError("the scorer has no points yet; call bind_points(features) first")
        return {"background": self._background.centre, "n_points": self._n_points}

    def bind_measures(self, measures: Mapping[str, Any]) -> None:
        """Score by the background and the networks of an earlier set of points."""
        self._n_points = int(measures["n_points"])
        self._ensemble = self.network.ensemble_for(self._n_points)
        self._background = Background(float(measures["background"]))

    def __call__(self, graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        """Linkage of every edge and density of every node."""
        if self._background is None:
            raise ModelError("the scorer has no points yet; call bind_points(features) first")
        if nodes.links is not None:
            linkage = self._score_links(graph, nodes.links, nodes)
        else:
            linkage = self._classify(graph, EdgeFeatures(graph, nodes, self._background))
        linkage = join_equal_rows(graph, linkage)
        return EdgeScores(linkage, edge_density(graph.affinity, linkage))

    def score_first(
        self, graph: KnnGraph, nodes: Nodes, n_wanted: int, n_around: int
    ) -> EdgeScores:
        """Scores of the first points; of those around, only the first stage is computed."""
        if self._background is None:
            raise ModelError("the scorer has no points yet; call bind_measures(measures) first")
        edge_features = EdgeFeatures(graph, nodes, self._background, n_around)
        linkage = self._classify(graph, edge_features, n_wanted)
        affinity = graph.affinity[:n_wanted]
        linkage = np.where(are_equal(affinity), np.float32(1), linkage)  # as `join_equal_rows`
        return EdgeScores(linkage, edge_density(affinity, linkage))

    def estimate_merges(self, pairs: LinkedPairs) -> FloatArray:
        """Probability that both clusters of each pair are one identity, shape (n_pairs,)."""
        device = choose_device(self.device)
        return average_log_odds(
            [
                (weight, network.to(device).eval().estimate_merges(pairs))
                for weight, network in self._ensemble
            ]
        )

    def compiled_ensemble(self) -> list[tuple[float, CompiledClassifier, CompiledClassifier]]:
        """Weight and classifiers of both stages of each network, for the processor."""
        found = []
        for weight, network in self._ensemble:
            first, second = network.cpu().classifiers()
            found.append((weight, first.compiled(), second.compiled()))
        return found

    def _score_links(self, graph: KnnGraph, links: Links, nodes: Nodes) -> FloatArray:
        """The estimate for each edge between super-nodes, shape (n_nodes, k); 0 without links."""
        pairs = LinkedPairs.of_links(links, nodes.size)
        if not len(pairs):
            return np.zeros(graph.affinity.shape, dtype=np.float32)
        same = csr_matrix((self.estimate_merges(pairs), (pairs.low, pairs.high)), links.count.shape)
        return look_up(csr_matrix(same + same.T), graph)

    def _classify(
        self, graph: KnnGraph, edge_features: EdgeFeatures, n_wanted: int | None = None
    ) -> FloatArray:
        """Linkage of the edges of points, the mean of all networks, shape (n_wanted, k)."""
        device = choose_device(self.device)
        return average_log_odds(
            [
                (weight, network.to(device).eval().predict(graph, edge_features, n_wanted))
                for weight, network in self._ensemble
            ]
        )
