"""Reviews survive a new clustering: what was said of items is said again of where they went.

Names and junk marks go to the new cluster that holds most of the old one's items. "Same" is said
again by merging, "different" is checked. What no longer fits is a conflict, to be shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.explorer.review_log.state import Event, ReviewState
from hilander.explorer.review_log.store import Base

# A name follows its items only if at least this share of those that are left went one way.
_MAJORITY = 0.5


@dataclass
class Carried:
    """What an old review becomes on a new run.

    Parameters
    ----------
    events : list of (kind, payload)
        To be written at the start of the new log.
    conflicts : list of dict
        ``kind``, ``text``, and ``clusters``: the numbers of new clusters to look at.
    """

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)


def carry_over(base: Base, old: ReviewState, new: Base) -> Carried:
    """Say an old review again of a new run.

    Parameters
    ----------
    base : Base
        The clusters that the old review started from.
    old : ReviewState
        What it had made of them.
    new : Base
        The new run's clusters; items are matched by id.
    """
    place = {name: row for row, name in enumerate(new.ids)}
    rows = np.array([place.get(name, -1) for name in base.ids], dtype=np.int64)
    carried = Carried()
    _carry_links(old, rows, base.ids, new, carried)
    after = ReviewState(new.labels, new.n_clusters)
    for kind, payload in carried.events:
        after.apply(Event(0, kind, payload))
    _carry_marks(old, rows, after, carried)
    return carried


def _carry_links(
    old: ReviewState, rows: IntArray, ids: list[str], new: Base, carried: Carried
) -> None:
    must, cannot = old.constraints()
    state = ReviewState(new.labels, new.n_clusters)
    apart = [(int(rows[a]), int(rows[b])) for a, b in cannot if rows[a] >= 0 and rows[b] >= 0]
    kept_apart = [(a, b) for a, b in apart if state.labels[a] != state.labels[b]]
    lost = 0
    for a, b in must:
        left, right = int(rows[a]), int(rows[b])
        if left < 0 or right < 0:
            lost += 1
            continue
        groups = [int(state.labels[left]), int(state.labels[right])]
        payload = {"must": [[left, right]], "carried": True}
        if groups[0] == groups[1]:
            _do(state, carried, "link", payload)
        elif any({*state.labels[[x, y]].tolist()} == set(groups) for x, y in kept_apart):
            carried.conflicts.append(
                {
                    "kind": "same",
                    "text": f"{ids[a]} and {ids[b]} were said to be the same, but their new "
                    "clusters hold items that were said to be different",
                    "clusters": groups,
                }
            )
        else:
            _do(state, carried, "merge", payload | {"groups": groups})
    for (a, b), (left, right) in zip(
        [(a, b) for a, b in cannot if rows[a] >= 0 and rows[b] >= 0], apart, strict=True
    ):
        _do(state, carried, "link", {"cannot": [[left, right]], "carried": True})
        if state.labels[left] == state.labels[right]:
            carried.conflicts.append(
                {
                    "kind": "different",
                    "text": f"{ids[a]} and {ids[b]} were said to be different, the new run joins "
                    "them; open the cluster and split it",
                    "clusters": [int(state.labels[left])],
                }
            )
    lost += len(cannot) - len(apart)
    if lost:
        carried.conflicts.append(
            {
                "kind": "lost",
                "text": f"{lost} decisions are about items that the new run does not have",
                "clusters": [],
            }
        )


def _carry_marks(old: ReviewState, rows: IntArray, after: ReviewState, carried: Carried) -> None:
    taken: dict[int, str] = {}
    marked = sorted(set(old.names) | old.junk, key=lambda group: -len(old.rows_of(group)))
    for group in marked:
        name = old.names.get(group)
        what = f"“{name}”" if name else f"junk cluster {group}"
        now = rows[old.rows_of(group)]
        now = now[now >= 0]
        if not len(now):
            _conflict(carried, "lost", f"{what}: the new run has none of its items", [])
            continue
        found, counts = np.unique(after.labels[now], return_counts=True)
        best = int(found[np.argmax(counts)])
        if counts.max() < _MAJORITY * len(now):
            text = f"{what}: its {len(now)} items went to {len(found)} clusters, none has half"
            largest = found[np.argsort(-counts)][:10].tolist()
            _conflict(carried, "scattered", text, largest)
            continue
        if name and best in taken:
            text = f"{what} and “{taken[best]}” are one cluster now, which keeps the latter name"
            _conflict(carried, "name", text, [best])
        elif name:
            taken[best] = name
            _do(after, carried, "name", {"group": best, "name": name, "carried": True})
        if group in old.junk:
            size = int((after.labels == best).sum())
            if 2 * int(counts.max()) < size:
                text = f"{what}: its items are a minority of their new cluster, not marked as junk"
                _conflict(carried, "junk", text, [best])
            else:
                _do(after, carried, "junk", {"group": best, "junk": True, "carried": True})


def _do(state: ReviewState, carried: Carried, kind: str, payload: dict[str, Any]) -> None:
    state.apply(Event(0, kind, payload))
    carried.events.append((kind, payload))


def _conflict(carried: Carried, kind: str, text: str, clusters: list[int]) -> None:
    carried.conflicts.append({"kind": kind, "text": text, "clusters": clusters})
