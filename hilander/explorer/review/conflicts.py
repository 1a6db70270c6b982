"""Earlier decisions that do not fit a new clustering: what can be chosen, and what it does."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.review.candidates import Candidates
from hilander.explorer.review_log.state import Event, ReviewState

DROP = "drop"
# Key of a choice that gives the name to a cluster, before the cluster's number.
GIVE = "give-"


def find_unsolved(
    conflicts: list[dict[str, Any]], state: ReviewState, done: list[Event]
) -> list[dict[str, Any]]:
    """Return the conflicts that no action has solved, each with its number as ``conflict``.

    Parameters
    ----------
    conflicts : list of dict
        As `carry_over` lists them.
    state : ReviewState
    done : list of Event
        Actions in force.
    """
    solved = {event.payload.get("conflict") for event in done}
    found = []
    for number, conflict in enumerate(conflicts):
        if number in solved or _is_settled(conflict, state):
            continue
        found.append(conflict | {"conflict": number})
    return found


def list_choices(conflict: dict[str, Any], state: ReviewState) -> list[dict[str, str]]:
    """Return the choices of a conflict: ``key`` and ``text``, the usual one first."""
    kind, has_rows = conflict["kind"], "a" in conflict
    forget = {"key": DROP, "text": "Forget this decision"}
    if kind == "same" and has_rows:
        return [
            {"key": "merge", "text": "Same: merge the clusters"},
            {"key": "apart", "text": "Different: keep them apart"},
        ]
    if kind == "different" and has_rows:
        return [
            {"key": "split", "text": "Different: split the cluster"},
            {"key": "together", "text": "Same: keep them together"},
        ]
    if kind in ("name", "scattered") and conflict.get("name"):
        titles = [(one, state.names.get(one) or f"cluster {one}") for one in conflict["clusters"]]
        gives = [
            {"key": f"{GIVE}{one}", "text": f"Give “{conflict['name']}” to {title}"}
            for one, title in titles
            if len(state.rows_of(one))
        ]
        return [*gives, forget]
    if kind == "junk":
        return [{"key": "junk", "text": "Mark the cluster as junk"}, forget]
    return [{"key": DROP, "text": "OK"}]


def prepare_solution(
    conflict: dict[str, Any],
    choice: Any,
    grouping: Grouping,
    candidates: Candidates | None,
) -> tuple[str, dict[str, Any]]:
    """Return kind and payload of the action that a choice stands for."""
    state = grouping.state
    if state is None or choice not in [one["key"] for one in list_choices(conflict, state)]:
        raise SettingError(
            f"{str(choice)[:40]!r} is not a choice of this conflict; reload the page"
        )
    marked = {"conflict": conflict["conflict"]}
    if choice == DROP:
        return "link", marked
    if choice.startswith(GIVE):
        group = grouping.check(int(choice.removeprefix(GIVE)))
        head = int(grouping.peaks[group])
        return "name", marked | {"group": group, "name": conflict["name"], "head": head}
    if choice == "junk":
        return "junk", marked | {"group": grouping.check(conflict["clusters"][0]), "junk": True}
    a, b = int(conflict["a"]), int(conflict["b"])
    groups = [int(state.labels[a]), int(state.labels[b])]
    if choice in ("apart", "together"):
        return "link", marked | {"cannot" if choice == "apart" else "must": [[a, b]]}
    if choice == "merge":
        return "merge", marked | {"groups": groups, "must": [[a, b]]}
    part = _part_without(a, b, grouping, candidates)
    return "split", marked | {"group": groups[0], "parts": [part.tolist()], "cannot": [[a, b]]}


def _is_settled(conflict: dict[str, Any], state: ReviewState) -> bool:
    """Whether other actions have made true what was decided."""
    if conflict["kind"] not in ("same", "different") or "a" not in conflict:
        return False
    together = bool(state.labels[conflict["a"]] == state.labels[conflict["b"]])
    return together is (conflict["kind"] == "same")


def _part_without(a: int, b: int, grouping: Grouping, candidates: Candidates | None) -> IntArray:
    """Return the largest part of the cluster in the merge tree that has b and not a."""
    if candidates is None:
        return np.array([b])
    leaves = candidates.leaves
    holds = (leaves.start <= leaves.place[b]) & (leaves.place[b] < leaves.start + leaves.size)
    holds &= ~((leaves.start <= leaves.place[a]) & (leaves.place[a] < leaves.start + leaves.size))
    nodes = np.flatnonzero(holds)
    rows = leaves.rows_of(int(nodes[np.argmax(leaves.size[nodes])]))
    return np.sort(rows[grouping.labels[rows] == grouping.labels[b]])
