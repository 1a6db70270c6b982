"""Clusters as cards, a cluster opened, and the whole tree as an icicle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilander.arrays.rows import BoolArray, IntArray
from hilander.errors import SettingError
from hilander.explorer.api.payloads.paging import (
    describe_cluster,
    describe_items,
    image_address,
    number,
    page_of,
)
from hilander.explorer.partition.grouping import SORTS, Grouping
from hilander.explorer.partition.parts import parts_of
from hilander.explorer.partition.summary import spread_out
from hilander.explorer.run.nested_order import LevelTable
from hilander.explorer.session.explorer import Explorer

STATES = ("all", "named", "unnamed", "junk", "edited", "mixed")
MOST_BARS = 1500
_MOST_SEARCHED = 2000


@dataclass(frozen=True)
class ClusterQuery:
    """Which clusters to list.

    Parameters
    ----------
    sort : {"size", "doubt", "quality", "purity", "number"}
    reverse : bool
    search : str
        A cluster's number, part of its name, or part of a member's id.
    min_size, max_size : int, optional
    state : {"all", "named", "unnamed", "junk", "edited", "mixed"}
    offset, limit : int
    """

    sort: str = "size"
    reverse: bool = False
    search: str = ""
    min_size: int = 1
    max_size: int | None = None
    state: str = "all"
    offset: int = 0
    limit: int = 24


def cluster_list(grouping: Grouping, query: ClusterQuery) -> dict[str, Any]:
    """Give one page of cluster cards."""
    if query.sort not in SORTS:
        raise SettingError(f"sort {query.sort[:20]!r} is unknown; use one of {', '.join(SORTS)}")
    if query.state not in STATES:
        raise SettingError(f"state {query.state[:20]!r} is unknown; use {', '.join(STATES)}")
    ordered = grouping.order(query.sort)
    if query.reverse:
        ordered = ordered[::-1]
    keep = _matching(grouping, query)
    if keep is not None:
        ordered = ordered[keep[ordered]]
    chosen = ordered[query.offset : query.offset + query.limit].tolist()
    cards = [describe_cluster(grouping, group) for group in chosen]
    return page_of(cards, len(ordered), query.offset)


def cluster_detail(grouping: Grouping, group: int) -> dict[str, Any]:
    """Tell one cluster: its card, its place in the tree, and the identities in it if known."""
    grouping.check(group)
    run = grouping.run
    card = describe_cluster(grouping, group)
    card["above"] = None
    if grouping.state is None and grouping.level + 1 < run.n_levels:
        card["above"] = int(run.hierarchy.merges(grouping.level)[group])
    known = run.items.labels
    card["identities"] = None
    if known is not None:
        codes, counts = np.unique(known.codes[grouping.rows_of(group)], return_counts=True)
        best = np.argsort(-counts, kind="stable")[:12]
        card["identities"] = {
            "total": len(codes),
            "commonest": [
                {"label": str(known.names[codes[i]]), "count": int(counts[i])} for i in best
            ],
        }
    card["mean_density"] = number(run.hierarchy.density[grouping.rows_of(group)].mean())
    return card


def cluster_members(grouping: Grouping, group: int, offset: int, limit: int) -> dict[str, Any]:
    """Give one page of a cluster's members, the densest first."""
    members = grouping.members(grouping.check(group))
    chosen = members[offset : offset + limit]
    entries = describe_items(grouping.run, chosen)
    if grouping.level > 0:
        below = grouping.run.nested.tables[grouping.level - 1].labels
        for entry in entries:
            entry["part"] = int(below[entry["row"]])
    return page_of(entries, len(members), offset)


def cluster_parts(
    grouping: Grouping, group: int, at: int | None, offset: int, limit: int
) -> dict[str, Any]:
    """Give the sub-clusters a cluster was made of, with the links that joined them."""
    at, parts = parts_of(grouping, grouping.check(group), at)
    density = grouping.run.hierarchy.density
    entries = []
    for part in parts[offset : offset + limit]:
        rows = part.rows[np.argsort(-density[part.rows], kind="stable")]
        entries.append(
            {
                "part": part.number,
                "level": at,
                "size": len(rows),
                "linkage": None if part.linkage is None else number(part.linkage),
                "joined_to": part.joined_to,
                "peak": part.peak,
                "exemplars": describe_items(grouping.run, spread_out(rows, 10)),
            }
        )
    return page_of(entries, len(parts), offset) | {"level": at}


def nearest_clusters(grouping: Grouping, group: int, limit: int) -> dict[str, Any]:
    """Rank the other clusters that the cluster's edges lead to."""
    grouping.check(group)
    graph = grouping.run.graph
    if graph is None:
        return {"items": [], "reason": "the run kept no graph, so neighbours are not known"}
    found = graph.nearest_clusters(grouping.rows_of(group), grouping.labels, limit)
    entries = []
    for other, linkage, affinity, n_edges in found:
        entry = describe_cluster(grouping, other, exemplars=5)
        entry |= {
            "linkage": number(linkage),
            "affinity": number(affinity),
            "n_edges": n_edges,
        }
        entries.append(entry)
    return {"items": entries, "reason": None}


def icicle(explorer: Explorer, start: int, end: int | None, min_size: int) -> dict[str, Any]:
    """Give the stretches of the tree that are wide enough to be seen.

    Parameters
    ----------
    explorer : Explorer
    start, end : int
        Part of the line of points; everything by default.
    min_size : int
        Narrower clusters are left out and counted.
    """
    run = explorer.run
    last = run.n_points if end is None else min(end, run.n_points)
    if not 0 <= start < last:
        raise SettingError(f"the stretch {start} to {end} is empty; use 0 to {run.n_points}")
    names = explorer.review.state.names
    found = []
    for level in range(run.n_levels - 1, -1, -1):
        table = run.nested.tables[level]
        first = max(int(np.searchsorted(table.places, start, side="right")) - 1, 0)
        stop = int(np.searchsorted(table.places, last, side="left"))
        inside = table.ranked[first:stop]
        wide = inside[table.sizes[inside] >= min_size]
        if len(wide) > MOST_BARS:
            # Never met by the page, which asks for as many as fit; a guard against others.
            wide = wide[np.argsort(-table.sizes[wide], kind="stable")[:MOST_BARS]]
        bars = [
            {
                "cluster": cluster,
                "start": int(table.starts[cluster]),
                "size": int(table.sizes[cluster]),
                "doubt": number(1 - table.weakest[cluster], 3),
                "peak": int(table.peaks[cluster]),
                "image": image_address(run, int(table.peaks[cluster])),
                "name": names.get(cluster) if level == run.n_levels - 1 else None,
            }
            for cluster in wide.tolist()
        ]
        rest = _gather_narrow(table, inside, min_size)
        found.append(
            {"level": level, "bars": bars, "rest": rest, "hidden": len(inside) - len(bars)}
        )
    return {"start": start, "end": last, "n_points": run.n_points, "levels": found}


def _gather_narrow(table: LevelTable, inside: IntArray, min_size: int) -> list[dict[str, Any]]:
    """Put clusters too narrow to be seen together into bars that are wide enough."""
    narrow = table.sizes[inside] < min_size
    if not narrow.any():
        return []
    chosen = inside[narrow]
    starts, sizes = table.starts[chosen], table.sizes[chosen]
    width = max(2 * min_size, 1)
    wide_before = np.cumsum(~narrow)[narrow]  # a bar does not reach across a wide cluster
    new = np.ones(len(chosen), dtype=bool)
    new[1:] = (np.diff(starts // width) > 0) | (np.diff(wide_before) > 0)
    first = np.flatnonzero(new)
    counts = np.diff(np.append(first, len(chosen)))
    total = np.add.reduceat(sizes, first)
    doubt = 1 - np.add.reduceat(table.weakest[chosen], first) / counts
    columns = (starts[first].tolist(), total.tolist(), counts.tolist(), doubt.tolist())
    return [
        {"start": start, "size": size, "count": count, "doubt": number(mean, 3)}
        for start, size, count, mean in zip(*columns, strict=True)
    ][:MOST_BARS]


def _matching(grouping: Grouping, query: ClusterQuery) -> BoolArray | None:
    """Which groups fit the filters; None if there are none."""
    keep = np.ones(grouping.n_groups, dtype=bool)
    if query.min_size > 1:
        keep &= grouping.sizes >= query.min_size
    if query.max_size is not None:
        keep &= grouping.sizes <= query.max_size
    if query.state != "all":
        keep &= _in_state(grouping, query.state)
    if query.search.strip():
        keep &= _found(grouping, query.search.strip())
    return None if keep.all() else keep


def _in_state(grouping: Grouping, state: str) -> BoolArray:
    if state == "mixed":
        purity = grouping.purity
        return grouping.doubt > 0 if purity is None else purity < 1
    chosen = np.zeros(grouping.n_groups, dtype=bool)
    review = grouping.state
    if review is not None:
        sets = {
            "named": review.names, "unnamed": review.names, "junk": review.junk,
            "edited": review.changed,
        }  # fmt: skip
        chosen[_numbers(sets[state])] = True
    return ~chosen if state == "unnamed" else chosen


def _found(grouping: Grouping, text: str) -> BoolArray:
    chosen = np.zeros(grouping.n_groups, dtype=bool)
    digits = text.removeprefix("#")
    if digits.isascii() and digits.isdigit() and int(digits) < grouping.n_groups:
        chosen[int(digits)] = True
    if text.startswith("#"):
        return chosen
    if grouping.state is not None:
        lowered = text.casefold()
        named = [g for g, name in grouping.state.names.items() if lowered in name.casefold()]
        chosen[_numbers(named)] = True
    rows = grouping.run.items.find(text, _MOST_SEARCHED)
    chosen[grouping.labels[np.asarray(rows, dtype=np.int64)]] = True
    return chosen


def _numbers(groups: Any) -> IntArray:
    return np.fromiter(groups, dtype=np.int64, count=len(groups))
