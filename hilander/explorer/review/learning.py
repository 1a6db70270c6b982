"""Learn from the answers how often each kind of question is answered "same"."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hilander.explorer.review_log.state import Event

# Standard deviation of the offset before any answer, in log-odds: the estimates for a set of
# another kind can be wrong by a factor of some three.
_SPREAD = 1.0
_NEWTON_STEPS = 12


def learn_offsets(events: Iterable[Event]) -> dict[str, float]:
    """Return what to add to the estimated log-odds of each kind of question.

    The most probable offset under a normal prior, given the answers.

    Parameters
    ----------
    events : iterable of Event
        Answers have ``asked``: the kind, the estimated log-odds of each decision, and what was
        answered.
    """
    asked: dict[str, tuple[list[float], list[bool]]] = {}
    for event in events:
        given = event.payload.get("asked")
        if given:
            logits, said = asked.setdefault(str(given["kind"]), ([], []))
            logits.extend(given["logits"])
            said.extend(given["said"])
    return {kind: fit_offset(np.array(x), np.array(y)) for kind, (x, y) in asked.items()}


def fit_offset(logits: np.ndarray, said: np.ndarray) -> float:
    """Return the most probable offset of some log-odds, given what came out.

    Parameters
    ----------
    logits : ndarray of shape (n,)
    said : ndarray of shape (n,), bool
    """
    offset = 0.0
    for _ in range(_NEWTON_STEPS):
        probability = 1 / (1 + np.exp(-(logits + offset)))
        slope = float((said - probability).sum()) - offset / _SPREAD**2
        bend = float((probability * (1 - probability)).sum()) + 1 / _SPREAD**2
        offset += float(np.clip(slope / bend, -1, 1))
    return offset
