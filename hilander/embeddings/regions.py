"""Regions of a large set: a few random points, each with its nearest neighbours.

A random sample of a million points rarely has two of one identity. A region has all members of the
identities in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray, drop_pages, exact_unit_rows, read_rows, row_blocks


def take_regions(
    points: npt.NDArray[Any], n_regions: int, size: int, seed: int = 0
) -> npt.NDArray[np.int64]:
    """Rows of a few points chosen at random, and of their nearest neighbours.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), of any number type, also a mapped file
        No row is all zeros.
    n_regions : int
    size : int
        Points of a region. If the regions could hold all points, all are taken.
    seed : int

    Returns
    -------
    rows : ndarray of shape (n_taken,), ascending, each once
    """
    if len(points) <= n_regions * size:
        return np.arange(len(points))
    chosen = np.random.default_rng([seed, 5]).choice(len(points), n_regions, replace=False)
    anchors = exact_unit_rows(np.asarray(points[np.sort(chosen)], dtype=np.float32))
    nearest = np.zeros((n_regions, 0), dtype=np.int64)
    cosine = np.zeros((n_regions, 0))
    for rows in row_blocks(*points.shape):
        found = anchors @ exact_unit_rows(read_rows(points, rows)).T
        drop_pages(points)
        cosine = np.concatenate([cosine, found], axis=1)
        numbers = np.broadcast_to(np.arange(rows.start, rows.stop), found.shape)
        nearest = np.concatenate([nearest, numbers], axis=1)
        nearest, cosine = _keep_best(nearest, cosine, size)
    return np.unique(nearest)


def _keep_best(
    nearest: IntArray, cosine: npt.NDArray[np.float64], size: int
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The `size` nearest of each region."""
    if nearest.shape[1] <= size:
        return nearest, cosine
    best = np.argpartition(-cosine, size - 1, axis=1)[:, :size]
    return np.take_along_axis(nearest, best, axis=1), np.take_along_axis(cosine, best, axis=1)
