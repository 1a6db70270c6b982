"""Turn a request of the page into the payload of an event of the log.

A payload holds rows and pairs of rows. It can therefore be replayed, and carried over to another
run, without the hierarchy that it came from.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.partition.parts import select_part_rows
from hilander.explorer.review.queue import LINK, Question
from hilander.explorer.review_log.state import LONGEST_NAME

# Entries of a list in a request: more than the page can select, few enough to check at once.
MOST_ROWS = 10_000
# Numbers in a request lie below this, so that they fit an index.
_NUMBER_LIMIT = 1 << 40
# Pairs that one action adds to the log: further pairs would add little and make the log large.
_MOST_PAIRS = 200
_VERDICTS = ("same", "different", "skip")

# Gives the question with a key, and the rows of its pieces.
FindQuestion = Callable[[str], tuple[Question, list[IntArray]]]


def prepare_action(
    grouping: Grouping, kind: str, body: dict[str, Any], find_question: FindQuestion
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
        Returns the question with a given key and the rows of its pieces.

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
    group = grouping.check(_check_number(body.get("group"), "group"))
    return {"group": group, "name": name, "head": int(grouping.peaks[group])}


def _junk(grouping: Grouping, body: dict[str, Any]) -> dict[str, Any]:
    junk = body.get("junk", True)
    if not isinstance(junk, bool):
        raise SettingError("junk must be true or false")
    return {"group": grouping.check(_check_number(body.get("group"), "group")), "junk": junk}


def _answer(
    grouping: Grouping, body: dict[str, Any], find_question: FindQuestion
) -> dict[str, Any]:
    key, verdict = body.get("key"), body.get("verdict")
    if not isinstance(key, str) or verdict not in _VERDICTS:
        raise SettingError("an answer needs a key, and a verdict of same, different or skip")
    question, pieces = find_question(key)
    exceptions = {_check_number(piece, "except") for piece in body.get("except") or ()}
    if not exceptions <= set(question.pieces) or (exceptions and question.kind == LINK):
        raise SettingError("except names pieces that the question does not have")
    density = grouping.run.hierarchy.density
    rest = grouping.rows_of(question.group)
    if question.is_leaving:
        rest = np.setdiff1d(rest, np.concatenate(pieces))
    peak = int(grouping.peaks[question.group])
    head = peak if peak in rest else int(rest[np.argmax(density[rest])])
    heads = [int(rows[np.argmax(density[rows])]) for rows in pieces]
    payload: dict[str, Any] = {"key": key, "verdict": verdict, "a": head, "b": heads[0]}
    if verdict == "skip":
        return payload
    numbers = question.pieces if len(question.pieces) == len(pieces) else (-1,)
    belongs = [(verdict == "same") != (number in exceptions) for number in numbers]
    payload["must"] = [[head, one] for one, yes in zip(heads, belongs, strict=True) if yes]
    payload["cannot"] = [[head, one] for one, yes in zip(heads, belongs, strict=True) if not yes]
    if len(question.logits) == len(belongs):
        payload["asked"] = {"kind": question.kind, "logits": list(question.logits), "said": belongs}
    if question.is_leaving:
        leaving = [rows.tolist() for rows, yes in zip(pieces, belongs, strict=True) if not yes]
        payload["verdict"] = "different" if leaving else "same"
        return payload | ({"group": question.group, "parts": leaving} if leaving else {})
    joining = [number for number, yes in zip(numbers, belongs, strict=True) if yes]
    payload["verdict"] = "same" if joining else "different"
    return payload | ({"groups": [question.group, *joining]} if joining else {})


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
