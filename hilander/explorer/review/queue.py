"""The review queue: doubtful merges, and merge candidates."""

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

# A key is a kind and two numbers; longer numbers are no index.
_LONGEST_NUMBER = 11

# A question to the reviewer is a doubt. Requests and the log refer to it by its key.
Question = Doubt


def rank_doubtful_merges(run: Run) -> list[Question]:
    """Rank the merges of clusters by doubt and by the number of points that they concern."""
    return find_doubtful_merges(run.hierarchy)


def rank_merge_candidates(run: Run) -> list[Question]:
    """Rank pairs of clusters of the last level by how probable it is that they are one identity."""
    if run.graph is None:
        return []
    return find_merge_candidates(run.hierarchy, run.graph.neighbours, run.graph.linkage)


def make_pair_question(base: Grouping, a: int, b: int) -> Question:
    """Return the question about a pair of clusters of the run, with weight 0."""
    if a == b or not (0 <= a < len(base.sizes) and 0 <= b < len(base.sizes)):
        raise SettingError(f"clusters {a} and {b} are not a pair; reload the queue")
    return Question(PAIR, int(base.peaks[a]), int(base.peaks[b]), base.level, (a, b), 0.0, 0.0)


def parse_question(key: str, run: Run, base: Grouping) -> Question:
    """Return the question with a given key."""
    kind, *numbers = key.split("-")
    if (
        kind in (MERGE, PAIR)
        and len(numbers) == 2
        and all(
            number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER
            for number in numbers
        )
    ):
        first, second = int(numbers[0]), int(numbers[1])
        if kind == MERGE:
            return doubt_merge(run.hierarchy, first, second)
        return make_pair_question(base, first, second)
    raise SettingError(f"{key[:80]!r} is not the key of a question; reload the queue")


def is_open(question: Question, state: ReviewState, separated: set[tuple[int, int]]) -> bool:
    """Return whether a question has no answer and still applies to the present groups.

    Parameters
    ----------
    question : Question
    state : ReviewState
    separated : set of (int, int)
        Result of `find_separated_groups`.
    """
    if question.key in state.answers:
        return False
    a, b = int(state.labels[question.a]), int(state.labels[question.b])
    if a in state.junk or b in state.junk:
        return False
    if question.kind == MERGE:
        return a == b
    return a != b and (min(a, b), max(a, b)) not in separated


def find_separated_groups(state: ReviewState) -> set[tuple[int, int]]:
    """Return the pairs of groups, the lower first, that a cannot-link separates."""
    groups = ((int(state.labels[a]), int(state.labels[b])) for a, b in state.constraints()[1])
    return {(min(pair), max(pair)) for pair in groups}
