"""An order of the rows in which near neighbours have near places.

Search, scoring and decoding read the rows of neighbours. In a large set whose rows are in random
order almost each of these reads waits for the memory; in this order most of them find the row in
the cache of the processor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import (
    FloatArray,
    IntArray,
    drop_pages,
    read_rows,
    row_blocks,
    sort_by_group,
    unit_rows,
)
from hilander.engines.threads import Workers, open_workers

_GROUP = 50  # rows of a group that are next to each other, about
_ROUNDS = 2  # of k-means on a sample, for the coarse groups
_SAMPLE = 20  # rows of that sample for each coarse group


def find_local_order(points: npt.NDArray[Any], seed: int = 0) -> IntArray:
    """Sort rows by their nearest of some centres, and those of a centre by the nearest of others.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), of any number type, also a mapped file
    seed : int
        Of the centres.

    Returns
    -------
    order : ndarray of shape (n_points,)
        ``points[order]`` is sorted.
    """
    rng = np.random.default_rng([seed, 11])
    n_groups = max(1, min(round((len(points) / _GROUP) ** 0.5), 1 << 12))
    with open_workers() as workers:
        coarse = _assign(points, _learn_centres(points, n_groups, rng), workers)
        order, starts = sort_by_group(coarse, n_groups)

        def sort_group(group: int) -> None:
            members = order[starts[group] : starts[group + 1]]
            rows = _read(points, members)
            chosen = np.random.default_rng([seed, 12, group]).permutation(len(members))[:n_groups]
            order[starts[group] : starts[group + 1]] = members[
                np.argsort(_nearest(rows, unit_rows(rows[chosen])), kind="stable")
            ]

        filled = (group for group in range(n_groups) if starts[group + 1] > starts[group])
        workers.map(sort_group, filled)
    drop_pages(points)
    return order


def _learn_centres(points: npt.NDArray[Any], n_groups: int, rng: np.random.Generator) -> FloatArray:
    """Centres of the coarse groups, by a few rounds of spherical k-means on a sample."""
    size = min(len(points), _SAMPLE * n_groups)
    sample = _read(points, np.sort(rng.choice(len(points), size, replace=False)))
    sample = unit_rows(rng.permutation(sample))
    centres = sample[:n_groups]
    for _ in range(_ROUNDS):
        order, starts = sort_by_group(_nearest(sample, centres), n_groups)
        held = np.diff(starts) > 0
        centres = centres.copy()
        centres[held] = unit_rows(np.add.reduceat(sample[order], starts[:-1][held]))
    return centres


def _assign(points: npt.NDArray[Any], centres: FloatArray, workers: Workers) -> IntArray:
    """Number of the centre nearest to each row."""
    width = max(points.shape[1], len(centres), 64)
    found = workers.map(
        lambda rows: _nearest(read_rows(points, rows), centres), row_blocks(len(points), 16 * width)
    )
    drop_pages(points)
    return np.concatenate(found)


def _nearest(rows: FloatArray, centres: FloatArray) -> npt.NDArray[np.uint16]:
    """Number of the centre of the largest cosine, for rows of any length."""
    nearest: npt.NDArray[np.uint16] = (rows @ centres.T).argmax(axis=1).astype(np.uint16)
    return nearest


def _read(points: npt.NDArray[Any], rows: IntArray) -> FloatArray:
    return np.asarray(points[rows], dtype=np.float32)
