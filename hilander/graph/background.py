"""The background: how alike two random points are, which every cosine is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilander.data.arrays import FloatArray, read_rows, row_blocks
from hilander.data.crowds import leave_crowds_out
from hilander.graph.row_source import RowSource

_ROW_BLOCK = 4_096
_BACKGROUND_PAIRS = 100_000


@dataclass(frozen=True)
class Background:
    """Cosine of two random points: what "not alike" looks like in these data.

    Parameters
    ----------
    centre : float
        Median, which a few large identities do not move.
    """

    centre: float

    def rise(self, cosine: FloatArray) -> FloatArray:
        """How far a cosine stands above the background: 0 at it, 1 for equal points."""
        return (cosine - np.float32(self.centre)) / np.float32(1 - self.centre)


def measure_background(features: FloatArray, seed: int = 0) -> Background:
    """Look at random pairs of points, the same ones in whatever order the points come.

    Of an identity that has most of the points to itself none are taken.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised rows.
    seed : int
    """
    rng = np.random.default_rng(seed)
    # Places in the order by cosine to the mean, not row numbers, which say nothing about a point.
    order = np.argsort(_cosine_to_mean(features))
    if (others := leave_crowds_out(features)) is not None:
        order = order[np.isin(order, others)]
    pairs = rng.integers(len(order), size=(2, _BACKGROUND_PAIRS))
    left, right = order[pairs[:, pairs[0] != pairs[1]]]
    source = RowSource(features)
    cosine = np.concatenate(
        [
            np.einsum("id,id->i", source.take(left[part]), source.take(right[part]))
            for part in (slice(at, at + _ROW_BLOCK) for at in range(0, len(left), _ROW_BLOCK))
        ]
    )
    return Background(min(float(np.median(cosine)), 0.95))


def _cosine_to_mean(features: FloatArray) -> npt.NDArray[np.float64]:
    """Product of every row with the mean row, shape (n_points,)."""
    blocks = list(row_blocks(*features.shape))
    total = np.zeros(features.shape[1])
    for rows in blocks:
        total += read_rows(features, rows).sum(axis=0, dtype=np.float64)
    mean = total / len(features)
    return np.concatenate(
        [np.einsum("id,d->i", read_rows(features, rows), mean) for rows in blocks]
    )
