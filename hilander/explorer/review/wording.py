"""Say in words what an action did, with the names, sizes and ids of the moment when it was done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hilander.explorer.review_log.state import REDO, UNDO, Event, ReviewState

# Items of a list that are named; of more, the number is given.
_MOST_NAMED = 2

IdOf = Callable[[int], str]


def describe_action(state: ReviewState, kind: str, payload: dict[str, Any], id_of: IdOf) -> str:
    """Describe an action, before it is applied.

    Parameters
    ----------
    state : ReviewState
        The review before the action.
    kind, payload
        As in `Event`; the payload has the numbers of new groups.
    id_of : callable
        Returns the id of a row.
    """
    words = _Words(state, payload, id_of)
    return str(getattr(words, kind)())


def describe_event(event: Event, log: dict[int, Event] | None = None) -> str:
    """Describe an entry of the log.

    Parameters
    ----------
    event : Event
    log : dict of int to Event, optional
        The other entries by number, for those that an undo or redo names.
    """
    words = event.payload.get("words")
    if isinstance(words, str):
        return words
    if event.kind in (UNDO, REDO):
        of = (log or {}).get(int(event.payload["of"]))
        verb = "undid" if event.kind == UNDO else "did again"
        return f"{verb}: {describe_event(of)}" if of else f"{verb} action {event.payload['of']}"
    return _describe_plainly(event)


def count_items(count: int) -> str:
    """Return a number of items in words."""
    return f"{count:,} item{'' if count == 1 else 's'}"


class _Words:
    """The words of each kind of action."""

    def __init__(self, state: ReviewState, payload: dict[str, Any], id_of: IdOf) -> None:
        self.state, self.payload, self.id_of = state, payload, id_of

    def merge(self) -> str:
        groups = list(dict.fromkeys(self.payload["groups"]))
        target = max(groups, key=lambda group: (len(self.state.rows_of(group)), -group))
        others = [self._cluster(group) for group in groups if group != target]
        return f"merged {_join(others)} into {self._cluster(target)}"

    def split(self) -> str:
        sizes = _join([f"{len(part):,}" for part in self.payload["parts"]])
        new = _join([f"#{number}" for number in self.payload.get("new", ())])
        one = [len(part) for part in self.payload["parts"]] == [1]
        text = f"split {sizes} item{'' if one else 's'} off {self._cluster(self.payload['group'])}"
        return text + (f", as {new}" if new else "")

    def move(self) -> str:
        rows = self.payload["rows"]
        sources = sorted({int(self.state.labels[row]) for row in rows})
        start = self._cluster(sources[0]) if len(sources) == 1 else f"{len(sources)} clusters"
        to = self.payload["to"]
        if to is not None:
            return f"moved {self._items(rows)} from {start} to {self._cluster(to)}"
        new = "".join(f" #{number}" for number in self.payload.get("new", ()))
        return f"moved {self._items(rows)} from {start} to a new cluster{new}"

    def name(self) -> str:
        group, name = self.payload["group"], self.payload["name"]
        before = self.state.names.get(group)
        if not name:
            return f"removed the name of {self._cluster(group)}"
        return f"{'renamed' if before else 'named'} {self._cluster(group)} “{name}”"

    def junk(self) -> str:
        mark = "junk" if self.payload["junk"] else "not junk"
        return f"marked {self._cluster(self.payload['group'])} as {mark}"

    def answer(self) -> str:
        if self.payload["verdict"] == "skip":
            return f"skipped the question about {self._pair()}"
        text = f"answered that {self._pair()} are {self.payload['verdict']}"
        if "groups" in self.payload:
            return f"{text}: {self.merge()}"
        if "parts" in self.payload:
            return f"{text}: {self.split()}"
        return f"{text}; nothing had to change"

    def link(self) -> str:
        if "conflict" in self.payload and not {"must", "cannot"} & set(self.payload):
            return "decided a conflict: the earlier decision no longer holds"
        kind = "same" if self.payload.get("must") else "different"
        return f"kept an earlier decision: {kind}"

    def _pair(self) -> str:
        return f"{self.id_of(self.payload['a'])} and {self.id_of(self.payload['b'])}"

    def _items(self, rows: list[int]) -> str:
        if len(rows) > _MOST_NAMED:
            return f"{self.id_of(rows[0])} and {count_items(len(rows) - 1)} more"
        return _join([self.id_of(row) for row in rows])

    def _cluster(self, group: int) -> str:
        name = self.state.names.get(group)
        title = f"“{name}”" if name else f"cluster {group}"
        return f"{title} ({count_items(len(self.state.rows_of(group)))})"


def _join(texts: list[str]) -> str:
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def _describe_plainly(event: Event) -> str:
    """Describe an action that was written without its words: by version 0.1, or carried over."""
    payload = event.payload
    group = payload.get("group")
    if event.kind == "merge":
        return f"merged clusters {_join([str(one) for one in payload['groups']])}"
    if event.kind == "split":
        return f"split {_join([str(len(part)) for part in payload['parts']])} items off {group}"
    if event.kind == "move":
        to = payload["to"]
        target = "a new cluster" if to is None else f"cluster {to}"
        return f"moved {count_items(len(payload['rows']))} to {target}"
    if event.kind == "name":
        name = payload["name"]
        return f"named cluster {group} “{name}”" if name else f"removed the name of cluster {group}"
    if event.kind == "junk":
        return f"marked cluster {group} as {'junk' if payload['junk'] else 'not junk'}"
    if event.kind == "answer":
        effect = ", merged" if "groups" in payload else ", split" if "parts" in payload else ""
        return f"answered {payload['verdict']}{effect}"
    kind = "same" if payload.get("must") else "different"
    return f"kept an earlier decision: {kind}"
