"""Scores of rules on labelled sets, as both methods use them."""

from dataclasses import replace

import numpy as np
import pytest

from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.knn.search import build_knn_graph
from hilander.metrics.scores import bcubed_f, pairwise_f
from hilander.synthetic.episodes import Episode
from hilander.training.clustering import cluster_points
from hilander.training.validation import ValidationSet, score_rules

RULES = Rules(k=4)


class CountingScorer(LabelScorer):
    """Ground truth of noisy labels that counts how often it is called for the points."""

    calls = 0

    def __call__(self, graph, nodes):
        self.calls += graph.n_nodes == len(self.labels)
        return super().__call__(graph, nodes)


@pytest.fixture
def sets(labelled):
    X, y = labelled
    rng = np.random.default_rng(0)
    found = []
    for share, weight in ((0.1, 1.0), (0.4, 3.0)):
        noisy = np.where(rng.random(len(y)) < share, rng.integers(20, size=len(y)), y)
        score = CountingScorer(noisy)
        found.append(ValidationSet.of(Episode(X, y, weight), build_knn_graph(X, 4), score))
    return found


def test_scores_are_weighted_means_over_the_sets(sets):
    scores = score_rules(sets, RULES)
    for name, metric in (("pairwise_f", pairwise_f), ("bcubed_f", bcubed_f)):
        single = [
            metric(one.episode.labels, cluster_points(one.episode.features, one.score.score, RULES))
            for one in sets
        ]
        assert single[0] > single[1]
        assert scores[name] == pytest.approx(np.average(single, weights=[1, 3]))
    assert scores["f"] == (scores["pairwise_f"] + scores["bcubed_f"]) / 2


def test_the_graph_of_the_points_is_scored_once_for_all_tries(sets):
    tries = [score_rules(sets, replace(RULES, p_tau=p_tau)) for p_tau in (0.5, 0.9, 0.5)]
    assert tries[0] == tries[2]
    assert [one.score.score.calls for one in sets] == [1, 1]


def test_without_sets_every_score_is_0():
    assert score_rules([], RULES) == {"pairwise_f": 0.0, "bcubed_f": 0.0, "f": 0.0}
