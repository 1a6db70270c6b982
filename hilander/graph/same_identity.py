"""Whether two clusters are of one identity, estimated from the links between their points.

Two things speak for it: that the links between the two are probable, and that there are many of
them for the size of the smaller one. Neither depends on the embedder or on the number of points of
the set, so that one formula serves clusters of two points and of thousands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from hilander.graph.edges import logit_of
from hilander.graph.linked_pairs import LinkedPairs

# logit(p) = a * logit(mean linkage of the links) + b * log(coverage) + c. Fitted by logistic
# regression, over merges of five real training sets and three face-like sets, to whether both
# sides have the same majority identity. No rows of that fit are stored.
_LINKAGE_WEIGHT, _COVERAGE_WEIGHT, _OFFSET = 0.85, 1.07, 2.65
# Log-odds of a merge for each unit of the log of the smaller cluster's size: 0 at the second
# number, and no more from the third on.
_SIZE_WEIGHT, _TYPICAL_SIZE, _LARGE_SIZE = 0.6, 15, 30


def estimate_same(
    total: npt.NDArray[np.float64], count: npt.NDArray[np.float64], possible: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Probability that two sides are one identity, from the links between them.

    Parameters
    ----------
    total, count : ndarray of shape (n_pairs,)
        Summed linkage of the links between the two sides, and their number, at least 1.
    possible : ndarray of shape (n_pairs,)
        k times the number of points of the smaller side.

    Returns
    -------
    probability : ndarray of shape (n_pairs,), in [0, 1]
    """
    linkage = logit_of((total / count).astype(np.float32))
    coverage = np.log(count / possible)
    log_odds = _LINKAGE_WEIGHT * linkage + _COVERAGE_WEIGHT * coverage + _OFFSET
    probability: npt.NDArray[np.float64] = expit(log_odds)
    return probability


def estimate_by_links(pairs: LinkedPairs) -> npt.NDArray[np.float64]:
    """The estimate for a merge of each pair of clusters, shape (n_pairs,).

    It is lower for small clusters. Points with likely links were joined when clusters were formed,
    so most small ones are identities of their own, and a few wrong merges of them would give large
    clusters of single points.
    """
    same = estimate_same(pairs.total, pairs.count, pairs.k * pairs.smaller)
    of_size = _SIZE_WEIGHT * np.log(np.minimum(pairs.smaller, _LARGE_SIZE) / _TYPICAL_SIZE)
    estimate: npt.NDArray[np.float64] = expit(logit(same) + of_size)
    return estimate
