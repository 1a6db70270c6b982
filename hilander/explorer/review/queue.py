"""What to ask the reviewer: merges that were doubtful, and clusters that look like one identity."""

from __future__ import annotations

from hilander.errors import SettingError
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.review_log.state import ReviewState
from hilander.explorer.run.run_folder import Run
from hilander.hierarchy.doubts import (
    MERGE,
    PAIR,
    Doubt,
    doubt_merge,
    find_doubtful_merges,
    find_merge_candidates,
)

# A question is a doubt that is put to the reviewer; its key is what requests and the log name.
Question = Doubt


def doubtful_merges(run: Run) -> list[Question]:
    """Rank the merges of clusters by doubt and by how much hangs on them."""
    return find_doubtful_merges(run.hierarchy)


def merge_candidates(run: Run) -> list[Question]:
    """Rank the pairs of clusters of the last level that look like one identity."""
    if run.graph is None:
        return []
    return find_merge_candidates(run.hierarchy, run.graph.neighbours, run.graph.linkage)


def pair_question(base: Grouping, a: int, b: int) -> Question:
    """Give the question about one pair of clusters of the run; its weight is not known (0)."""
    if a == b or not (0 <= a < len(base.sizes) and 0 <= b < len(base.sizes)):
        raise SettingError(f"there is no pair of clusters {a} and {b}; reload the queue")
    return Question(PAIR, int(base.peaks[a]), int(base.peaks[b]), base.level, (a, b), 0.0, 0.0)


def question_of(key: str, run: Run, base: Grouping) -> Question:
    """Give the question that a key names."""
    kind, *numbers = key.split("-")
    if (
        kind in (MERGE, PAIR)
        and len(numbers) == 2
        and all(number.isascii() and number.isdigit() and len(number) < 12 for number in numbers)
    ):
        first, second = int(numbers[0]), int(numbers[1])
        if kind == MERGE:
            return doubt_merge(run.hierarchy, first, second)
        return pair_question(base, first, second)
    raise SettingError(f"{key[:80]!r} names no question; reload the queue")


def is_open(question: Question, state: ReviewState, apart: set[tuple[int, int]]) -> bool:
    """Whether a question still has a meaning and no answer.

    Parameters
    ----------
    question : Question
    state : ReviewState
    apart : set of (int, int)
        Pairs of groups, the lower first, that are known to be different.
    """
    if question.key in state.answers:
        return False
    a, b = int(state.labels[question.a]), int(state.labels[question.b])
    if a in state.junk or b in state.junk:
        return False
    if question.kind == MERGE:
        return a == b
    return a != b and (min(a, b), max(a, b)) not in apart


def known_apart(state: ReviewState) -> set[tuple[int, int]]:
    """Pairs of groups that an answer said are different."""
    groups = ((int(state.labels[a]), int(state.labels[b])) for a, b in state.constraints()[1])
    return {(min(pair), max(pair)) for pair in groups}
