"""Error rates of verification and identification: FNMR at FMR, and FNIR at FPIR.

*Verification* decides whether two points have one identity. A threshold on the cosine that accepts
a share FMR of the pairs of two identities rejects a share FNMR of the pairs of one identity.

*Open-set identification* finds the identity of a probe in a gallery that may not have it. A
threshold that accepts a share FPIR of the probes of unknown identities misses a share FNIR of the
probes of known ones: another gallery point is more similar, or their own is below the threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hilander.arrays.rows import FloatArray, IntArray, row_blocks
from hilander.embeddings.labels import encode_labels
from hilander.errors import LabelError, SettingError

_BINS = 200_000  # of a histogram of cosines over [-1, 1]; the pairs are too many to be kept


@dataclass(frozen=True)
class VerificationScores:
    """Error rates, lower is better.

    Parameters
    ----------
    fnmr : dict of float to float
        False non-match rate at each false match rate.
    fnir : dict of float to float
        False negative identification rate at each false positive identification rate.
    """

    fnmr: dict[float, float]
    fnir: dict[float, float]


def score_verification(
    features: FloatArray,
    labels: ArrayLike,
    *,
    fmr: tuple[float, ...] = (1e-3, 1e-4),
    fpir: tuple[float, ...] = (1e-1, 1e-2),
    seed: int = 0,
) -> VerificationScores:
    """Measure both error rates on labelled embeddings.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), float32
        L2-normalised embeddings.
    labels : array-like of shape (n_points,)
        Their identities.
    fmr, fpir : tuple of float, in (0, 1)
    seed : int
        Of the split into gallery, known probes and unknown probes.

    Returns
    -------
    scores : VerificationScores
    """
    codes = encode_labels(labels, len(features))[0]
    return VerificationScores(
        {rate: fnmr_at(features, codes, rate) for rate in fmr},
        {rate: fnir_at(features, codes, rate, seed) for rate in fpir},
    )


def fnmr_at(features: FloatArray, labels: IntArray, fmr: float) -> float:
    """Share of pairs of one identity that are rejected if a share `fmr` of others is accepted.

    All pairs count. The threshold is the lowest cosine, on a grid of 1e-5, that at most a share
    `fmr` of the pairs of two identities reaches.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised embeddings.
    labels : ndarray of shape (n_points,)
    fmr : float, in (0, 1)

    Returns
    -------
    fnmr : float, in [0, 1]
    """
    _check_rate("fmr", fmr)
    same, different = np.zeros(_BINS, np.int64), np.zeros(_BINS, np.int64)
    for rows in row_blocks(len(features), len(features)):
        cosine = features[rows] @ features.T
        later = np.arange(len(features)) > np.arange(rows.start, rows.stop)[:, None]
        alike = labels[rows, None] == labels
        same += _histogram(cosine[later & alike])
        different += _histogram(cosine[later & ~alike])
    if not same.any() or not different.any():
        raise LabelError(
            f"got {same.sum()} pairs of one identity and {different.sum()} of two, expected both; "
            "give several points of several identities"
        )
    # reached[b]: pairs of two identities in bin b or above, which threshold b accepts
    reached = np.cumsum(different[::-1])[::-1]
    passing = np.flatnonzero(reached <= fmr * different.sum())
    threshold = int(passing[0]) if len(passing) else _BINS
    return float(same[:threshold].sum() / same.sum())


def fnir_at(features: FloatArray, labels: IntArray, fpir: float, seed: int = 0) -> float:
    """Share of known probes that are missed if a share `fpir` of unknown probes is accepted.

    Half of the identities with two points or more are enrolled: one point of each is the gallery,
    their other points are the known probes. All points of other identities are unknown probes. A
    known probe is found if its most similar gallery point has its identity and reaches the
    threshold.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised embeddings.
    labels : ndarray of shape (n_points,)
    fpir : float, in (0, 1)
    seed : int
        Of the enrolled identities and their gallery points.

    Returns
    -------
    fnir : float, in [0, 1]
    """
    _check_rate("fpir", fpir)
    gallery, known, unknown = split_gallery(labels, seed)
    best, nearest = _best_match(features, gallery, known)
    highest, _ = _best_match(features, gallery, unknown)
    allowed = int(np.floor(fpir * len(unknown)))
    # The threshold lies just above the first unknown probe that must be rejected.
    barred = np.sort(highest)[::-1][allowed]
    found = (labels[gallery[nearest]] == labels[known]) & (best > barred)
    return float(1 - found.mean())


def split_gallery(labels: IntArray, seed: int = 0) -> tuple[IntArray, IntArray, IntArray]:
    """Enrol half of the identities that have two points or more.

    Returns
    -------
    gallery, known, unknown : ndarray of rows
        One point of each enrolled identity, their other points, and all other points.
    """
    sizes = np.bincount(labels)
    several = np.flatnonzero(sizes >= 2)
    rng = np.random.default_rng(seed)
    enrolled = np.zeros(len(sizes), dtype=bool)
    enrolled[rng.permutation(several)[: len(several) // 2]] = True
    order = rng.permutation(len(labels))
    inside = order[enrolled[labels[order]]]
    first = np.unique(labels[inside], return_index=True)[1]
    gallery = inside[first]
    known = np.delete(inside, first)
    unknown = np.flatnonzero(~enrolled[labels])
    if not len(gallery) or not len(unknown):
        raise LabelError(
            f"got {len(several)} identities of two points or more, expected at least 2, and other "
            "identities; give more identities"
        )
    return gallery, known, unknown


def _best_match(
    features: FloatArray, gallery: IntArray, probes: IntArray
) -> tuple[FloatArray, IntArray]:
    """Highest cosine of each probe with the gallery, and the place of that gallery point."""
    best = np.empty(len(probes), np.float32)
    nearest = np.empty(len(probes), np.int64)
    for rows in row_blocks(len(probes), len(gallery)):
        cosine = features[probes[rows]] @ features[gallery].T
        nearest[rows] = cosine.argmax(axis=1)
        best[rows] = cosine.max(axis=1)
    return best, nearest


def _histogram(cosine: FloatArray) -> IntArray:
    bins = np.clip(((cosine.astype(np.float64) + 1) / 2 * _BINS).astype(np.int64), 0, _BINS - 1)
    return np.bincount(bins, minlength=_BINS)


def _check_rate(name: str, rate: float) -> None:
    if not 0 < rate < 1:
        raise SettingError(f"{name}={rate!r} is not a share in (0, 1); use for example 0.001")
