"""A crowd: one identity with so many of the points that it passes for what all have in common.

Where one person is on most of the photos, the mean of all embeddings is hers, and so are two
random ones. What is measured against these finds her pictures hardly alike, and takes strangers
for relatives. So the common direction and the background are those of the others.

A crowd shows in three ways. Its points are far more alike than the others are; they are not more
like the others than those are like each other, as the middle of a cone would be; and nothing tells
them apart: the nearest of them are not nearer than in a cloud of the same spread, as they would be
if they were many identities of one kind. (Two or three large identities may pass for one; they are
left out as rightly.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, IntArray, exact_unit_rows

_SAMPLE = 4096
_COMPARED = 1500  # points of a crowd whose nearest are looked at
_LEAST_SHARE = 0.3  # of the points; fewer do not move a median or a mean far
_FEWEST, _FEWEST_OTHERS = 12, 5
# Of the way from the cosine of two others to 1. Identities of train files that are crowds have .34
# to .77, generated ones .22 to .97, the denser half of a usual set .04 to .38.
_LEAST_RISE = 0.3
# Of the rise, what a pair of both kinds may have: near 0 beside a cluster, near .5 along a cone.
_MOST_SHARED = 0.3
# Distance to the nearest, beside that in the cloud. In identities of train files it is .91 to 1.4,
# in generated ones mostly .8 to 1.1; where several identities are together .2 to .73.
_LEAST_EVEN = 0.8
_ALL_EVEN = 0.97  # from which on nothing at all parts the points
_ROUNDING = 1e-6  # of a unit row
_NEAREST = 1, 3  # ranks at which that is looked at

Numbers = npt.NDArray[np.float64]


def exclude_dominant_identity(points: npt.NDArray[Any]) -> IntArray | None:
    """Rows of the points, or of a sample, that are of no crowd; None where there is no crowd.

    Beside a single other identity, as many of the crowd as of that are left.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), of any number type, also a mapped file
        No row is all zeros.

    Returns
    -------
    rows : ndarray of shape (n_rows,), ascending, or None
    """
    rows = _sample(len(points), _SAMPLE)
    unit = exact_unit_rows(np.asarray(points[rows], dtype=np.float32))
    left, inside = np.arange(len(rows)), np.arange(0)
    while (dominant := find_dominant_identity(unit[left])) is not None:
        inside, left = left[dominant], left[~dominant]
    if len(left) == len(rows):
        return None
    if stands_out(unit[left], unit[inside]) and is_one_cloud(unit[left]):
        # Two identities alone are each other's background: as many of the one as of the other.
        left = np.union1d(inside[_sample(len(inside), len(left))], left)
    return rows[left] if len(left) < len(rows) else None


def subsample_dominant_identity(codes: IntArray) -> IntArray | None:
    """Rows with as few of a labelled crowd as others have on average; None without a crowd.

    Parameters
    ----------
    codes : ndarray of shape (n_points,)
        Identity of each point, from 0 without a gap.
    """
    size = np.bincount(codes)
    dominant = int(size.argmax())
    if len(size) < 2 or size[dominant] < _LEAST_SHARE * len(codes):
        return None
    usual = max(1, round((len(codes) - size[dominant]) / (len(size) - 1)))
    if usual >= size[dominant]:
        return None
    inside = np.flatnonzero(codes == dominant)
    return np.union1d(inside[_sample(len(inside), usual)], np.flatnonzero(codes != dominant))


def is_single_identity(points: npt.NDArray[Any], cosine: float, between_cosine: float) -> bool:
    """Whether a set is one identity altogether, for those who know how alike strangers are.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), of any number type, also a mapped file
        No row is all zeros.
    cosine, strangers : float
        That of two usual points of the set, and that of two identities of the same embedder.
    """
    if cosine - between_cosine < _LEAST_RISE * (1 - between_cosine):
        return False
    return is_one_cloud(_take(points, _COMPARED))


def find_dominant_identity(unit: Numbers) -> BoolArray | None:
    """Which points are the crowd, shape (n_points,); None where there is none.

    Parameters
    ----------
    unit : ndarray of shape (n_points, dim)
        Rows of unit length.
    """
    if len(unit) < _FEWEST + _FEWEST_OTHERS:
        return None
    to_mean = unit @ unit.mean(axis=0)
    inside = to_mean > split_in_two(to_mean)
    dominant, others = unit[inside], unit[~inside]
    if len(dominant) < max(_FEWEST, _LEAST_SHARE * len(unit)) or len(others) < _FEWEST_OTHERS:
        return None
    return inside if stands_out(dominant, others) and is_one_cloud(dominant) else None


def split_in_two(values: Numbers) -> float:
    """The bound at which two groups of values differ most from each other (Otsu's)."""
    ordered = np.sort(values)
    below = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    gap = sums[-1] * below / len(ordered) - sums[:-1]
    best = int(np.argmax(gap**2 / (below * (len(ordered) - below))))
    return float(ordered[best] + ordered[best + 1]) / 2


def stands_out(dominant: Numbers, others: Numbers) -> bool:
    """Whether points are far more alike than others are, and no more like those than they are.

    Others who are one identity are alike, too; then a pair of both kinds is what is not.
    """
    within, outside = _mean_cosine(dominant), _mean_cosine(others)
    across = float(dominant.mean(axis=0) @ others.mean(axis=0))
    strange = min(outside, across)
    rise = within - strange
    return rise >= _LEAST_RISE * (1 - strange) and across - outside <= _MOST_SHARED * rise


def is_one_cloud(points: Numbers) -> bool:
    """Whether points of unit length, shape (n_points, dim), may well be of one identity."""
    return measure_evenness(points) >= _LEAST_EVEN


def is_all_one_cloud(points: npt.NDArray[Any]) -> bool:
    """Whether nothing parts a set into groups: one identity, or as many as there are points.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), of any number type, also a mapped file
        No row is all zeros.
    """
    return measure_evenness(_take(points, _COMPARED)) >= _ALL_EVEN


def measure_evenness(points: Numbers) -> float:
    """How far the nearest are, beside those of points drawn at random with the same spread.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim)
        Rows of unit length.

    Returns
    -------
    evenness : float
        About 1 in a cloud, less where points stand in groups; 1 for equal points.
    """
    apart = points[_sample(len(points), _COMPARED)]
    apart = apart - apart.mean(axis=0)
    apart = apart[np.linalg.norm(apart, axis=1) > _ROUNDING]
    if len(apart) <= max(_NEAREST):
        return 1.0
    drawn = np.random.default_rng(0).standard_normal((len(apart), len(apart))) @ apart
    real, cloud = (_distances(one / np.linalg.norm(one, axis=1)[:, None]) for one in (apart, drawn))
    return float((real / cloud).min()) if cloud.all() else 1.0  # on a line nothing is apart


def _distances(unit: Numbers) -> Numbers:
    """Usual distance to the nearest of each rank, shape (len(_NEAREST),)."""
    distance = 1 - unit @ unit.T
    np.fill_diagonal(distance, np.inf)
    nearest = np.partition(distance, [rank - 1 for rank in _NEAREST], axis=1)
    return np.array([np.median(nearest[:, rank - 1]) for rank in _NEAREST])


def _mean_cosine(unit: Numbers) -> float:
    """Mean cosine of two different rows."""
    total = unit.sum(axis=0)
    return float(total @ total - len(unit)) / (len(unit) * (len(unit) - 1))


def _take(points: npt.NDArray[Any], most: int) -> Numbers:
    """All points, or so many drawn at random, of unit length."""
    return exact_unit_rows(np.asarray(points[_sample(len(points), most)], dtype=np.float32))


def _sample(n_points: int, most: int) -> IntArray:
    """All rows, or so many drawn at random, ascending."""
    if n_points <= most:
        return np.arange(n_points)
    return np.sort(np.random.default_rng(0).choice(n_points, most, replace=False))
