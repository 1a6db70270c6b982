"""Parts of a cluster: its sub-clusters, and the links that joined them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.run.run_folder import Run
from hilander.hierarchy.decoding.trees import find_roots

# In place of a level: the parts are the subtrees of points that are linked to the peak.
BRANCHES = -1


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a cluster that can be split off.

    Parameters
    ----------
    number : int
        The cluster of the finer level; for a branch, the point at its root.
    rows : ndarray of shape (n_rows,)
    peak : int
        Its densest point.
    linkage : float or None
        Linkage of the link that joined it; None for the part that holds the peak.
    joined_to : int or None
        The part that the link leads to.
    """

    number: int
    rows: IntArray
    peak: int
    linkage: float | None
    joined_to: int | None


def find_parts(grouping: Grouping, group: int, at: int | None = None) -> tuple[int, list[Part]]:
    """Find the parts of a cluster, the largest first.

    Parameters
    ----------
    grouping : Grouping
    group : int
    at : int, optional
        Level of the parts. A part is a cluster of that level, restricted to this cluster.
        `BRANCHES` gives the subtrees of points that are linked to the peak. By default the highest
        level below at which there are several parts.

    Returns
    -------
    at : int
        Level of the parts.
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


def select_part_rows(
    grouping: Grouping, group: int, wanted: list[list[int]], at: int | None = None
) -> list[IntArray]:
    """Return the rows of each list of parts, joined."""
    known = {part.number: part.rows for part in find_parts(grouping, group, at)[1]}
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


def find_subtree_rows(run: Run, level: int, node: int) -> IntArray:
    """Return the points of the subtree below a node of a level, its own points included.

    Parameters
    ----------
    run : Run
    level : int
        Level whose links are followed.
    node : int
        A node of that level: a cluster of the level below, or a point at level 0.
    """
    parent, _ = run.hierarchy.parents(level)
    nested = run.nested
    cluster = nested.cluster_of(level, node)
    nodes = nested.members(0, cluster) if level == 0 else nested.children(level, cluster)
    children: dict[int, list[int]] = {}
    for child, up in zip(nodes.tolist(), parent[nodes].tolist(), strict=True):
        if child != up:
            children.setdefault(up, []).append(child)
    found, pending = [], [node]
    while pending:
        found.append(pending.pop())
        pending.extend(children.get(found[-1], ()))
    if level == 0:
        return np.sort(np.asarray(found, dtype=np.int64))
    return np.sort(np.concatenate([run.nested.members(level - 1, one) for one in found]))


def _link_of(grouping: Grouping, at: int, number: int) -> tuple[float | None, int | None]:
    """Find the link that joined a cluster: its linkage, and the peak that it leads to."""
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
    # Local numbers of the parents. A point whose parent is outside, or the peak, is a root.
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
