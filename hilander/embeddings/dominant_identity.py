"""A dominant identity: one that has so many of the points that it biases the mean of all.

If one person is on most photos, the mean of all embeddings is close to that person's mean, and two
random photos mostly show that person. Cosines measured against such a mean or such a background are
wrong: they make photos of the person look dissimilar and other people look similar. So the mean and
the background are measured on rows without the dominant identity, or with few of its rows.

`find_dominant_identity` is the one place that detects it. With labels it goes by the number of
points. Without labels the points of a dominant identity have three properties:

1. They are far more similar to each other than the other points are.
2. They are not more similar to the others than the others are to each other. (The middle of a cone
   is.)
3. They form one cloud: nearest neighbours are as far apart as in random points of the same
   covariance. (In several identities of one kind they are nearer.)

Two or three large identities can together pass for one. Leaving them out is right as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, IntArray, exact_unit_rows

_SAMPLE = 4096  # points that are searched for a dominant identity
_COMPARED = 1500  # points whose nearest neighbours are compared; all pairs of them are formed
_LEAST_SHARE = 0.3  # of the points; fewer do not move a median or a mean far
_FEWEST, _FEWEST_OTHERS = 12, 5  # points; fewer do not show the three properties
# Share of the way from the cosine of two other points to 1. Dominant identities of training files
# have .34 to .77, generated ones .22 to .97, the denser half of a set without one .04 to .38.
_LEAST_CONTRAST = 0.3
# Share of that contrast that the cosine between both groups may have: near 0 beside a cluster,
# near .5 along a cone.
_MOST_SHARED = 0.3
# Ratio of nearest-neighbour distances, real to random. Identities of training files have .91 to
# 1.4, generated ones mostly .8 to 1.1; several identities together .2 to .73.
_LEAST_EVENNESS = 0.8
_WHOLE_SET_EVENNESS = 0.97  # the same ratio, from which on no groups at all are visible
_ROUNDING = 1e-6  # length below which a difference of unit rows is rounding
_RANKS = 1, 3  # ranks of the neighbours whose distances are compared

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DominantIdentity:
    """One identity with a large share of the points.

    Parameters
    ----------
    background : ndarray of shape (n_rows,), ascending
        Rows on which the mean and the background of the set are measured. They hold no point of
        the dominant identity, or as few as other identities have. In a large set without labels
        they are a sample.
    """

    background: IntArray


def find_dominant_identity(
    points: npt.NDArray[Any], codes: IntArray | None = None
) -> DominantIdentity | None:
    """Find an identity that has a large share of the points; None if there is none.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), of any number type, also a mapped file
        No row is all zeros.
    codes : ndarray of shape (n_points,), optional
        Identity of each point, from 0 without a gap. Without it the identity is found by the
        cosines of the points.
    """
    rows = _find_by_cosine(points) if codes is None else _find_by_size(codes)
    return None if rows is None else DominantIdentity(rows)


def is_single_identity(points: npt.NDArray[Any], cosine: float, between_cosine: float) -> bool:
    """Whether all points are one identity, which only a reference from outside the set can show.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), of any number type, also a mapped file
        No row is all zeros.
    cosine : float
        Median cosine of two points of the set.
    between_cosine : float
        Cosine between two identities of the same embedder.
    """
    if not _is_compact(cosine, between_cosine):
        return False
    return _measure_evenness(_take_unit_rows(points, _COMPARED)) >= _LEAST_EVENNESS


def has_no_groups(points: npt.NDArray[Any]) -> bool:
    """Whether no groups are visible: the set is one identity, or has one for each point.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), of any number type, also a mapped file
        No row is all zeros.
    """
    return _measure_evenness(_take_unit_rows(points, _COMPARED)) >= _WHOLE_SET_EVENNESS


def _find_by_size(codes: IntArray) -> IntArray | None:
    """Rows with as few points of the dominant identity as others have on average."""
    size = np.bincount(codes)
    dominant = int(size.argmax())
    if len(size) < 2 or size[dominant] < _LEAST_SHARE * len(codes):
        return None
    average = max(1, round((len(codes) - size[dominant]) / (len(size) - 1)))
    if average >= size[dominant]:
        return None
    inside = np.flatnonzero(codes == dominant)
    return np.union1d(inside[_sample(len(inside), average)], np.flatnonzero(codes != dominant))


def _find_by_cosine(points: npt.NDArray[Any]) -> IntArray | None:
    """Rows without dominant identities, found one after another."""
    rows = _sample(len(points), _SAMPLE)
    unit = exact_unit_rows(np.asarray(points[rows], dtype=np.float32))
    left, inside = np.arange(len(rows)), np.arange(0)
    while (dominant := _find_dominant_half(unit[left])) is not None:
        inside, left = left[dominant], left[~dominant]
    if len(left) == len(rows):
        return None
    if _stands_out(unit[left], unit[inside]) and _is_one_cloud(unit[left]):
        # Two identities and no other: both are the background, with equal numbers of points.
        left = np.union1d(inside[_sample(len(inside), len(left))], left)
    return rows[left] if len(left) < len(rows) else None


def _find_dominant_half(unit: Float64Array) -> BoolArray | None:
    """Which of the unit rows are one dominant identity, shape (n_points,); None if none is."""
    if len(unit) < _FEWEST + _FEWEST_OTHERS:
        return None
    to_mean = unit @ unit.mean(axis=0)
    inside = to_mean > _otsu_threshold(to_mean)
    dominant, others = unit[inside], unit[~inside]
    if len(dominant) < max(_FEWEST, _LEAST_SHARE * len(unit)) or len(others) < _FEWEST_OTHERS:
        return None
    return inside if _stands_out(dominant, others) and _is_one_cloud(dominant) else None


def _otsu_threshold(values: Float64Array) -> float:
    """The bound that maximises the variance between the two groups of values (Otsu)."""
    ordered = np.sort(values)
    below = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    gap = sums[-1] * below / len(ordered) - sums[:-1]
    best = int(np.argmax(gap**2 / (below * (len(ordered) - below))))
    return float(ordered[best] + ordered[best + 1]) / 2


def _stands_out(dominant: Float64Array, others: Float64Array) -> bool:
    """Whether unit rows have the first two properties of a dominant identity.

    If the others are one identity, they are similar to each other as well. The cosine between both
    groups is the reference then.
    """
    within, outside = _mean_cosine(dominant), _mean_cosine(others)
    across = float(dominant.mean(axis=0) @ others.mean(axis=0))
    between = min(outside, across)
    is_apart = across - outside <= _MOST_SHARED * (within - between)
    return _is_compact(within, between) and is_apart


def _is_compact(within: float, between: float) -> bool:
    """Whether the cosine within a group is far above the cosine between identities."""
    return within - between >= _LEAST_CONTRAST * (1 - between)


def _is_one_cloud(unit: Float64Array) -> bool:
    """Whether unit rows, shape (n_points, dim), can be one identity."""
    return _measure_evenness(unit) >= _LEAST_EVENNESS


def _measure_evenness(unit: Float64Array) -> float:
    """Nearest-neighbour distance, relative to random points of the same covariance.

    Parameters
    ----------
    unit : ndarray of shape (n_points, dim)
        Rows of unit length.

    Returns
    -------
    evenness : float
        About 1 in one cloud, less where points form groups; 1 for equal points.
    """
    apart = unit[_sample(len(unit), _COMPARED)]
    apart = apart - apart.mean(axis=0)
    apart = apart[np.linalg.norm(apart, axis=1) > _ROUNDING]
    if len(apart) <= max(_RANKS):
        return 1.0
    drawn = np.random.default_rng(0).standard_normal((len(apart), len(apart))) @ apart
    real, cloud = (
        _neighbour_distances(one / np.linalg.norm(one, axis=1)[:, None]) for one in (apart, drawn)
    )
    return float((real / cloud).min()) if cloud.all() else 1.0  # on a line all distances are 0


def _neighbour_distances(unit: Float64Array) -> Float64Array:
    """Median distance to the neighbour of each rank, shape (len(_RANKS),)."""
    distance = 1 - unit @ unit.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.partition(distance, [rank - 1 for rank in _RANKS], axis=1)
    return np.array([np.median(nearest[:, rank - 1]) for rank in _RANKS])


def _mean_cosine(unit: Float64Array) -> float:
    """Mean cosine of two different rows."""
    total = unit.sum(axis=0)
    return float(total @ total - len(unit)) / (len(unit) * (len(unit) - 1))


def _take_unit_rows(points: npt.NDArray[Any], most: int) -> Float64Array:
    """All points, or a random sample of that many, with unit length."""
    return exact_unit_rows(np.asarray(points[_sample(len(points), most)], dtype=np.float32))


def _sample(n_points: int, most: int) -> IntArray:
    """All rows, or a random sample of that many, ascending."""
    if n_points <= most:
        return np.arange(n_points)
    return np.sort(np.random.default_rng(0).choice(n_points, most, replace=False))
