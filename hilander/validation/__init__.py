"""Cluster validity: metrics, reports and plots.

Plots are in :mod:`hilander.validation.plots`, which needs matplotlib only once it draws.
"""

from hilander.validation.examples import largest_clusters, worst_mistakes
from hilander.validation.metrics import (
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
from hilander.validation.report import Scores, format_scores, score_clustering, score_levels

__all__ = [
    "PrecisionRecall",
    "Scores",
    "ari",
    "bcubed_f",
    "bcubed_scores",
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
