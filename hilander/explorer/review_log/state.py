"""The state of a review: the clusters after the actions of its log.

The state depends only on the log and on the clusters that the review started from. After a crash
the log is read again and gives the same state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError

ACTIONS = ("merge", "split", "move", "name", "junk", "answer", "link")
UNDO, REDO = "undo", "redo"
# Letters of a cluster's name: it must fit a card of the page.
LONGEST_NAME = 200


@dataclass(frozen=True)
class Event:
    """One entry of the log.

    Parameters
    ----------
    seq : int
        Number of the entry; later entries have higher numbers.
    kind : str
        One of `ACTIONS`, `UNDO` or `REDO`.
    payload : dict
        The rows and groups of the action, and its other arguments.
    at : str
        Time, ISO 8601.
    """

    seq: int
    kind: str
    payload: dict[str, Any]
    at: str = ""


class ReviewState:
    """Clusters after the actions of a log.

    A group is a cluster of the review. Numbers below `n_base` are clusters of the run; the review
    gives higher numbers to new groups. A number is never used twice. An action records the numbers
    of its new groups as ``new``, so that they stay when an earlier action is undone. In a log of
    version 0.1 they are the next free ones.

    Parameters
    ----------
    labels : ndarray of shape (n_points,)
        Cluster of each point before the review.
    n_base : int
        Number of those clusters.
    members : callable, optional
        Returns the rows of a cluster of the run. By default `labels` is searched.
    """

    def __init__(
        self, labels: IntArray, n_base: int, members: Callable[[int], IntArray] | None = None
    ) -> None:
        self.labels = np.array(labels, dtype=np.int64)
        self.n_base = n_base
        self.next_group = n_base
        self.changed: dict[int, IntArray] = {}
        self.names: dict[int, str] = {}
        self.heads: dict[int, int] = {}  # an item that is typical of a named group
        self.junk: set[int] = set()
        self.answers: dict[str, str] = {}
        self.must: list[tuple[int, int, int]] = []
        self.cannot: list[tuple[int, int, int]] = []
        self._base_members = members or (lambda group: np.flatnonzero(labels == group))

    def rows_of(self, group: int) -> IntArray:
        """Return the rows of a group."""
        if group in self.changed:
            return self.changed[group]
        if 0 <= group < self.n_base:
            return self._base_members(group)
        return np.empty(0, dtype=np.int64)

    def copy(self) -> ReviewState:
        """Return a copy that can be changed while this state is being read."""
        twin = copy.copy(self)
        twin.labels = self.labels.copy()
        for name in ("changed", "names", "heads", "junk", "answers", "must", "cannot"):
            setattr(twin, name, copy.copy(getattr(self, name)))
        return twin

    def apply(self, event: Event) -> None:
        """Apply one action. If it is not possible, raise SettingError and change nothing."""
        if event.kind not in ACTIONS:
            raise SettingError(f"action {event.kind!r} is unknown; use one of {', '.join(ACTIONS)}")
        getattr(self, f"_{event.kind}")(event.payload)
        for name in ("must", "cannot"):
            links = getattr(self, name)
            links.extend((int(a), int(b), event.seq) for a, b in event.payload.get(name, ()))

    def constraints(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the must-link and cannot-link pairs that hold in the present groups.

        A later action overrides an earlier one: a pair that was split and then merged again is not
        a cannot-link.
        """
        must = {_pair(a, b) for a, b, _ in self.must if self.labels[a] == self.labels[b]}
        cannot = {_pair(a, b) for a, b, _ in self.cannot if self.labels[a] != self.labels[b]}
        return sorted(must), sorted(cannot)

    def typical_items(self) -> IntArray:
        """Rows of items of groups of different names, one of each name: that of the largest group.

        Two items with different names are of different identities.
        """
        found: dict[str, tuple[int, int]] = {}
        for group, head in self.heads.items():
            if 0 <= head < len(self.labels) and self.labels[head] == group:
                key = self.names[group].casefold()
                found[key] = max(found.get(key, (0, 0)), (len(self.rows_of(group)), -head))
        return np.array(sorted(-head for _, head in found.values()), dtype=np.int64)

    def _merge(self, payload: dict[str, Any]) -> None:
        groups = [self._group(group) for group in payload["groups"]]
        if len(set(groups)) < 2:
            raise SettingError(f"merging {groups} needs two or more different clusters")
        rows = {group: self.rows_of(group) for group in groups}
        # The largest group keeps its number, and its name if it has one.
        target = max(groups, key=lambda group: (len(rows[group]), -group))
        named = [target, *groups]
        source = next((group for group in named if group in self.names), target)
        name, head = self.names.get(source), self.heads.get(source)
        for group in set(groups) - {target}:
            self._empty(group)
        self._set_rows(target, np.concatenate([rows[group] for group in dict.fromkeys(groups)]))
        self._call(target, name, head)

    def _split(self, payload: dict[str, Any]) -> None:
        group = self._group(payload["group"])
        parts = [np.unique(np.asarray(part, dtype=np.int64)) for part in payload["parts"]]
        self._check_parts(group, parts)
        taken = np.concatenate(parts)
        rest = np.setdiff1d(self.rows_of(group), taken)
        for number, part in zip(self._new_groups(payload, len(parts)), parts, strict=True):
            self._set_rows(number, part)
        self._set_rows(group, rest)

    def _move(self, payload: dict[str, Any]) -> None:
        rows = np.unique(np.asarray(payload["rows"], dtype=np.int64))
        self._check_rows(rows)
        to = payload.get("to")
        target = None if to is None else self._group(to)
        sources = np.unique(self.labels[rows]).tolist()
        if target is not None and sources == [target]:
            raise SettingError(f"the items are already in cluster {target}; choose another")
        left = {
            group: np.setdiff1d(self.rows_of(group), rows) for group in sources if group != target
        }
        kept = np.empty(0, dtype=np.int64) if target is None else self.rows_of(target)
        number = self._new_groups(payload, 1)[0] if target is None else target
        for group, rest in left.items():
            self._set_rows(group, rest)
            if not len(rest):
                self._empty(group)
        self._set_rows(number, np.union1d(kept, rows))

    def _name(self, payload: dict[str, Any]) -> None:
        group, name = self._group(payload["group"]), str(payload["name"]).strip()
        if len(name) > LONGEST_NAME:
            raise SettingError(f"a name of {len(name)} letters; use at most {LONGEST_NAME}")
        self._call(group, name, payload.get("head"))

    def _junk(self, payload: dict[str, Any]) -> None:
        group = self._group(payload["group"])
        if payload["junk"]:
            self.junk.add(group)
        else:
            self.junk.discard(group)

    def _answer(self, payload: dict[str, Any]) -> None:
        verdict = payload["verdict"]
        if verdict == "same" and "groups" in payload:
            self._merge(payload)
        elif verdict == "different" and "parts" in payload:
            self._split(payload)
        elif verdict not in ("same", "different", "skip"):
            raise SettingError(f"verdict {verdict!r} is unknown; use same, different or skip")
        self.answers[str(payload["key"])] = verdict

    def _link(self, payload: dict[str, Any]) -> None:
        """Record pairs that were carried over and already hold; the groups stay as they are."""

    def _group(self, group: Any) -> int:
        number = int(group)
        if not 0 <= number < self.next_group or not len(self.rows_of(number)):
            raise SettingError(f"cluster {number} does not exist or is empty; reload the page")
        return number

    def _check_rows(self, rows: IntArray) -> None:
        if not len(rows) or rows[0] < 0 or rows[-1] >= len(self.labels):
            raise SettingError(f"rows must be one or more of 0 to {len(self.labels) - 1}")

    def _check_parts(self, group: int, parts: list[IntArray]) -> None:
        if not parts:
            raise SettingError("a split needs at least one part to split off")
        for part in parts:
            self._check_rows(part)
        taken = np.concatenate(parts)
        if len(np.unique(taken)) != len(taken) or (self.labels[taken] != group).any():
            raise SettingError(f"the parts must be disjoint and inside cluster {group}")
        if len(taken) >= len(self.rows_of(group)):
            raise SettingError(f"a split must leave items in cluster {group}")

    def _new_groups(self, payload: dict[str, Any], count: int) -> list[int]:
        """Give the numbers of new groups: those that the action recorded, or the next ones."""
        free = range(self.next_group, self.next_group + count)
        numbers = [int(number) for number in payload.get("new", free)]
        for number in numbers:
            if number < self.n_base or len(self.rows_of(number)):
                raise SettingError(f"the number {number} of a new cluster is in use")
        if not len(set(numbers)) == len(numbers) == count:
            raise SettingError(f"numbers {numbers} for {count} new clusters; give one each")
        self.next_group = max(self.next_group, *(number + 1 for number in numbers))
        return numbers

    def _call(self, group: int, name: str | None, head: int | None) -> None:
        self.names.pop(group, None)
        self.heads.pop(group, None)
        if name:
            self.names[group] = name
            if head is not None:
                self.heads[group] = int(head)

    def _set_rows(self, group: int, rows: IntArray) -> None:
        self.changed[group] = rows
        self.labels[rows] = group

    def _empty(self, group: int) -> None:
        self.changed[group] = np.empty(0, dtype=np.int64)
        self._call(group, None, None)
        self.junk.discard(group)


def resolve_undos(events: Iterable[Event]) -> tuple[list[Event], list[Event]]:
    """Apply the undos and redos of a log.

    An undo or redo names its action as ``of``. Without that, it concerns the last one.

    Returns
    -------
    done : list of Event
        Actions in force, in order.
    undone : list of Event
        Actions that a redo would restore, the next one last.
    """
    done: list[Event] = []
    undone: list[Event] = []
    for event in events:
        if event.kind == UNDO:
            _pass_on(event.payload.get("of"), done, undone)
        elif event.kind == REDO:
            _pass_on(event.payload.get("of"), undone, done)
        else:
            done.append(event)
            undone.clear()
    return done, undone


def _pass_on(seq: int | None, source: list[Event], target: list[Event]) -> None:
    """Move the action of a number, or else the last one, to the end of another list."""
    numbers = [event.seq for event in source]
    if source:
        target.append(source.pop(numbers.index(seq) if seq in numbers else -1))


def count_new_groups(kind: str, payload: dict[str, Any]) -> int:
    """Return how many new groups an action makes."""
    if kind == "move" and payload.get("to") is None:
        return 1
    return len(payload.get("parts", ())) if kind in ("split", "answer") else 0


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)
