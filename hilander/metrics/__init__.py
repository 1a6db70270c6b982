"""Metrics of clusterings: scores, reports, reliability and plots.

Plots are in :mod:`hilander.metrics.plots`, which needs matplotlib only once it draws.
"""

from hilander.metrics.dendrogram import dendrogram_purity
from hilander.metrics.examples import largest_clusters, worst_mistakes
from hilander.metrics.report import Scores, format_scores, score_clustering, score_levels
from hilander.metrics.scores import (
    PrecisionRecall,
    ari,
    bcubed_f,
    bcubed_scores,
    n_clusters,
    nmi,
    pairwise_f,
    pairwise_scores,
    pure_share,
    purity,
)

__all__ = [
    "PrecisionRecall",
    "Scores",
    "ari",
    "bcubed_f",
    "bcubed_scores",
    "dendrogram_purity",
    "format_scores",
    "largest_clusters",
    "n_clusters",
    "nmi",
    "pairwise_f",
    "pairwise_scores",
    "pure_share",
    "purity",
    "score_clustering",
    "score_levels",
    "worst_mistakes",
]
