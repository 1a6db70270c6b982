"""Scores of rules on labelled sets that the network was not trained on.

Both methods choose their settings this way. Each has its own grid and its own choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import CachedScorer, Scorer
from hilander.metrics.scores import bcubed_f, pairwise_f
from hilander.synthetic.episodes import Episode
from hilander.training.clustering import cluster_points


@dataclass(frozen=True, eq=False)
class ValidationSet:
    """A labelled set with its graph, scored once however many rules are tried.

    Parameters
    ----------
    episode : Episode
        Prepared points and their identities.
    graph : KnnGraph
        Of the points.
    score : CachedScorer
    """

    episode: Episode
    graph: KnnGraph
    score: CachedScorer

    @classmethod
    def of(cls, episode: Episode, graph: KnnGraph, score: Scorer) -> ValidationSet:
        """A set whose scores of the points' graph are kept."""
        return cls(episode, graph, CachedScorer(score))


def score_rules(sets: Iterable[ValidationSet], rules: Rules) -> dict[str, float]:
    """Scores of one try: means over the sets, by their weights.

    Parameters
    ----------
    sets : iterable of ValidationSet
    rules : Rules

    Returns
    -------
    scores : dict with keys pairwise_f, bcubed_f and f, each in [0, 1]
        f is the mean of the other two. All are 0 if there are no sets.
    """
    scores, weights = [], []
    for one in sets:
        truth = one.episode.labels
        found = cluster_points(one.episode.features, one.score, rules, one.graph)
        scores.append((pairwise_f(truth, found), bcubed_f(truth, found)))
        weights.append(one.episode.weight)
    means = np.average(scores, axis=0, weights=weights) if scores else (0.0, 0.0)
    pair, bcubed = (float(mean) for mean in means)
    return {"pairwise_f": pair, "bcubed_f": bcubed, "f": (pair + bcubed) / 2}
