"""The review: its queue of questions and its log."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.explorer.api.payloads.paging import (
    describe_card,
    describe_items,
    round_number,
    wrap_page,
)
from hilander.explorer.partition.summary import choose_exemplars
from hilander.explorer.review.conflicts import list_choices
from hilander.explorer.review.queue import KINDS, LINK, Question, find_pieces
from hilander.explorer.review.wording import describe_event
from hilander.explorer.review_log.state import Event
from hilander.explorer.session.explorer import Explorer

# Exemplars of the group of a question, and of each piece.
_EXEMPLARS, _PIECE_EXEMPLARS = 12, 6


def list_questions(explorer: Explorer, kind: str, offset: int, limit: int) -> dict[str, Any]:
    """Return one page of open questions, those with the highest gain first.

    Parameters
    ----------
    explorer : Explorer
    kind : {"all", "part", "odd", "pair", "lonely", "link"}
    offset, limit : int
    """
    if kind not in ("all", *KINDS, LINK):
        raise SettingError(f"kind {kind[:20]!r} is unknown; use all or {', '.join(KINDS)}")
    every = explorer.questions
    counts = Counter(question.kind for question in every)
    chosen = [question for question in every if kind in ("all", question.kind)]
    entries = [describe_question(explorer, one) for one in chosen[offset : offset + limit]]
    answers = explorer.review.state.answers
    page = wrap_page(entries, len(chosen), offset)
    reason = None
    if explorer.run.graph is None:
        reason = "the run has no graph, so only its merges can be reviewed"
    return page | {"answered": len(answers), "counts": dict(counts), "reason": reason}


def describe_question(explorer: Explorer, question: Question) -> dict[str, Any]:
    """Describe a question, with exemplars of its group and of its pieces."""
    grouping, run = explorer.reviewed(), explorer.run
    pieces = find_pieces(question, grouping, explorer.candidates)
    rows = grouping.rows_of(question.group)
    if question.is_leaving:
        rows = np.setdiff1d(rows, np.concatenate(pieces))
    density, names = run.hierarchy.density, explorer.review.state.names

    def show(rows: IntArray, count: int) -> list[dict[str, Any]]:
        ordered = rows[np.argsort(-density[rows], kind="stable")]
        return describe_items(run, choose_exemplars(ordered, count))

    numbers = question.pieces if len(question.pieces) == len(pieces) else question.pieces[-1:]
    described = [
        {
            "piece": number,
            "size": len(found),
            "name": None if question.is_leaving else names.get(number),
            "same": round_number(same),
            "exemplars": show(found, _PIECE_EXEMPLARS),
        }
        for number, found, same in zip(numbers, pieces, question.same, strict=True)
    ]
    return {
        "key": question.key,
        "kind": question.kind,
        "leaving": question.is_leaving,
        "gain": round_number(question.gain, 2),
        "group": {
            "cluster": question.group,
            "name": names.get(question.group),
            "size": len(rows),
            "exemplars": show(rows, _EXEMPLARS),
        },
        "pieces": described,
    }


def list_conflicts(explorer: Explorer) -> list[dict[str, Any]]:
    """Describe the unsolved conflicts: text, choices, and exemplars of the clusters concerned."""
    grouping, state = explorer.reviewed(), explorer.review.state
    found = []
    for conflict in explorer.carried_conflicts():
        groups = conflict["clusters"]
        if "a" in conflict:
            groups = sorted({int(state.labels[conflict[name]]) for name in ("a", "b")})
        cards = [describe_card(grouping, one) for one in groups if grouping.sizes[one]]
        shown = [{name: card[name] for name in ("cluster", "name", "exemplars")} for card in cards]
        found.append(conflict | {"exemplars": shown, "choices": list_choices(conflict, state)})
    return found


def list_events(explorer: Explorer, offset: int, limit: int) -> dict[str, Any]:
    """Return one page of the log, the latest event first."""
    review = explorer.review
    in_force = {event.seq for event in review.done}
    by_number = {event.seq: event for event in review.log}
    latest = review.log[::-1][offset : offset + limit]
    entries = [
        {
            "seq": event.seq,
            "at": event.at,
            "kind": event.kind,
            "text": describe_event(event, by_number),
            "can_undo": event.seq in in_force and not event.payload.get("carried"),
            "holds": event.seq in in_force,
            "carried": bool(event.payload.get("carried")),
            "clusters": _clusters_of(event),
        }
        for event in latest
    ]
    return wrap_page(entries, len(review.log), offset)


def _clusters_of(event: Event) -> list[int]:
    payload = event.payload
    found = list(payload.get("groups", ()))
    found += [payload[name] for name in ("group", "to") if payload.get(name) is not None]
    return [int(group) for group in found]
