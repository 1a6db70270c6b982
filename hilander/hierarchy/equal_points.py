"""The first level with all points, after clustering the distinct ones.

See `hilander.embeddings.equal_rows` for when equal rows are merged and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from hilander.arrays.reordered import reorder_rows
from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.equal_rows import EqualRows
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.constraints.enforcement import JoinedLevel
from hilander.hierarchy.decoding.parents import Parents
from hilander.hierarchy.levels import LevelStep


def restore_equal_points(
    steps: Iterator[LevelStep], equal: EqualRows | None
) -> Iterator[LevelStep]:
    """Put the repeated points back into the first of the steps.

    Parameters
    ----------
    steps : iterator of LevelStep
        The levels of the distinct points.
    equal : EqualRows or None
        As `merge_equal_rows` returns it. With None the steps pass unchanged.

    Yields
    ------
    step : LevelStep
    """
    for number, step in enumerate(steps):
        yield step if number or equal is None else _restore_points(step, equal)


def _restore_points(step: LevelStep, equal: EqualRows) -> LevelStep:
    """The step with all points: the parent of a repeated point is its first equal, linkage 1."""
    group, first, original = equal.group, equal.first, equal.first_of_row
    is_repeated = equal.is_repeated
    neighbours = first[step.graph.neighbours][group]
    affinity, linkage = step.graph.affinity[group], step.scores.linkage[group]
    for array, nearest in ((neighbours, original[is_repeated]), (affinity, 1), (linkage, 1)):
        array[is_repeated, 1:] = array[is_repeated, :-1]
        array[is_repeated, 0] = nearest
    joined = None if step.joined is None else _restore_joined(step.joined, equal)
    return replace(
        step,
        nodes=start_nodes(_repeat_rows(step.nodes.identity, group)),
        graph=KnnGraph(neighbours, affinity, step.graph.search),
        scores=EdgeScores(linkage, step.scores.density[group]),
        parents=_restore_parents(step.parents, equal),
        labels=step.labels[group],
        peaks=first[step.peaks],
        joined=joined,
    )


def _repeat_rows(features: FloatArray, group: IntArray) -> FloatArray:
    """Rows of all points; those that other processes hold are gathered when they are read."""
    held: Any = features
    if isinstance(held, np.ndarray):
        return features[group]
    return reorder_rows(features, group)


def _restore_parents(parents: Parents, equal: EqualRows) -> Parents:
    group, is_repeated = equal.group, equal.is_repeated
    index = np.where(is_repeated, equal.first_of_row, equal.first[parents.index][group])
    linkage = np.where(is_repeated, np.float32(1), parents.linkage[group])
    return Parents(index, linkage, parents.p_tau)


def _restore_joined(joined: JoinedLevel, equal: EqualRows) -> JoinedLevel:
    group = equal.group
    parents = _restore_parents(joined.parents, equal)
    return JoinedLevel(
        parents, joined.density[group], joined.labels[group], equal.first[joined.peaks]
    )
