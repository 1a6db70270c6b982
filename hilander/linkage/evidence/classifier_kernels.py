"""The edge classifier as one compiled loop: standardise, all members, mean logit, probability."""

from __future__ import annotations

import math

import numpy as np

from hilander.arrays.compiled import compiled
from hilander.arrays.rows import FloatArray
from hilander.arrays.vector_kernels import LANES, multiply

CHUNK = 2 * LANES  # edges at a time, whose features and layers stay in the first-level cache
# The error function as a quotient of polynomials in z * z, to 4e-7, for |z| up to _ERF_UP_TO.
_ERF_UP_TO = np.float32(3.925)
_P0, _P1, _P2 = (
    np.float32(1.128379143519084),
    np.float32(0.18520832239976145),
    np.float32(0.050955695062380861),
)
_P3, _P4 = np.float32(0.0034082910107109506), np.float32(0.00022905065861350646)
_Q1, _Q2, _Q3 = (
    np.float32(0.49746925110067538),
    np.float32(0.11098505178285362),
    np.float32(0.014070470171167667),
)
_Q4, _Q5, _Q6 = (
    np.float32(0.0010179625278914885),
    np.float32(0.000023547966471313185),
    np.float32(-1.1791602954361697e-7),
)
_ONE, _HALF, _ROOT_HALF = np.float32(1), np.float32(0.5), np.float32(0.5**0.5)


@compiled
def apply_gelu(values: FloatArray) -> None:
    """``v (1 + erf(v / sqrt 2)) / 2`` in place."""
    n_rows, n_columns = values.shape
    for row in range(n_rows):
        for at in range(n_columns):
            value = values[row, at]
            z = value * _ROOT_HALF
            z = _ERF_UP_TO if z > _ERF_UP_TO else z
            z = -_ERF_UP_TO if z < -_ERF_UP_TO else z
            s = z * z
            p = (((_P4 * s + _P3) * s + _P2) * s + _P1) * s + _P0
            q = (((((_Q6 * s + _Q5) * s + _Q4) * s + _Q3) * s + _Q2) * s + _Q1) * s + _ONE
            values[row, at] = _HALF * value * (_ONE + z * p / q)


@compiled
def score_edges(
    columns: FloatArray,
    scaling: FloatArray,
    largest: float,
    first: tuple[FloatArray, FloatArray],
    second: tuple[FloatArray, FloatArray],
    last: tuple[FloatArray, float],
    probability: FloatArray,
) -> None:
    """Probabilities of edges by an ensemble of networks with two hidden layers.

    Parameters
    ----------
    columns : ndarray of shape (width, n_edges)
        Edge features.
    scaling : ndarray of shape (2, width)
        Mean of each feature, and one over its standard deviation.
    largest : float
        Standardised features are clipped to this.
    first, second : (packed weights, biases)
        Of the hidden layers of all members: shapes (members, n_groups, n_in, OUTPUTS) and
        (members, hidden).
    last : (weights, bias)
        Of the output, divided by the number of members: shape (members, hidden), and a number.
    probability : ndarray of shape (n_edges,)
        Written.
    """
    width, n_edges = columns.shape
    members, hidden = first[1].shape
    limit = np.float32(largest)
    x = np.zeros((width, CHUNK), dtype=np.float32)
    one = np.empty((hidden, CHUNK), dtype=np.float32)
    two = np.empty((hidden, CHUNK), dtype=np.float32)
    logit = np.empty(CHUNK, dtype=np.float32)
    for start in range(0, n_edges, CHUNK):
        count = min(CHUNK, n_edges - start)
        for feature in range(width):
            mean, factor = scaling[0, feature], scaling[1, feature]
            given, standard = columns[feature, start : start + count], x[feature]
            for at in range(count):
                value = (given[at] - mean) * factor
                value = limit if value > limit else value
                standard[at] = -limit if value < -limit else value
        logit[:] = last[1]
        for member in range(members):
            multiply(x, first[0][member], first[1][member], one)
            apply_gelu(one)
            multiply(one, second[0][member], second[1][member], two)
            apply_gelu(two)
            for unit in range(hidden):
                weight = last[0][member, unit]
                for at in range(CHUNK):
                    logit[at] += weight * two[unit, at]
        for at in range(count):
            probability[start + at] = _ONE / (_ONE + np.float32(math.exp(-logit[at])))
