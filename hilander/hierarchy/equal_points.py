"""EqualRows set aside: points with equal embeddings are grouped once and stay together.

A photo that was saved twice says nothing that it did not say once. But its copies take the first
places among its nearest, and beside a cosine of 1 all others look small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.equal_rows import EqualRows, find_equal_rows
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.decoding.parents import Parents
from hilander.hierarchy.levels import LevelStep

FEWEST_DISTINCT = 30  # below which so few points are left that all are shown as they are
_LEAST_SHARE = 0.005  # of the points; fewer copies do no harm
_MOST_BYTES = 1 << 30  # of the array of those that differ


def merge_equal_points(
    points: npt.NDArray[Any], *, keep: bool = False
) -> tuple[npt.NDArray[Any], EqualRows | None]:
    """The points that differ, and whose copies the others are; or all points, and None.

    All are shown where that is asked for, where hardly any are copies, and where those that differ
    would take much memory once more.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim), also a mapped file
    keep : bool
    """
    copies = None if keep else _find_many(points)
    if copies is None or len(copies.first) * points[:1].nbytes > _MOST_BYTES:
        return points, None
    return points[copies.first], copies


def drop_equal_points(
    points: FloatArray, labels: IntArray, *, keep: bool = False
) -> tuple[FloatArray, IntArray]:
    """Labelled points without further copies in one identity; all if one would be left alone.

    Parameters
    ----------
    points : ndarray of shape (n_points, dim)
    labels : ndarray of shape (n_points,)
        From 0.
    keep : bool
    """
    copies = None if keep else _find_many(points)
    if copies is None:
        return points, labels
    n_identities = int(labels.max()) + 1
    kept = np.sort(np.unique(copies.group * n_identities + labels, return_index=True)[1])
    before, after = (np.bincount(one, minlength=n_identities) for one in (labels, labels[kept]))
    is_left_alone = (before > 1) & (after == 1)
    return (points, labels) if is_left_alone.any() else (points[kept], labels[kept])


def _find_many(points: npt.NDArray[Any]) -> EqualRows | None:
    """EqualRows, if there are many, and enough that differ."""
    copies = find_equal_rows(points)
    if copies is None or len(copies.first) < FEWEST_DISTINCT:
        return None
    n_copies = len(points) - len(copies.first)
    return copies if n_copies >= _LEAST_SHARE * len(points) else None


def restore_equal_points(
    steps: Iterator[LevelStep], copies: EqualRows | None
) -> Iterator[LevelStep]:
    """The steps of the level loop over points that differ, with their copies at the first."""
    for number, step in enumerate(steps):
        yield step if number or copies is None else spread_step(step, copies)


def spread_step(step: LevelStep, copies: EqualRows) -> LevelStep:
    """The first step with all points: a copy hangs from the point it is a copy of, for certain."""
    group, first = copies.group, copies.first
    is_copy = first[group] != np.arange(len(group))
    neighbours = first[step.graph.neighbours][group]
    affinity, linkage = step.graph.affinity[group], step.scores.linkage[group]
    for array, nearest in ((neighbours, first[group][is_copy]), (affinity, 1), (linkage, 1)):
        array[is_copy, 1:] = array[is_copy, :-1]
        array[is_copy, 0] = nearest
    index = np.where(is_copy, first[group], first[step.parents.index][group])
    certain = np.where(is_copy, np.float32(1), step.parents.linkage[group])
    return replace(
        step,
        nodes=start_nodes(step.nodes.identity[group]),
        graph=KnnGraph(neighbours, affinity, step.graph.search),
        scores=EdgeScores(linkage, step.scores.density[group]),
        parents=Parents(index, certain, step.parents.p_tau),
        labels=step.labels[group],
        peaks=first[step.peaks],
    )
