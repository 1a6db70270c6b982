"""Summaries of clusters: a histogram of sizes, and members that show a cluster."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from hilander.arrays.rows import IntArray


def choose_exemplars(members: IntArray, count: int) -> IntArray:
    """Choose members evenly from the densest to the least dense, so that outliers are shown too.

    Parameters
    ----------
    members : ndarray of shape (n_members,)
        Sorted by falling density.
    count : int
        Number of members to choose at most.
    """
    if len(members) <= count:
        return members
    return members[np.linspace(0, len(members) - 1, count).astype(np.int64)]


def count_sizes(sizes: IntArray) -> list[dict[str, int]]:
    """Count clusters by size in bins 1, 2 to 3, 4 to 7 and so on.

    Parameters
    ----------
    sizes : ndarray of shape (n_clusters,)
        All at least 1.

    Returns
    -------
    bins : list of dict
        ``low``, ``high``, ``clusters`` (number of clusters) and ``points`` (number of members).
    """
    bins = np.floor(np.log2(sizes)).astype(np.int64)
    counts = np.bincount(bins)
    points = np.bincount(bins, weights=sizes).astype(np.int64)
    return [
        {"low": 1 << place, "high": (2 << place) - 1, "clusters": count, "points": total}
        for place, (count, total) in enumerate(zip(counts.tolist(), points.tolist(), strict=True))
    ]


def show_share(value: float) -> str:
    """Write a number of [0, 1] as the page of the explorer does: two digits, half rounded up.

    The page gets four digits and rounds the binary number nearest to them.
    """
    return str(Decimal(round(float(value), 4)).quantize(Decimal("0.01"), ROUND_HALF_UP))
