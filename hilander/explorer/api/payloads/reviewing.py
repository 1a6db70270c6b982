"""The review: its queue of questions and its log."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.errors import SettingError
from hilander.explorer.api.payloads.paging import describe_items, round_number, wrap_page
from hilander.explorer.partition.parts import find_subtree_rows
from hilander.explorer.partition.summary import choose_exemplars
from hilander.explorer.review.queue import Question, find_separated_groups, is_open
from hilander.explorer.review.wording import describe_event
from hilander.explorer.review_log.state import Event
from hilander.explorer.session.explorer import Explorer
from hilander.hierarchy.doubts import MERGE

KINDS = ("merge", "pair")
# Exemplars of each side of a question: three rows of three.
_EXEMPLARS = 9


def list_questions(explorer: Explorer, kind: str, offset: int, limit: int) -> dict[str, Any]:
    """Return one page of open questions, those with the highest weight first."""
    if kind not in KINDS:
        raise SettingError(f"kind {kind[:20]!r} is unknown; use {' or '.join(KINDS)}")
    state = explorer.review.state
    questions: list[Question] = explorer.cache_by_revision(
        f"queue {kind}", lambda: _find_open(explorer, kind)
    )
    entries = [describe_question(explorer, one) for one in questions[offset : offset + limit]]
    page = wrap_page(entries, len(questions), offset)
    page["answered"] = sum(1 for key in state.answers if key.startswith(kind + "-"))
    reason = None
    if kind == "pair" and explorer.run.graph is None:
        reason = "the run has no graph, so merge candidates are not known"
    return page | {"reason": reason}


def _find_open(explorer: Explorer, kind: str) -> list[Question]:
    state = explorer.review.state
    separated = find_separated_groups(state)
    ranked = explorer.merges if kind == MERGE else explorer.pairs
    return [question for question in ranked if is_open(question, state, separated)]


def describe_question(explorer: Explorer, question: Question) -> dict[str, Any]:
    """Describe a question, with exemplars of both sides."""
    grouping = explorer.reviewed()
    run = explorer.run
    groups = [int(grouping.labels[row]) for row in (question.a, question.b)]
    if question.kind == MERGE:
        subtree = find_subtree_rows(run, question.level, question.nodes[1])
        subtree = subtree[grouping.labels[subtree] == groups[1]]
        whole = grouping.rows_of(groups[0])
        sides = [np.setdiff1d(whole, subtree, assume_unique=True), subtree]
    else:
        sides = [grouping.rows_of(group) for group in groups]
    density = run.hierarchy.density
    described = []
    for row, group, rows in zip((question.a, question.b), groups, sides, strict=True):
        ordered = rows[np.argsort(-density[rows], kind="stable")]
        shown = np.concatenate(([row], ordered[ordered != row]))
        described.append(
            {
                "cluster": group,
                "name": explorer.review.state.names.get(group),
                "size": len(rows),
                "peak": row,
                "exemplars": describe_items(run, choose_exemplars(shown, _EXEMPLARS)),
            }
        )
    return {
        "key": question.key,
        "kind": question.kind,
        "level": question.level,
        "linkage": round_number(question.linkage),
        "sides": described,
    }


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
