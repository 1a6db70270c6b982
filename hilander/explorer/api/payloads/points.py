"""One point in detail, the search, and the map."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.errors import LevelError, SettingError
from hilander.explorer.api.payloads.paging import (
    describe_items,
    image_url,
    round_number,
    wrap_page,
)
from hilander.explorer.run.run_folder import Run
from hilander.explorer.session.explorer import Explorer

# Steps of a path that are described, so that an answer stays small.
_LONGEST_PATH = 500
# Names and types of the columns of the map.
MAP_COLUMNS = {
    "row": "<i4", "x": "<f4", "y": "<f4", "cluster": "<i4", "level": "<i4", "confidence": "<f4",
    "size": "<i4",
}  # fmt: skip
# Clusters whose centres are described at a time.
MOST_CENTRES = 60


def describe_point(explorer: Explorer, row: int) -> dict[str, Any]:
    """Describe one point: columns, clusters, neighbours, and the path to its peak."""
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
        "path": trace_path(run, row),
    }
    return point


def trace_path(run: Run, row: int) -> list[dict[str, Any]]:
    """Follow the links, level after level, to the peak of the last level's cluster.

    Each step has the row that the link leads to, the level of the link and its linkage.
    """
    steps: list[dict[str, Any]] = []
    node = row
    for number, level in enumerate(run.hierarchy.levels):
        peaks = None if number == 0 else run.nested.tables[number - 1].peaks
        while int(level.parent[node]) != node and len(steps) < _LONGEST_PATH:
            linkage = level.linkage[node]
            node = int(level.parent[node])
            to = node if peaks is None else int(peaks[node])
            steps.append({"level": number, "linkage": round_number(linkage), "row": to})
        node = int(level.labels[node])
    for step, item in zip(steps, describe_items(run, [s["row"] for s in steps]), strict=True):
        step["item"] = item
    return steps


def search_run(explorer: Explorer, text: str, limit: int) -> dict[str, Any]:
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


def list_map_points(explorer: Explorer, offset: int, limit: int) -> dict[str, Any]:
    """Return one page of the map: each peak with its position, cluster and confidence."""
    if explorer.map_pending:
        return wrap_page([], 0, 0) | {"method": None, "pending": True, "reason": None}
    layout = explorer.map
    if layout is None:
        reason = explain_missing_map(explorer.run)
        return wrap_page([], 0, 0) | {"method": None, "pending": False, "reason": reason}
    chosen = slice(offset, offset + limit)
    columns = build_map_columns(explorer)
    rows = zip(*(np.round(column[chosen], 4).tolist() for column in columns), strict=True)
    entries = [dict(zip(MAP_COLUMNS, row, strict=True)) for row in rows]
    page = wrap_page(entries, len(layout.points), offset)
    return page | {"method": layout.method, "level": layout.level, "pending": False, "reason": None}


def build_map_columns(explorer: Explorer) -> tuple[Any, ...]:
    """Return the columns that `MAP_COLUMNS` names, with an entry for each peak.

    ``level`` is the highest level at which the point is a peak, ``size`` that of its cluster.
    """
    layout = explorer.map
    if layout is None:
        raise SettingError(explain_missing_map(explorer.run))
    points, grouping = layout.points, explorer.reviewed()
    cluster = grouping.labels[points]
    return (
        points,
        layout.places[:, 0],
        layout.places[:, 1],
        cluster,
        layout.reach,
        explorer.run.hierarchy.confidence[points],
        grouping.sizes[cluster],
    )


def encode_map(explorer: Explorer, most: int | None = None) -> bytes:
    """Encode the map: the columns of `MAP_COLUMNS`, 4 bytes an entry, one after the other.

    Numbers are little-endian: float32 for x, y and confidence, int32 for the others. Of more than
    `most` peaks, that many are taken evenly.
    """
    columns = build_map_columns(explorer)
    total = len(columns[0])
    step = 1 if most is None else -(-total // max(1, most))
    kinds = MAP_COLUMNS.values()
    return b"".join(
        np.ascontiguousarray(column[::step], dtype=kind).tobytes()
        for column, kind in zip(columns, kinds, strict=True)
    )


def describe_centres(explorer: Explorer, clusters: str) -> dict[str, Any]:
    """Return name, size and picture of some clusters, for their places on the map."""
    numbers = clusters.split(",") if clusters else []
    if len(numbers) > MOST_CENTRES or not all(one.isascii() and one.isdigit() for one in numbers):
        raise SettingError(f"clusters must be up to {MOST_CENTRES} numbers with commas in between")
    grouping, names = explorer.reviewed(), explorer.review.state.names
    known = [group for group in map(int, numbers) if group < grouping.n_groups]
    return {
        "items": [
            {
                "cluster": group,
                "name": names.get(group),
                "size": int(grouping.sizes[group]),
                "image": image_url(explorer.run, int(grouping.peaks[group])),
            }
            for group in known
            if grouping.sizes[group]
        ]
    }


def explain_missing_map(run: Run) -> str:
    """Return the reason why there is no map."""
    return (
        f"the run {run.name} has no features of its peaks, so there is no map; "
        "run `hilander cluster` again to get one"
    )


def _neighbours(explorer: Explorer, row: int) -> list[dict[str, Any]]:
    run = explorer.run
    if run.graph is None:
        return []
    neighbours = np.asarray(run.graph.neighbours[row])
    labels = explorer.reviewed().labels
    entries = describe_items(run, neighbours)
    parent = int(run.hierarchy.levels[0].parent[row])
    for place, entry in enumerate(entries):
        entry |= {
            "affinity": round_number(run.graph.affinity[row, place]),
            "linkage": round_number(run.graph.linkage[row, place]),
            "cluster": int(labels[entry["row"]]),
            "same_cluster": bool(labels[entry["row"]] == labels[row]),
            "is_parent": entry["row"] == parent and parent != row,
        }
    return entries
