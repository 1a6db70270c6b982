"""Pages of long lists, and descriptions of items and clusters in JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.partition.summary import choose_exemplars
from hilander.explorer.run.run_folder import Run

# Entries of one page, so that no answer takes long.
MOST_PER_PAGE = 200
# Members shown on a card: two rows of four.
EXEMPLARS = 8


def wrap_page(entries: Sequence[Any], total: int, offset: int) -> dict[str, Any]:
    """Return a page: its entries, its offset, the total number, and the offset of the next page."""
    end = offset + len(entries)
    return {
        "items": list(entries),
        "offset": offset,
        "total": total,
        "next": end if end < total else None,
    }


def round_number(value: Any, digits: int = 4) -> float | None:
    """Return a rounded number for JSON; NaN and infinity become None."""
    plain = float(value)
    return round(plain, digits) if math.isfinite(plain) else None


def describe_items(run: Run, rows: IntArray | Sequence[int]) -> list[dict[str, Any]]:
    """Describe items: row, id, image, true label, density, confidence."""
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
            "image": image_url(run, row),
            "label": run.items.label_of(row),
            "density": round_number(dense),
            "confidence": round_number(probability),
        }
        for row, name, dense, probability in zip(
            chosen.tolist(), names, density, confidence, strict=True
        )
    ]


def image_url(run: Run, row: int) -> str | None:
    """Return the URL of an item's thumbnail, relative to the page; it has the image's key."""
    key = run.image_key(row)
    return None if key is None else f"api/items/{row}/image?v={key}"


def describe_card(grouping: Grouping, group: int, exemplars: int = EXEMPLARS) -> dict[str, Any]:
    """Describe a cluster for its card: numbers, marks, its peak and some of its members."""
    members = grouping.members(group)
    state = grouping.state
    purity = grouping.purity
    return {
        "cluster": group,
        "level": grouping.level,
        "size": int(grouping.sizes[group]),
        "doubt": round_number(grouping.doubt[group]),
        "quality": round_number(grouping.quality[group]),
        "purity": None if purity is None else round_number(purity[group]),
        "name": None if state is None else state.names.get(group),
        "junk": state is not None and group in state.junk,
        "edited": state is not None and group in state.changed,
        "exemplars": describe_items(grouping.run, choose_exemplars(members, exemplars)),
    }
