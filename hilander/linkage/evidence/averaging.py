"""The average of several networks: the weighted mean of their log-odds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit, logit

from hilander.arrays.rows import FloatArray

# Lowest probability in an average: networks trained on few identities are overconfident.
_LEAST = 0.0025


def average_log_odds(predictions: Sequence[tuple[float, FloatArray]]) -> FloatArray:
    """Average several predictions by the weighted mean of their log-odds.

    Parameters
    ----------
    predictions : sequence of (float, ndarray of shape (n_nodes, k))
        Weights that add up to 1, and probabilities.

    Returns
    -------
    probability : ndarray of shape (n_nodes, k)
    """
    if len(predictions) == 1:
        return predictions[0][1]
    log_odds = sum(weight * logit(np.clip(one, _LEAST, 1 - _LEAST)) for weight, one in predictions)
    return np.asarray(expit(log_odds), dtype=np.float32)
