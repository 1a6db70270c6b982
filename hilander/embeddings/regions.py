"""Regions of a large set: a few random points, each with its nearest neighbours.

A random sample of a million points rarely has two of one identity. A region has all members of the
identities in it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import (
    FloatArray,
    IntArray,
    exact_unit_rows,
    map_row_blocks,
    place_rows,
)
from hilander.engines.threads import open_workers


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
    anchors = _unit(np.asarray(points[np.sort(chosen)], dtype=np.float32))
    nearest = np.zeros((n_regions, 0), dtype=np.int64)
    cosine = np.zeros((n_regions, 0), dtype=np.float32)
    with open_workers(alone=True):  # one thread for each product: the same digits everywhere
        compare = partial(_compare_block, anchors=anchors, size=size)
        for rows, found in map_row_blocks(compare, points, max(points.shape[1], n_regions)):
            cosine = np.concatenate([cosine, found[0]], axis=1)
            nearest = np.concatenate([nearest, found[1] + rows.start], axis=1)
            best = _find_best(cosine, size)
            cosine = np.take_along_axis(cosine, best, axis=1)
            nearest = np.take_along_axis(nearest, best, axis=1)
    return np.unique(place_rows(points, nearest))


def _compare_block(
    block: npt.NDArray[Any], anchors: FloatArray, size: int
) -> tuple[FloatArray, IntArray]:
    """The rows of a block that are most similar to each anchor: cosines and places."""
    found = anchors @ _unit(np.asarray(block, dtype=np.float32)).T
    best = _find_best(found, size)
    return np.take_along_axis(found, best, axis=1), best


def _unit(rows: FloatArray) -> FloatArray:
    return exact_unit_rows(rows).astype(np.float32)


def _find_best(cosine: FloatArray, size: int) -> IntArray:
    """Columns of the `size` largest cosines of each row, in no order."""
    n_columns = cosine.shape[1]
    if n_columns <= size:
        return np.broadcast_to(np.arange(n_columns), cosine.shape)
    return np.argpartition(cosine, n_columns - size, axis=1)[:, n_columns - size :]
