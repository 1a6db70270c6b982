"""Summaries of clusters: a histogram of sizes, and members that show a cluster."""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import IntArray


def spread_out(members: IntArray, count: int) -> IntArray:
    """Choose members from the peak to the least dense, evenly, so that odd ones are seen too."""
    if len(members) <= count:
        return members
    return members[np.linspace(0, len(members) - 1, count).astype(np.int64)]


def size_histogram(sizes: IntArray) -> list[dict[str, int]]:
    """Count clusters by size in doubling bins: 1, 2-3, 4-7 and so on."""
    bins = np.floor(np.log2(sizes)).astype(np.int64)
    counts = np.bincount(bins)
    points = np.bincount(bins, weights=sizes).astype(np.int64)
    return [
        {"low": 1 << place, "high": (2 << place) - 1, "clusters": count, "points": total}
        for place, (count, total) in enumerate(zip(counts.tolist(), points.tolist(), strict=True))
    ]
