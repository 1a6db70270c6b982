"""The background: the median cosine of two random points, by which cosines are rescaled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.row_source import open_rows
from hilander.arrays.rows import FloatArray, IntArray, is_remote, map_row_blocks, sort_by_group
from hilander.embeddings.dominant_identity import (
    DominantIdentity,
    find_dominant_identity,
    is_single_identity,
)

_ROW_BLOCK = 4_096  # pairs of rows at a time, to bound the memory
_PAIRS = 100_000  # random pairs of points whose cosines are measured
_HIGHEST = 0.95  # cosine; a higher background would leave no range to rescale
_FEWEST_IDENTITIES = 8  # identities needed to measure the cosine between two of them


@dataclass(frozen=True)
class Background:
    """Median cosine of two random points of a set.

    Parameters
    ----------
    centre : float
        The median, which a few large identities hardly change.
    """

    centre: float

    def rescale(self, cosine: FloatArray) -> FloatArray:
        """``(c - centre) / (1 - centre)``: 0 at the background, 1 for equal points."""
        return (cosine - np.float32(self.centre)) / np.float32(1 - self.centre)


def measure_background(
    features: FloatArray, seed: int = 0, *, between_cosine: float | None = None
) -> Background:
    """Measure the background on random pairs; the result does not depend on the order of points.

    Points of a dominant identity are left out. With more than 4,096 points, the points that
    remain are then a sample, which does depend on the order.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised rows.
    seed : int
    between_cosine : float, optional
        Cosine between two identities of this embedder, as `measure_between_cosine` gives it. It is
        the background of a set in which one identity has most or all points.
    """
    dominant = find_dominant_identity(features)
    centre = _typical_cosine(features, dominant, seed)
    if between_cosine is not None and (
        dominant is not None or is_single_identity(features, centre, between_cosine)
    ):
        centre = between_cosine
    return Background(min(centre, _HIGHEST))


def measure_between_cosine(features: FloatArray, labels: IntArray) -> float | None:
    """Median cosine between points of two random identities; None with fewer than 8 identities.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised rows.
    labels : ndarray of shape (n_points,)
    """
    codes = np.unique(labels, return_inverse=True)[1]
    members, starts = sort_by_group(codes, int(codes.max()) + 1)
    size = np.diff(starts)
    if len(size) < _FEWEST_IDENTITIES:
        return None
    rng = np.random.default_rng(0)
    pairs = rng.integers(len(size), size=(2, _PAIRS))
    pairs = pairs[:, pairs[0] != pairs[1]]
    left, right = members[starts[pairs] + rng.integers(size[pairs])]
    return float(np.median(_cosines(features, left, right)))


def _typical_cosine(features: FloatArray, dominant: DominantIdentity | None, seed: int) -> float:
    """Median cosine of two random points, without those of a dominant identity."""
    rng = np.random.default_rng(seed)
    # Pairs are drawn from the points sorted by cosine to the mean, not by row: the order of the
    # rows is then of no effect.
    order = np.argsort(_cosine_to_mean(features))
    if dominant is not None:
        order = order[np.isin(order, dominant.background)]
    pairs = rng.integers(len(order), size=(2, _PAIRS))
    left, right = order[pairs[:, pairs[0] != pairs[1]]]
    return float(np.median(_cosines(features, left, right)))


def _cosines(features: FloatArray, left: IntArray, right: IntArray) -> FloatArray:
    """Cosine of each pair of rows, shape (n_pairs,)."""
    source = open_rows(features)
    blocks = (slice(at, at + _ROW_BLOCK) for at in range(0, len(left), _ROW_BLOCK))
    return np.concatenate(
        [np.einsum("id,id->i", source.take(left[b]), source.take(right[b])) for b in blocks]
    )


def _cosine_to_mean(features: FloatArray) -> npt.NDArray[np.float64]:
    """Dot product of every row with the mean row, shape (n_points,)."""
    if is_remote(features):
        total = features.total  # type: ignore[attr-defined]
    else:
        total = np.zeros(features.shape[1])
        for _, part in map_row_blocks(_sum_rows, features, features.shape[1]):
            total += part
    along = partial(_dot_rows, vector=total / len(features))
    found = [part for _, part in map_row_blocks(along, features, features.shape[1])]
    return np.concatenate(found)


def _sum_rows(block: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    total: npt.NDArray[np.float64] = np.asarray(block, np.float32).sum(axis=0, dtype=np.float64)
    return total


def _dot_rows(block: npt.NDArray[Any], vector: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    product: npt.NDArray[np.float64] = np.einsum("id,d->i", np.asarray(block, np.float32), vector)
    return product
