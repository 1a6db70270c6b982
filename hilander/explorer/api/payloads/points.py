"""A point opened, the search, and the map."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.errors import LevelError, SettingError
from hilander.explorer.api.payloads.paging import describe_items, number, page_of
from hilander.explorer.run.run_folder import Run
from hilander.explorer.session.explorer import Explorer

_LONGEST_PATH = 500


def point_detail(explorer: Explorer, row: int) -> dict[str, Any]:
    """Tell one point: its facts, its clusters, its neighbours, and its path to its peak."""
    run = explorer.run
    if not 0 <= row < run.n_points:
        raise LevelError(f"point {row} does not exist; the run has 0 to {run.n_points - 1}")
    point = describe_items(run, [row])[0]
    grouping = explorer.reviewed()
    group = int(grouping.labels[row])
    point |= {
        "facts": run.items.facts_of(row),
        "cluster": group,
        "cluster_name": explorer.review.state.names.get(group),
        "levels": [
            {
                "level": level,
                "cluster": int(table.labels[row]),
                "size": int(table.sizes[table.labels[row]]),
                "is_peak": int(table.peaks[table.labels[row]]) == row,
            }
            for level, table in enumerate(run.nested.tables)
        ],
        "neighbours": _neighbours(explorer, row),
        "path": path_to_peak(run, row),
    }
    return point


def path_to_peak(run: Run, row: int) -> list[dict[str, Any]]:
    """Follow the links upwards, level after level, to the peak of the last cluster.

    Each step tells the row it leads to, the level of the link and its linkage.
    """
    steps: list[dict[str, Any]] = []
    node = row
    for number_of, level in enumerate(run.hierarchy.levels):
        peaks = None if number_of == 0 else run.nested.tables[number_of - 1].peaks
        while int(level.parent[node]) != node and len(steps) < _LONGEST_PATH:
            linkage = level.linkage[node]
            node = int(level.parent[node])
            to = node if peaks is None else int(peaks[node])
            steps.append({"level": number_of, "linkage": number(linkage), "row": to})
        node = int(level.labels[node])
    for step, item in zip(steps, describe_items(run, [s["row"] for s in steps]), strict=True):
        step["item"] = item
    return steps


def search(explorer: Explorer, text: str, limit: int) -> dict[str, Any]:
    """Find points by id and clusters by name or number."""
    text = text.strip()
    if not text:
        return {"points": [], "clusters": []}
    run, grouping = explorer.run, explorer.reviewed()
    lowered = text.casefold()
    clusters = [
        {"cluster": group, "name": name, "size": int(grouping.sizes[group])}
        for group, name in sorted(explorer.review.state.names.items())
        if lowered in name.casefold()
    ][:limit]
    digits = text.removeprefix("#")
    if digits.isascii() and digits.isdigit() and int(digits) < grouping.n_groups:
        group = int(digits)
        if grouping.sizes[group]:
            name = explorer.review.state.names.get(group)
            clusters.insert(0, {"cluster": group, "name": name, "size": int(grouping.sizes[group])})
    return {"points": describe_items(run, run.items.find(text, limit)), "clusters": clusters}


def map_page(explorer: Explorer, offset: int, limit: int) -> dict[str, Any]:
    """Give one page of the map: a peak, its place, its cluster and its confidence."""
    if explorer.map_pending:
        return page_of([], 0, 0) | {"method": None, "pending": True, "reason": None}
    layout = explorer.map
    if layout is None:
        reason = no_map(explorer.run)
        return page_of([], 0, 0) | {"method": None, "pending": False, "reason": reason}
    chosen = slice(offset, offset + limit)
    columns = map_columns(explorer)
    names = ("row", "x", "y", "cluster", "level", "confidence")
    rows = zip(*(np.round(column[chosen], 4).tolist() for column in columns), strict=True)
    entries = [dict(zip(names, row, strict=True)) for row in rows]
    page = page_of(entries, len(layout.points), offset)
    return page | {"method": layout.method, "level": layout.level, "pending": False, "reason": None}


def map_columns(explorer: Explorer) -> tuple[Any, ...]:
    """Row, x, y, cluster, highest level and confidence of each peak of the map."""
    layout = explorer.map
    if layout is None:
        raise SettingError(no_map(explorer.run))
    points = layout.points
    return (
        points,
        layout.places[:, 0],
        layout.places[:, 1],
        explorer.reviewed().labels[points],
        layout.reach,
        explorer.run.hierarchy.confidence[points],
    )


def map_bytes(explorer: Explorer) -> bytes:
    """Give the whole map for the page: six columns of 4 bytes each, one after the other.

    Row, cluster and level are little-endian int32; x, y and confidence are float32. The order is
    that of `map_columns`.
    """
    kinds = ("<i4", "<f4", "<f4", "<i4", "<i4", "<f4")
    columns = zip(map_columns(explorer), kinds, strict=True)
    return b"".join(np.ascontiguousarray(column, dtype=kind).tobytes() for column, kind in columns)


def no_map(run: Run) -> str:
    """Say why there is no map."""
    return (
        f"the run {run.name} kept no features of its peaks, so there is no map; "
        "cluster again with this version to have one"
    )


def _neighbours(explorer: Explorer, row: int) -> list[dict[str, Any]]:
    run = explorer.run
    if run.graph is None:
        return []
    neighbours = np.asarray(run.graph.neighbours[row])
    own = explorer.reviewed().labels
    entries = describe_items(run, neighbours)
    parent = int(run.hierarchy.levels[0].parent[row])
    for place, entry in enumerate(entries):
        entry |= {
            "affinity": number(run.graph.affinity[row, place]),
            "linkage": number(run.graph.linkage[row, place]),
            "cluster": int(own[entry["row"]]),
            "same_cluster": bool(own[entry["row"]] == own[row]),
            "is_parent": entry["row"] == parent and parent != row,
        }
    return entries
