"""Pages of long lists, and how items and clusters are told in JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.partition.summary import spread_out
from hilander.explorer.run.run_folder import Run

MOST_PER_PAGE = 200
EXEMPLARS = 8


def page_of(entries: Sequence[Any], total: int, offset: int) -> dict[str, Any]:
    """Wrap one page: its entries, where it starts, how many there are, where the next starts."""
    end = offset + len(entries)
    return {
        "items": list(entries),
        "offset": offset,
        "total": total,
        "next": end if end < total else None,
    }


def number(value: Any, digits: int = 4) -> float | None:
    """Give a number that JSON can hold; NaN becomes null."""
    plain = float(value)
    return round(plain, digits) if math.isfinite(plain) else None


def describe_items(run: Run, rows: IntArray | Sequence[int]) -> list[dict[str, Any]]:
    """Tell items briefly: row, id, image, true label, density, confidence."""
    chosen = np.asarray(rows, dtype=np.int64)
    if len(chosen) == 0:
        return []
    names = run.items.ids_of(chosen)
    density = run.hierarchy.density[chosen].tolist()
    confidence = run.hierarchy.confidence[chosen].tolist()
    return [
        {
            "row": row,
            "id": name,
            "image": image_address(run, row),
            "label": run.items.label_of(row),
            "density": number(dense),
            "confidence": number(sure),
        }
        for row, name, dense, sure in zip(chosen.tolist(), names, density, confidence, strict=True)
    ]


def image_address(run: Run, row: int) -> str | None:
    """Where the thumbnail of an item is."""
    return f"api/items/{row}/image" if run.images.has(row) else None


def describe_cluster(grouping: Grouping, group: int, exemplars: int = EXEMPLARS) -> dict[str, Any]:
    """Tell a cluster as a card: counts, marks, its peak and some of its members."""
    members = grouping.members(group)
    state = grouping.state
    purity = grouping.purity
    return {
        "cluster": group,
        "level": grouping.level,
        "size": int(grouping.sizes[group]),
        "doubt": number(grouping.doubt[group]),
        "quality": number(grouping.quality[group]),
        "purity": None if purity is None else number(purity[group]),
        "name": None if state is None else state.names.get(group),
        "junk": state is not None and group in state.junk,
        "edited": state is not None and group in state.changed,
        "exemplars": describe_items(grouping.run, spread_out(members, exemplars)),
    }
