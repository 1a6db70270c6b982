"""Carry a review over to a new clustering of the same items.

A name or junk mark goes to the new cluster that holds most of the old cluster's items. Must-links
are kept by merging, cannot-links are checked. A decision that no longer fits, or hardly, becomes a
conflict, which the page lists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.explorer.review_log.state import Event, ReviewState
from hilander.explorer.review_log.store import Base

# Share of an old cluster's remaining items that must be in one new cluster to carry its name over.
_MAJORITY = 0.5
# Clusters that a conflict lists at most: those that a reader would open.
_MOST_LISTED = 10


@dataclass
class Carried:
    """Result of carrying a review over.

    Parameters
    ----------
    events : list of (kind, payload)
        The first events of the new log.
    conflicts : list of dict
        ``kind``, ``text``, ``clusters``: numbers of the new clusters concerned. If it is about two
        items, ``a`` and ``b``: their rows. If it is about a name, ``name``.
    """

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)


def carry_over(base: Base, old: ReviewState, new: Base) -> Carried:
    """Carry the review of an old run over to a new one.

    Parameters
    ----------
    base : Base
        Clusters that the old review started from.
    old : ReviewState
        State of the old review.
    new : Base
        Clusters of the new run; items are matched by id.
    """
    new_row = {name: row for row, name in enumerate(new.ids)}
    rows = np.array([new_row.get(name, -1) for name in base.ids], dtype=np.int64)
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
    cannot_rows = [(int(rows[a]), int(rows[b])) for a, b in cannot if rows[a] >= 0 and rows[b] >= 0]
    separate = [(a, b) for a, b in cannot_rows if state.labels[a] != state.labels[b]]
    lost = 0
    for a, b in must:
        left, right = int(rows[a]), int(rows[b])
        if left < 0 or right < 0:
            lost += 1
            continue
        groups = [int(state.labels[left]), int(state.labels[right])]
        payload = {"must": [[left, right]], "carried": True}
        if groups[0] == groups[1]:
            _apply(state, carried, "link", payload)
        elif any({*state.labels[[x, y]].tolist()} == set(groups) for x, y in separate):
            carried.conflicts.append(
                {
                    "kind": "same",
                    "text": f"{ids[a]} and {ids[b]} were reviewed as the same, but their "
                    "new clusters hold items that were reviewed as different",
                    "clusters": groups,
                    "a": left,
                    "b": right,
                }
            )
        else:
            _apply(state, carried, "merge", payload | {"groups": groups})
    for (a, b), (left, right) in zip(
        [(a, b) for a, b in cannot if rows[a] >= 0 and rows[b] >= 0], cannot_rows, strict=True
    ):
        _apply(state, carried, "link", {"cannot": [[left, right]], "carried": True})
        if state.labels[left] == state.labels[right]:
            carried.conflicts.append(
                {
                    "kind": "different",
                    "text": f"{ids[a]} and {ids[b]} were reviewed as different, but the "
                    "new run joins them",
                    "clusters": [int(state.labels[left])],
                    "a": left,
                    "b": right,
                }
            )
    lost += len(cannot) - len(cannot_rows)
    if lost:
        carried.conflicts.append(
            {
                "kind": "lost",
                "text": f"{lost} decisions concern items that the new run does not have",
                "clusters": [],
            }
        )


@dataclass(frozen=True, eq=False)
class _Marked:
    """A group with a name or a junk mark, and the new clusters that have its items.

    Parameters
    ----------
    group : int
    name : str, optional
    clusters, counts : ndarray of shape (n_clusters,)
        New clusters, and the number of items in each, the largest number first.
    """

    group: int
    name: str | None
    clusters: IntArray
    counts: IntArray

    @classmethod
    def of_group(cls, group: int, old: ReviewState, rows: IntArray, after: ReviewState) -> _Marked:
        """Look where the items of a group are now."""
        now = rows[old.rows_of(group)]
        found, counts = np.unique(after.labels[now[now >= 0]], return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return cls(group, old.names.get(group), found[order], counts[order])

    @property
    def title(self) -> str:
        """How a conflict calls it."""
        return f"“{self.name}”" if self.name else f"junk cluster {self.group}"

    @property
    def is_scattered(self) -> bool:
        """Whether no cluster has half of the items."""
        return bool(self.counts.max(initial=0) < _MAJORITY * self.counts.sum())


def _carry_marks(old: ReviewState, rows: IntArray, after: ReviewState, carried: Carried) -> None:
    by_size = sorted(set(old.names) | old.junk, key=lambda group: -len(old.rows_of(group)))
    marked = [_Marked.of_group(group, old, rows, after) for group in by_size]
    taken: dict[int, str] = {}
    for one in sorted(marked, key=lambda one: one.is_scattered):
        if not len(one.clusters):
            _conflict(carried, "lost", f"{one.title}: the new run has none of its items", [])
            continue
        if one.is_scattered:
            text = f"{one.title}: its {one.counts.sum()} items are in {len(one.clusters)} clusters"
            largest = one.clusters[:_MOST_LISTED].tolist()
            _conflict(carried, "scattered", f"{text}, none holds half", largest, one.name)
        if one.name:
            head = int(rows[old.heads[one.group]]) if one.group in old.heads else -1
            _carry_name(one, head, taken, after, carried)
        if one.group in old.junk and not one.is_scattered:
            _carry_junk(one, after, carried)


def _carry_name(
    one: _Marked, head: int, taken: dict[int, str], after: ReviewState, carried: Carried
) -> None:
    best = int(one.clusters[0])
    if best not in taken:
        taken[best] = one.name or ""
        if head < 0 or after.labels[head] != best:
            head = int(after.rows_of(best)[0])
        given = {"group": best, "name": one.name, "head": head, "carried": True}
        _apply(after, carried, "name", given)
    elif not one.is_scattered:
        text = f"{one.title} and “{taken[best]}” are now one cluster, which keeps the latter name"
        _conflict(carried, "name", text, [best], one.name)


def _carry_junk(one: _Marked, after: ReviewState, carried: Carried) -> None:
    best = int(one.clusters[0])
    if 2 * int(one.counts[0]) < int((after.labels == best).sum()):
        text = f"{one.title}: its items are a minority of their new cluster, not marked as junk"
        _conflict(carried, "junk", text, [best])
    else:
        _apply(after, carried, "junk", {"group": best, "junk": True, "carried": True})


def _apply(state: ReviewState, carried: Carried, kind: str, payload: dict[str, Any]) -> None:
    state.apply(Event(0, kind, payload))
    carried.events.append((kind, payload))


def _conflict(
    carried: Carried, kind: str, text: str, clusters: list[int], name: str | None = None
) -> None:
    found: dict[str, Any] = {"kind": kind, "text": text, "clusters": clusters}
    carried.conflicts.append(found | ({"name": name} if name else {}))
