"""Scorers of edges: what the level loop asks at each level.

A trained network is one, and the ground truth is another. So the paper's training hierarchy and its
inference are one loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.nodes import Nodes
from hilander.graph.same_identity import estimate_by_links
from hilander.graph.scores import EdgeScores, score_by_labels


class Scorer(Protocol):
    """Scores the edges of one hierarchy at a time."""

    def bind_points(self, features: FloatArray) -> None:
        """Take note of the points of a hierarchy, before its first level is scored.

        Parameters
        ----------
        features : ndarray of shape (n_points, dim)
        """

    def __call__(self, graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        """Linkage of every edge and density of every node."""

    def estimate_merges(self, pairs: LinkedPairs) -> npt.NDArray[Any]:
        """Probability that both clusters of each pair are one identity, shape (n_pairs,).

        It is asked for at levels of super-nodes with links.
        """


class MeasuringScorer(Scorer, Protocol):
    """A scorer that can score some rows of a set by the measures of the whole set."""

    def measures(self) -> dict[str, Any]:
        """Measures of the points that are bound, as plain values for JSON."""

    def bind_measures(self, measures: Mapping[str, Any]) -> None:
        """Use the measures of an earlier set of points, in place of `bind_points`."""

    def score_first(
        self, graph: KnnGraph, nodes: Nodes, n_wanted: int, n_around: int
    ) -> EdgeScores:
        """Scores of the first points of a part of a graph, the same as those of all its points.

        Parameters
        ----------
        graph : KnnGraph of n_nodes nodes
        nodes : Nodes of the same length
        n_wanted : int
            Points whose edges are scored; they come first.
        n_around : int
            These points, and after them all that have an edge to or from them.
        """


class LabelScorer:
    """Ground truth: a node has the identity of its peak's point.

    Parameters
    ----------
    labels : ndarray of shape (n_points,)
        Identity of each point.
    as_released : bool
        Score as the released training code does: density from labels, linkage from similarity
        alone. With `p_tau` 0 and strict rules it links each node to its most similar denser
        neighbour of positive cosine, whatever the identities.
    """

    def __init__(self, labels: IntArray, *, as_released: bool = False) -> None:
        self.labels, self.as_released = labels, as_released

    def bind_points(self, features: FloatArray) -> None:
        """Do nothing: the scores follow from the labels."""

    def __call__(self, graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        """Linkage 1 within an identity and 0 between two, and the density that follows."""
        truth = score_by_labels(graph, self.labels[nodes.point])
        if not self.as_released:
            return truth
        return EdgeScores(np.maximum(graph.affinity, 0), truth.density)

    def estimate_merges(self, pairs: LinkedPairs) -> npt.NDArray[Any]:
        """The estimate from the true links."""
        return estimate_by_links(pairs)


class CachedScorer:
    """A scorer that scores the first graph it is given only once.

    Trying many thresholds starts from the same graph every time; only later levels differ.

    Parameters
    ----------
    score : Scorer
    """

    def __init__(self, score: Scorer) -> None:
        self.score = score
        self._points: FloatArray | None = None
        self._first: tuple[KnnGraph, EdgeScores] | None = None

    def bind_points(self, features: FloatArray) -> None:
        """Bind the points, unless they are bound already."""
        if self._points is not features:
            self.score.bind_points(features)
            self._points = features

    def __call__(self, graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        """Scores of the graph; those of the first one are kept."""
        if self._first is None:
            self._first = graph, self.score(graph, nodes)
        return self._first[1] if graph is self._first[0] else self.score(graph, nodes)

    def estimate_merges(self, pairs: LinkedPairs) -> npt.NDArray[Any]:
        """The estimate of the scorer."""
        return self.score.estimate_merges(pairs)
