"""Levels of parts of a set, cut out of a hierarchy and joined to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.hierarchy.decoding.trees import label_trees
from hilander.hierarchy.level import Level
from hilander.hierarchy.rules import Rules


@dataclass(frozen=True, eq=False)
class Part:
    """Some points of a set, with the levels that merge them.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,), rising
        Numbers of the points in the whole set.
    levels : sequence of Level
        The nodes of the first are the rows.
    """

    rows: IntArray
    levels: Sequence[Level]


def select_levels(levels: Sequence[Level], chosen: BoolArray) -> list[Level]:
    """The levels of some points that are not merged with others.

    Parameters
    ----------
    levels : sequence of Level
    chosen : ndarray of shape (n_nodes of the first level,), bool
        Whole clusters of the last level.
    """
    found = []
    for level in levels:
        kept = np.zeros(level.n_clusters, dtype=bool)
        kept[level.labels[chosen]] = True
        node, cluster = np.cumsum(chosen) - 1, np.cumsum(kept) - 1
        found.append(
            Level(
                node[level.parent[chosen]],
                level.linkage[chosen],
                level.density[chosen],
                cluster[level.labels[chosen]],
                node[level.peaks[kept]],
                level.stops_early,
            )
        )
        chosen = kept
    return found


def join_levels(parts: Sequence[Part], n_points: int, rules: Rules) -> list[Level]:
    """The levels of a set from those of its parts. A part that has fewer keeps its clusters.

    Parameters
    ----------
    parts : sequence of Part
        Together they have each point of the set once.
    n_points : int
    rules : Rules
        Of the early stop.
    """
    levels: list[Level] = []
    places = [part.rows for part in parts]  # node of the whole for each node of a part
    densities: list[FloatArray] = [np.empty(0, dtype=np.float32) for _ in parts]
    n_nodes, added_before = n_points, None
    n_levels = max(len(part.levels) for part in parts)
    for number in range(n_levels):
        parent = np.arange(n_nodes)
        linkage = np.full(n_nodes, np.nan, dtype=np.float32)
        density = np.zeros(n_nodes, dtype=np.float32)
        for index, (part, place) in enumerate(zip(parts, places, strict=True)):
            if number < len(part.levels):
                level = part.levels[number]
                parent[place], linkage[place] = place[level.parent], level.linkage
                densities[index] = level.density
            density[place] = densities[index]
        labels, peaks = label_trees(parent)
        added = n_nodes - len(peaks)
        if number and number + 1 == n_levels and not added:
            break
        levels.append(
            Level(parent, linkage, density, labels, peaks, rules.is_early_stop(added, added_before))
        )
        for index, (part, place) in enumerate(zip(parts, places, strict=True)):
            if number < len(part.levels):
                level = part.levels[number]
                places[index] = labels[place[level.peaks]]
                densities[index] = densities[index][level.peaks]
            else:
                places[index] = labels[place]
        n_nodes, added_before = len(peaks), added
    return levels
