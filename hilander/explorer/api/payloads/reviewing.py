"""The review: its queue, its log, its conflicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.errors import SettingError
from hilander.explorer.api.payloads.paging import describe_items, number, page_of
from hilander.explorer.partition.parts import rows_under
from hilander.explorer.partition.summary import spread_out
from hilander.explorer.review.queue import Question, is_open, known_apart
from hilander.explorer.review_log.state import REDO, UNDO, Event
from hilander.explorer.session.explorer import Explorer
from hilander.hierarchy.doubts import MERGE

KINDS = ("merge", "pair")
_SIDE = 9


def queue_page(explorer: Explorer, kind: str, offset: int, limit: int) -> dict[str, Any]:
    """Give one page of open questions, the most worth asking first."""
    if kind not in KINDS:
        raise SettingError(f"kind {kind[:20]!r} is unknown; use {' or '.join(KINDS)}")
    state = explorer.review.state
    still: list[Question] = explorer.remember(f"queue {kind}", lambda: _open(explorer, kind))
    entries = [describe_question(explorer, one) for one in still[offset : offset + limit]]
    page = page_of(entries, len(still), offset)
    page["answered"] = sum(1 for key in state.answers if key.startswith(kind + "-"))
    reason = None
    if kind == "pair" and explorer.run.graph is None:
        reason = "the run kept no graph, so likely pairs are not known"
    return page | {"reason": reason}


def _open(explorer: Explorer, kind: str) -> list[Question]:
    state = explorer.review.state
    apart = known_apart(state)
    asked = explorer.merges if kind == MERGE else explorer.pairs
    return [question for question in asked if is_open(question, state, apart)]


def describe_question(explorer: Explorer, question: Question) -> dict[str, Any]:
    """Tell a question with exemplars of both sides."""
    grouping = explorer.reviewed()
    run = explorer.run
    groups = [int(grouping.labels[row]) for row in (question.a, question.b)]
    if question.kind == MERGE:
        hanging = rows_under(run, question.level, question.nodes[1])
        hanging = hanging[grouping.labels[hanging] == groups[1]]
        whole = grouping.rows_of(groups[0])
        sides = [np.setdiff1d(whole, hanging, assume_unique=True), hanging]
    else:
        sides = [grouping.rows_of(group) for group in groups]
    density = run.hierarchy.density
    told = []
    for row, group, rows in zip((question.a, question.b), groups, sides, strict=True):
        ordered = rows[np.argsort(-density[rows], kind="stable")]
        shown = np.concatenate(([row], ordered[ordered != row]))
        told.append(
            {
                "cluster": group,
                "name": explorer.review.state.names.get(group),
                "size": len(rows),
                "peak": row,
                "exemplars": describe_items(run, spread_out(shown, _SIDE)),
            }
        )
    return {
        "key": question.key,
        "kind": question.kind,
        "level": question.level,
        "linkage": number(question.linkage),
        "sides": told,
    }


def log_page(explorer: Explorer, offset: int, limit: int) -> dict[str, Any]:
    """Give one page of the log, the latest first."""
    review = explorer.review
    held = {event.seq for event in review.done}
    latest = review.log[::-1][offset : offset + limit]
    entries = [
        {
            "seq": event.seq,
            "at": event.at,
            "kind": event.kind,
            "text": tell_event(event),
            "holds": event.seq in held,
            "carried": bool(event.payload.get("carried")),
            "clusters": _clusters_of(event),
        }
        for event in latest
    ]
    return page_of(entries, len(review.log), offset)


def tell_event(event: Event) -> str:
    """Say in words what an action did."""
    payload = event.payload
    kind = event.kind
    if kind in (UNDO, REDO):
        return f"{kind} of action {payload['of']}"
    if kind == "merge":
        return f"merged clusters {', '.join(map(str, payload['groups']))}"
    if kind == "split":
        sizes = ", ".join(str(len(part)) for part in payload["parts"])
        return f"split {sizes} items off cluster {payload['group']}"
    if kind == "move":
        where = "a new cluster" if payload["to"] is None else f"cluster {payload['to']}"
        return f"moved {len(payload['rows'])} item{'s' * (len(payload['rows']) > 1)} to {where}"
    if kind == "name":
        if not payload["name"]:
            return f"took the name of cluster {payload['group']} away"
        return f"named cluster {payload['group']} “{payload['name']}”"
    if kind == "junk":
        return f"marked cluster {payload['group']} as {'' if payload['junk'] else 'no '}junk"
    if kind == "answer":
        effect = "merged" if "groups" in payload else "split" if "parts" in payload else ""
        return f"answered {payload['verdict']}{', ' + effect if effect else ''}"
    if kind == "link":
        verdict = "same" if payload.get("must") else "different"
        return f"kept an earlier decision: {verdict}"
    raise SettingError(f"action {kind!r} is unknown")


def _clusters_of(event: Event) -> list[int]:
    payload = event.payload
    found = list(payload.get("groups", ()))
    found += [payload[name] for name in ("group", "to") if payload.get(name) is not None]
    return [int(group) for group in found]
