"""What to ask the reviewer: merges that were doubtful, and clusters that look like one identity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.errors import SettingError
from hilander.web.grouping import Grouping
from hilander.web.review_state import ReviewState
from hilander.web.run import Run

MERGE, PAIR = "merge", "pair"
MOST_QUESTIONS = 2000
# A merge this sure is not worth a question.
_SURE = 0.98


@dataclass(frozen=True)
class Question:
    """Two sides to be told apart or put together.

    Parameters
    ----------
    kind : {"merge", "pair"}
        A merge that was made, or a pair of clusters that was not.
    a, b : int
        Rows that stand for the two sides; in a merge, b was attached to a.
    level : int
        The level of the merge; that of the review for a pair.
    nodes : tuple of int
        The two nodes (merge) or clusters of the run (pair).
    linkage : float, in [0, 1]
        How sure the link is, or how much linkage runs between the pair.
    weight : float
        What the queue is sorted by, larger first.
    """

    kind: str
    a: int
    b: int
    level: int
    nodes: tuple[int, int]
    linkage: float
    weight: float

    @property
    def key(self) -> str:
        """Names the question in requests and in the log."""
        first = self.level if self.kind == MERGE else self.nodes[0]
        return f"{self.kind}-{first}-{self.nodes[1]}"


def doubtful_merges(run: Run) -> list[Question]:
    """Rank the merges of clusters by doubt and by how much hangs on them.

    With a single level the merges are those of points.
    """
    first = 1 if run.n_levels > 1 else 0
    found: list[Question] = []
    for level in range(first, run.n_levels):
        linkage = run.hierarchy.levels[level].linkage
        nodes = np.flatnonzero(linkage < _SURE)  # NaN, a peak, is never below
        parents = run.hierarchy.levels[level].parent[nodes]
        below = run.nested.tables[level - 1].sizes if level else np.ones(run.n_points, np.int64)
        smaller = np.minimum(below[nodes], below[parents])
        weight = (1 - linkage[nodes]) * np.log2(1.0 + smaller)
        for place in np.argsort(-weight, kind="stable")[:MOST_QUESTIONS].tolist():
            found.append(merge_question(run, level, int(nodes[place]), float(weight[place])))
    found.sort(key=lambda question: -question.weight)
    return found[:MOST_QUESTIONS]


def merge_question(run: Run, level: int, node: int, weight: float = 0.0) -> Question:
    """Give the question about one merge."""
    known = 0 <= level < run.n_levels and 0 <= node < run.hierarchy.levels[level].n_nodes
    if not known or np.isnan(run.hierarchy.levels[level].linkage[node]):
        raise SettingError(f"there is no merge of node {node} at level {level}; reload the queue")
    chosen = run.hierarchy.levels[level]
    parent = int(chosen.parent[node])
    peaks = np.arange(run.n_points) if level == 0 else run.nested.tables[level - 1].peaks
    return Question(
        MERGE, int(peaks[parent]), int(peaks[node]), level, (parent, node),
        float(chosen.linkage[node]), weight,
    )  # fmt: skip


def likely_pairs(run: Run, base: Grouping) -> list[Question]:
    """Rank the pairs of clusters of the last level that look like one identity."""
    if run.graph is None:
        return []
    pairs = run.graph.cluster_pairs(base.labels, base.sizes, MOST_QUESTIONS)
    columns = zip(pairs.a.tolist(), pairs.b.tolist(), pairs.strength.tolist(), strict=True)
    return [pair_question(base, a, b, strength) for a, b, strength in columns]


def pair_question(base: Grouping, a: int, b: int, strength: float = 0.0) -> Question:
    """Give the question about one pair of clusters of the run."""
    if a == b or not (0 <= a < len(base.sizes) and 0 <= b < len(base.sizes)):
        raise SettingError(f"there is no pair of clusters {a} and {b}; reload the queue")
    weight = strength * float(np.log2(1.0 + min(base.sizes[a], base.sizes[b])))
    peaks = base.peaks
    return Question(PAIR, int(peaks[a]), int(peaks[b]), base.level, (a, b), strength, weight)


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
            return merge_question(run, first, second)
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
