"""Scorers for tests of the level loop."""

import numpy as np

from hilander.graph.same_identity import estimate_by_links
from hilander.graph.scores import EdgeScores, edge_density


class FunctionScorer:
    """A function (graph, nodes) -> EdgeScores as a scorer that needs nothing of the points."""

    def __init__(self, function):
        self.function = function

    def bind_points(self, features):
        pass

    def __call__(self, graph, nodes):
        return self.function(graph, nodes)

    def estimate_merges(self, pairs):
        return estimate_by_links(pairs)


@FunctionScorer
def score_by_affinity(graph, nodes):
    """The more similar, the more probable."""
    linkage = np.clip(graph.affinity, 0, 1).astype(np.float32)
    return EdgeScores(linkage, edge_density(graph.affinity, linkage))
