"""Cluster cards, one cluster in detail, and the hierarchy as an icicle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilander.arrays.rows import BoolArray, IntArray
from hilander.errors import SettingError
from hilander.explorer.api.payloads.paging import (
    describe_card,
    describe_items,
    image_url,
    round_number,
    wrap_page,
)
from hilander.explorer.partition.grouping import SORTS, Grouping
from hilander.explorer.partition.parts import find_parts
from hilander.explorer.partition.summary import choose_exemplars
from hilander.explorer.run.nested_order import LevelTable
from hilander.explorer.session.explorer import Explorer

STATES = ("all", "named", "unnamed", "junk", "edited", "mixed")
# Bars of one level: more than the pixels of a wide screen allow.
MOST_BARS = 1500
# Members whose ids match a search: their clusters fill many pages.
_MOST_SEARCHED = 2000
# Identities that a cluster's description lists.
_MOST_IDENTITIES = 12
# Exemplars of a part and of a near cluster: one row of the page.
_PART_EXEMPLARS, _NEAR_EXEMPLARS = 10, 5


@dataclass(frozen=True)
class ClusterQuery:
    """Filter, order and page of a list of clusters.

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


def list_clusters(grouping: Grouping, query: ClusterQuery) -> dict[str, Any]:
    """Return one page of cluster cards."""
    if query.sort not in SORTS:
        raise SettingError(f"sort {query.sort[:20]!r} is unknown; use one of {', '.join(SORTS)}")
    if query.state not in STATES:
        raise SettingError(f"state {query.state[:20]!r} is unknown; use {', '.join(STATES)}")
    ordered = grouping.order(query.sort)
    if query.reverse:
        ordered = ordered[::-1]
    keep = _match_filters(grouping, query)
    if keep is not None:
        ordered = ordered[keep[ordered]]
    chosen = ordered[query.offset : query.offset + query.limit].tolist()
    cards = [describe_card(grouping, group) for group in chosen]
    return wrap_page(cards, len(ordered), query.offset)


def describe_cluster(grouping: Grouping, group: int) -> dict[str, Any]:
    """Describe one cluster: its card, the cluster above it, and its identities if known."""
    grouping.check(group)
    run = grouping.run
    card = describe_card(grouping, group)
    card["above"] = None
    if grouping.state is None and grouping.level + 1 < run.n_levels:
        card["above"] = run.nested.cluster_of(grouping.level + 1, group)
    known = run.items.labels
    card["identities"] = None
    if known is not None:
        codes, counts = np.unique(known.codes[grouping.rows_of(group)], return_counts=True)
        best = np.argsort(-counts, kind="stable")[:_MOST_IDENTITIES]
        card["identities"] = {
            "total": len(codes),
            "commonest": [
                {"label": str(known.names[codes[i]]), "count": int(counts[i])} for i in best
            ],
        }
    card["mean_density"] = round_number(run.hierarchy.density[grouping.rows_of(group)].mean())
    return card


def list_members(
    grouping: Grouping, group: int, offset: int, limit: int, sort: str = ""
) -> dict[str, Any]:
    """Return one page of a cluster's members.

    Parameters
    ----------
    grouping : Grouping
    group : int
    offset, limit : int
    sort : {"", "confidence"}
        The peak and then by falling density, or by rising confidence.
    """
    if sort not in ("", "confidence"):
        raise SettingError(f"sort {sort[:20]!r} is unknown; use confidence or none")
    members = grouping.members(grouping.check(group))
    if sort == "confidence":
        confidence = grouping.run.hierarchy.confidence[members]
        members = members[np.argsort(confidence, kind="stable")]
    chosen = members[offset : offset + limit]
    entries = describe_items(grouping.run, chosen)
    if grouping.level > 0:
        below = grouping.run.nested.tables[grouping.level - 1].labels
        for entry in entries:
            entry["part"] = int(below[entry["row"]])
    return wrap_page(entries, len(members), offset)


def list_parts(
    grouping: Grouping, group: int, at: int | None, offset: int, limit: int
) -> dict[str, Any]:
    """Return one page of a cluster's parts, with the links that joined them."""
    at, parts = find_parts(grouping, grouping.check(group), at)
    density = grouping.run.hierarchy.density
    entries = []
    for part in parts[offset : offset + limit]:
        rows = part.rows[np.argsort(-density[part.rows], kind="stable")]
        entries.append(
            {
                "part": part.number,
                "level": at,
                "size": len(rows),
                "linkage": None if part.linkage is None else round_number(part.linkage),
                "joined_to": part.joined_to,
                "peak": part.peak,
                "exemplars": describe_items(grouping.run, choose_exemplars(rows, _PART_EXEMPLARS)),
            }
        )
    return wrap_page(entries, len(parts), offset) | {"level": at}


def list_nearest(grouping: Grouping, group: int, limit: int) -> dict[str, Any]:
    """Rank the other clusters by the linkage of the edges that lead to them."""
    grouping.check(group)
    graph = grouping.run.graph
    if graph is None:
        return {"items": [], "reason": "the run has no graph, so neighbours are not known"}
    found = graph.nearest_clusters(grouping.rows_of(group), grouping.labels, limit)
    entries = []
    for other, linkage, affinity, n_edges in found:
        entry = describe_card(grouping, other, exemplars=_NEAR_EXEMPLARS)
        entry |= {
            "linkage": round_number(linkage),
            "affinity": round_number(affinity),
            "n_edges": n_edges,
        }
        entries.append(entry)
    return {"items": entries, "reason": None}


def build_icicle(explorer: Explorer, start: int, end: int | None, min_size: int) -> dict[str, Any]:
    """Return the bars of the icicle that are wide enough to be seen.

    Parameters
    ----------
    explorer : Explorer
    start, end : int
        Range of the nested order of points; all points by default.
    min_size : int
        Smaller clusters are combined into common bars and counted.
    """
    run = explorer.run
    last = run.n_points if end is None else min(end, run.n_points)
    if not 0 <= start < last:
        raise SettingError(f"the range {start} to {end} is empty; use 0 to {run.n_points}")
    names = explorer.review.state.names
    found = []
    for level in range(run.n_levels - 1, -1, -1):
        table = run.nested.tables[level]
        first = max(int(np.searchsorted(table.places, start, side="right")) - 1, 0)
        stop = int(np.searchsorted(table.places, last, side="left"))
        inside = table.ranked[first:stop]
        wide = inside[table.sizes[inside] >= min_size]
        if len(wide) > MOST_BARS:
            # The page never requests more than fit; this limits other clients.
            wide = wide[np.argsort(-table.sizes[wide], kind="stable")[:MOST_BARS]]
        bars = [
            {
                "cluster": cluster,
                "start": int(table.starts[cluster]),
                "size": int(table.sizes[cluster]),
                "weakest": round_number(table.weakest[cluster]),
                "peak": int(table.peaks[cluster]),
                "image": image_url(run, int(table.peaks[cluster])),
                "name": names.get(cluster) if level == run.n_levels - 1 else None,
            }
            for cluster in wide.tolist()
        ]
        rest = _group_narrow(table, inside, min_size)
        found.append(
            {"level": level, "bars": bars, "rest": rest, "hidden": len(inside) - len(bars)}
        )
    return {"start": start, "end": last, "n_points": run.n_points, "levels": found}


def _group_narrow(table: LevelTable, inside: IntArray, min_size: int) -> list[dict[str, Any]]:
    """Combine clusters that are too narrow to be seen into wider bars."""
    narrow = table.sizes[inside] < min_size
    if not narrow.any():
        return []
    chosen = inside[narrow]
    starts, sizes = table.starts[chosen], table.sizes[chosen]
    width = max(2 * min_size, 1)
    wide_before = np.cumsum(~narrow)[narrow]  # a combined bar does not cross a wide cluster
    new = np.ones(len(chosen), dtype=bool)
    new[1:] = (np.diff(starts // width) > 0) | (np.diff(wide_before) > 0)
    first = np.flatnonzero(new)
    counts = np.diff(np.append(first, len(chosen)))
    total = np.add.reduceat(sizes, first)
    weakest = np.add.reduceat(table.weakest[chosen], first) / counts
    columns = (starts[first].tolist(), total.tolist(), counts.tolist(), weakest.tolist())
    return [
        {"start": start, "size": size, "count": count, "weakest": round_number(mean)}
        for start, size, count, mean in zip(*columns, strict=True)
    ][:MOST_BARS]


def _match_filters(grouping: Grouping, query: ClusterQuery) -> BoolArray | None:
    """Return which groups pass the filters; None if all do."""
    keep = np.ones(grouping.n_groups, dtype=bool)
    if query.min_size > 1:
        keep &= grouping.sizes >= query.min_size
    if query.max_size is not None:
        keep &= grouping.sizes <= query.max_size
    if query.state != "all":
        keep &= _match_state(grouping, query.state)
    if query.search.strip():
        keep &= find_searched(grouping, query.search.strip())
    return None if keep.all() else keep


def _match_state(grouping: Grouping, state: str) -> BoolArray:
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


def find_searched(grouping: Grouping, text: str) -> BoolArray:
    """Return which groups a text finds: by number, part of a name, or part of a member's id."""
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
