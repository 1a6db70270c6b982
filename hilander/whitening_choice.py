"""Whether to whiten: tried on identities, or clusters, that a whitening was not learnt on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.metrics import average_precision_score

from hilander.data.arrays import FloatArray, IntArray, unit_rows
from hilander.data.episodes import Episode, resample_identities
from hilander.data.made_up import FEWEST_SOURCES
from hilander.data.whitening import whiten_within
from hilander.graph import build_knn_graph

RIDGES = (3.0, 1.0, 0.3)
LEAST_GAIN = 0.01  # of average precision, below which whitening is not worth its risk
_MOST_POINTS = 3000


def choose_whitening(
    features: FloatArray,
    labels: IntArray,
    k: int,
    seed: int,
    *,
    ridges: Sequence[float] = RIDGES,
    least_gain: float = LEAST_GAIN,
) -> float | None:
    """The ridge with which whitening helps identities it was not learnt on, or None.

    Half of the identities teach a whitening, the other half judge it: by how well affinity ranks
    the edges of their k-NN graph (average precision), over two halvings.
    """
    identities = np.unique(labels)
    gains = np.zeros(len(ridges))
    for turn in range(2):
        rng = np.random.default_rng([seed, 4, turn])
        taught = np.isin(labels, rng.permutation(identities)[: len(identities) // 2])
        unseen = Episode(features[~taught], labels[~taught])
        unseen = resample_identities(unseen, "all", _MOST_POINTS, rng)
        known = labels[taught]
        if len(np.unique(unseen.labels)) < FEWEST_SOURCES or len(unseen.labels) <= k:
            return None
        if len(np.unique(known)) < FEWEST_SOURCES or np.bincount(known).max() < 3:
            return None
        plain = rank_edges(unseen, k)
        for number, ridge in enumerate(ridges):
            transform = whiten_within(features[taught], known, ridge)
            moved = replace(unseen, features=unit_rows(unseen.features @ transform))
            gains[number] += (rank_edges(moved, k) - plain) / 2
    return ridges[int(gains.argmax())] if gains.max() > least_gain else None


def can_judge_whitening(labels: IntArray) -> bool:
    """Whether there are enough identities for one half to teach a whitening and one to judge."""
    return len(np.unique(labels)) >= 2 * FEWEST_SOURCES


def rank_edges(episode: Episode, k: int) -> float:
    """How well affinity ranks edges within identities before others: average precision."""
    graph = build_knn_graph(episode.features, k)
    same = episode.labels[graph.neighbours] == episode.labels[:, None]
    if same.all() or not same.any():
        return float(same.all())
    return float(average_precision_score(same.ravel(), graph.affinity.ravel()))
