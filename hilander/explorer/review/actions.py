"""Turn a request of the page into the payload of an event of the log.

A payload holds rows and pairs of rows. It can therefore be replayed, and carried over to another
run, without the hierarchy that it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from hilander.errors import SettingError
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.partition.parts import find_subtree_rows, select_part_rows
from hilander.explorer.review.queue import Question
from hilander.explorer.review_log.state import LONGEST_NAME
from hilander.hierarchy.doubts import MERGE

# Entries of a list in a request: more than the page can select, few enough to check at once.
MOST_ROWS = 10_000
# Numbers in a request lie below this, so that they fit an index.
_NUMBER_LIMIT = 1 << 40
# Pairs that one action adds to the log: further pairs would add little and make the log large.
_MOST_PAIRS = 200
_VERDICTS = ("same", "different", "skip")


def prepare_action(
    grouping: Grouping, kind: str, body: dict[str, Any], find_question: Callable[[str], Question]
) -> dict[str, Any]:
    """Check a request and build the payload of its event.

    Parameters
    ----------
    grouping : Grouping
        The reviewed partition.
    kind : str
        merge, split, move, name, junk or answer.
    body : dict
        The request.
    find_question : callable
        Returns the question with a given key.

    Raises
    ------
    SettingError, LevelError
        If the request is not valid for this partition.
    """
    builders = {
        "merge": _merge, "split": _split, "move": _move, "name": _name, "junk": _junk
    }  # fmt: skip
    if kind == "answer":
        return _answer(grouping, body, find_question)
    if kind not in builders:
        raise SettingError(f"action {kind!r} is unknown; use answer or {', '.join(builders)}")
    return builders[kind](grouping, body)


def _merge(grouping: Grouping, body: dict[str, Any]) -> dict[str, Any]:
    groups = [
        grouping.check(_check_number(group, "groups")) for group in _check_list(body, "groups")
    ]
    if len(set(groups)) < 2:
        raise SettingError("a merge needs two or more different clusters; select them first")
    first, *others = (int(grouping.peaks[group]) for group in dict.fromkeys(groups))
    return {"groups": groups, "must": [[first, other] for other in others]}


def _split(grouping: Grouping, body: dict[str, Any]) -> dict[str, Any]:
    group = grouping.check(_check_number(body.get("group"), "group"))
    wanted = [
        [_check_number(number, "parts") for number in _check_is_list(part, "parts")]
        for part in _check_list(body, "parts")
    ]
    at = body.get("level")
    if at is not None and (isinstance(at, bool) or not isinstance(at, int)):
        raise SettingError(f"level is {str(at)[:40]!r}, expected the level of the parts")
    return _split_rows(grouping, group, select_part_rows(grouping, group, wanted, at))


def _split_rows(grouping: Grouping, group: int, parts: list[Any]) -> dict[str, Any]:
    density = grouping.run.hierarchy.density
    rest = np.setdiff1d(grouping.rows_of(group), np.concatenate(parts))
    if not len(rest):
        raise SettingError(f"a split must leave items in cluster {group}; select fewer parts")
    heads = [int(rows[np.argmax(density[rows])]) for rows in (rest, *parts)]
    cannot = [[a, b] for a, b in combinations(heads, 2)][:_MOST_PAIRS]
    return {"group": group, "parts": [rows.tolist() for rows in parts], "cannot": cannot}


def _move(grouping: Grouping, body: dict[str, Any]) -> dict[str, Any]:
    rows = sorted({_check_number(row, "rows") for row in _check_list(body, "rows")})
    if rows[-1] >= grouping.run.n_points:
        raise SettingError(f"row {rows[-1]} is not one of {grouping.run.n_points} points")
    to = body.get("to")
    payload: dict[str, Any] = {"rows": rows, "to": None}
    if to is not None:
        payload["to"] = grouping.check(_check_number(to, "to"))
        head = int(grouping.peaks[payload["to"]])
        payload["must"] = [[row, head] for row in rows if row != head][:_MOST_PAIRS]
    moved = set(rows)
    heads = {row: int(grouping.peaks[grouping.labels[row]]) for row in rows}
    cannot = [[row, head] for row, head in heads.items() if head not in moved]
    payload["cannot"] = cannot[:_MOST_PAIRS]
    return payload


def _name(grouping: Grouping, body: dict[str, Any]) -> dict[str, Any]:
    name = body.get("name")
    if not isinstance(name, str):
        raise SettingError(f"name is {type(name).__name__}, expected text")
    name = " ".join(name.split())
    if len(name) > LONGEST_NAME:
        raise SettingError(f"a name of {len(name)} letters; use at most {LONGEST_NAME}")
    return {"group": grouping.check(_check_number(body.get("group"), "group")), "name": name}


def _junk(grouping: Grouping, body: dict[str, Any]) -> dict[str, Any]:
    junk = body.get("junk", True)
    if not isinstance(junk, bool):
        raise SettingError("junk must be true or false")
    return {"group": grouping.check(_check_number(body.get("group"), "group")), "junk": junk}


def _answer(
    grouping: Grouping, body: dict[str, Any], find_question: Callable[[str], Question]
) -> dict[str, Any]:
    key, verdict = body.get("key"), body.get("verdict")
    if not isinstance(key, str) or verdict not in _VERDICTS:
        raise SettingError("an answer needs a key, and a verdict of same, different or skip")
    question = find_question(key)
    a, b = int(grouping.labels[question.a]), int(grouping.labels[question.b])
    payload: dict[str, Any] = {"key": key, "verdict": verdict, "a": question.a, "b": question.b}
    pair = [[question.a, question.b]]
    if verdict == "same":
        payload["must"] = pair
        if a != b:
            payload["groups"] = [a, b]
    elif verdict == "different":
        payload["cannot"] = pair
        if a == b and question.kind == MERGE:
            subtree = find_subtree_rows(grouping.run, question.level, question.nodes[1])
            part = subtree[grouping.labels[subtree] == b]
            if question.a in part or not len(part):
                raise SettingError("these two can no longer be split here; open the cluster")
            payload |= {"group": b, "parts": [part.tolist()]}
        elif a == b:
            raise SettingError("these two are now in one cluster; open it and split it")
    return payload


def _check_list(body: dict[str, Any], name: str) -> list[Any]:
    values = _check_is_list(body.get(name), name)
    if not 0 < len(values) <= MOST_ROWS:
        raise SettingError(f"{name} has {len(values)} entries, expected 1 to {MOST_ROWS}")
    return values


def _check_is_list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise SettingError(f"{name} is {type(value).__name__}, expected a list")
    return value


def _check_number(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _NUMBER_LIMIT:
        raise SettingError(f"{name} holds {str(value)[:40]!r}, expected whole numbers from 0")
    return value
