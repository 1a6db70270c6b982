"""What a cluster is made of: its sub-clusters, and the links that joined them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.run.run_folder import Run
from hilander.hierarchy.decoding.trees import find_roots

BRANCHES = -1


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of a cluster that can be taken out.

    Parameters
    ----------
    number : int
        The cluster of a finer level; or the point that hangs from the peak.
    rows : ndarray of shape (n_rows,)
    peak : int
        Row that stands for it.
    linkage : float or None
        Of the link that attached it, None for the piece that the others hang from.
    joined_to : int or None
        The piece it was attached to.
    """

    number: int
    rows: IntArray
    peak: int
    linkage: float | None
    joined_to: int | None


def parts_of(grouping: Grouping, group: int, at: int | None = None) -> tuple[int, list[Part]]:
    """Give the pieces of a cluster, the largest first.

    Parameters
    ----------
    grouping : Grouping
    group : int
    at : int, optional
        The level whose clusters the pieces are, as far as their points are in this cluster;
        `BRANCHES` for what hangs from the peak point by point. By default the level below, or the
        next one down at which there are several.

    Returns
    -------
    at : int
        The level of the pieces.
    parts : list of Part
    """
    rows = grouping.rows_of(group)
    if at is None:
        at = grouping.level - 1
        while at >= 0 and _all_same(grouping.run.nested.tables[at].labels[rows]):
            at -= 1
    if not BRANCHES <= at < grouping.level:
        raise SettingError(f"a cluster of level {grouping.level} has no parts of level {at}")
    if at == BRANCHES:
        return at, _branches(grouping.run, rows, int(grouping.peaks[group]))
    table = grouping.run.nested.tables[at]
    nodes = table.labels[rows]
    order = np.argsort(nodes, kind="stable")
    numbers, starts = np.unique(nodes[order], return_index=True)
    inside = set(numbers.tolist())
    parts = []
    for number, members in zip(
        numbers.tolist(), np.split(rows[order], starts[1:].tolist()), strict=True
    ):
        peak = int(table.peaks[number])
        if grouping.labels[peak] != group:
            peak = int(members[np.argmax(grouping.run.hierarchy.density[members])])
        linkage, target = _link_of(grouping, at, number)
        joined = None if target is None else int(table.labels[target])
        parts.append(Part(number, members, peak, linkage, joined if joined in inside else None))
    return at, sorted(parts, key=lambda part: (-len(part.rows), part.number))


def rows_of_parts(
    grouping: Grouping, group: int, wanted: list[list[int]], at: int | None = None
) -> list[IntArray]:
    """Give the rows of each list of pieces."""
    known = {part.number: part.rows for part in parts_of(grouping, group, at)[1]}
    found = []
    for numbers in wanted:
        missing = [number for number in numbers if number not in known]
        if missing or not numbers:
            raise SettingError(
                f"cluster {group} has no part {missing[0] if missing else '(none given)'}; "
                "reload the page"
            )
        found.append(np.concatenate([known[number] for number in dict.fromkeys(numbers)]))
    return found


def rows_under(run: Run, level: int, node: int) -> IntArray:
    """Give the points that hang from a node of a level, its own included.

    Parameters
    ----------
    run : Run
    level : int
        The level whose links are followed.
    node : int
        A node of that level: a cluster of the level below, or a point at level 0.
    """
    parent, _ = run.hierarchy.parents(level)
    cluster = int(run.hierarchy.levels[level].labels[node])
    nested = run.nested
    nodes = nested.members(0, cluster) if level == 0 else nested.children(level, cluster)
    children: dict[int, list[int]] = {}
    for child, up in zip(nodes.tolist(), parent[nodes].tolist(), strict=True):
        if child != up:
            children.setdefault(up, []).append(child)
    found, waiting = [], [node]
    while waiting:
        found.append(waiting.pop())
        waiting.extend(children.get(found[-1], ()))
    if level == 0:
        return np.sort(np.asarray(found, dtype=np.int64))
    return np.sort(np.concatenate([run.nested.members(level - 1, one) for one in found]))


def _link_of(grouping: Grouping, at: int, number: int) -> tuple[float | None, int | None]:
    """Climb to the link that attached a cluster: its linkage and the point it leads to."""
    run, node = grouping.run, number
    for level in range(at + 1, grouping.level + 1):
        here = run.hierarchy.levels[level]
        up = int(here.parent[node])
        if up != node:
            return float(here.linkage[node]), int(run.nested.tables[level - 1].peaks[up])
        node = int(here.labels[node])
    return None, None


def _all_same(labels: IntArray) -> bool:
    return bool((labels == labels[0]).all())


def _branches(run: Run, rows: IntArray, peak: int) -> list[Part]:
    parent, linkage = run.hierarchy.parents(0)
    rows = np.sort(rows)
    # Local numbers of the parents; who hangs from outside, or from the peak, is a branch's root.
    up = parent[rows]
    place = np.searchsorted(rows, up)
    place = np.minimum(place, len(rows) - 1)
    inside = (rows[place] == up) & (up != peak)
    local = np.where(inside, place, np.arange(len(rows)))
    roots = find_roots(local)
    order = np.argsort(roots, kind="stable")
    numbers, starts = np.unique(roots[order], return_index=True)
    parts = []
    for root, members in zip(
        numbers.tolist(), np.split(rows[order], starts[1:].tolist()), strict=True
    ):
        number = int(rows[root])
        linked = not np.isnan(linkage[number])
        parts.append(
            Part(
                number,
                members,
                number,
                float(linkage[number]) if linked else None,
                peak if linked and parent[number] == peak else None,
            )
        )
    return sorted(parts, key=lambda part: (-len(part.rows), part.number))
