"""The review queue: questions in the order of what an answer is expected to change.

A question is about one group and up to eight pieces: parts that may leave it, or other groups that
may join it. Its gain is the sum over the pieces of the probability that the answer changes
something times what that changes, see `weigh`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.errors import SettingError
from hilander.explorer.partition.grouping import Grouping
from hilander.explorer.partition.parts import find_subtree_rows
from hilander.explorer.partition.splits import Splits
from hilander.explorer.review.candidates import Candidates, estimate_splits, weigh
from hilander.explorer.review.learning import learn_offsets
from hilander.explorer.review_log.state import Event, ReviewState
from hilander.explorer.run.run_folder import Run
from hilander.graph.edges import logit_of
from hilander.hierarchy.doubts import find_doubtful_merges

# Parts of several items that may leave, single items that may leave, groups that may join, single
# items that may join. LINK: a merge of a run without a graph.
PART, ODD, PAIR, LONELY, LINK = "part", "odd", "pair", "lonely", "link"
KINDS = (PART, ODD, PAIR, LONELY)
LEAVING = (PART, ODD, LINK)
# Pieces of a question: as many as are seen at a glance and have a digit as their key.
MOST_PIECES = 8
# A decision whose outcome is this certain is not asked.
LEAST_CHANCE = 0.05
# The same for parting. A part that is not clearly another identity is often a mixture, as the rest.
_LEAST_TO_PART = {ODD: LEAST_CHANCE, PART: 0.4}
# Share of what parting two sides would bring that it brings: the sides that a person parts are
# often mixed, and then items of one identity are parted too.
_KEPT_WHEN_PARTED = 0.4
# Pieces of each kind that are kept before they are grouped into questions.
_MOST_RANKED = 4000
_LONGEST_NUMBER = 11


@dataclass(frozen=True)
class Question:
    """Do these pieces and the rest of the group belong together?

    Parameters
    ----------
    kind : {"part", "odd", "pair", "lonely", "link"}
    group : int
        Group as reviewed.
    pieces : tuple of int
        Nodes of the merge tree (`PART`, `ODD`), groups (`PAIR`, `LONELY`), or the level and the
        node of a merge (`LINK`).
    same : tuple of float, in [0, 1]
        Estimated probability of each piece that it belongs to the group.
    logits : tuple of float
        Its log-odds before the answers were learnt from.
    gain : float
        What the answer is expected to change, in items.
    """

    kind: str
    group: int
    pieces: tuple[int, ...]
    same: tuple[float, ...] = ()
    logits: tuple[float, ...] = ()
    gain: float = 0.0

    @property
    def key(self) -> str:
        """Identifies the question within its run."""
        return f"{self.kind}-{self.group}-{'.'.join(map(str, self.pieces))}"

    @property
    def is_leaving(self) -> bool:
        """Whether the pieces are in the group now."""
        return self.kind in LEAVING


def parse_question(key: str) -> Question:
    """Return the question with a given key, without its estimates."""
    kind, *numbers = key.split("-")
    if kind in (*KINDS, LINK) and len(numbers) == 2:
        found = [numbers[0], *numbers[1].split(".")]
        if len(found) <= MOST_PIECES + 1 and all(map(_is_number, found)):
            group, *pieces = map(int, found)
            if len(set(pieces)) == len(pieces) or kind == LINK:
                return Question(kind, group, tuple(pieces))
    raise SettingError(f"{key[:80]!r} is not the key of a question; reload the queue")


def find_pieces(
    question: Question, grouping: Grouping, candidates: Candidates | None
) -> list[IntArray]:
    """Return the rows of each piece of a question.

    Raises
    ------
    SettingError
        If a piece or the group has changed, so that the question no longer applies.
    """
    group, stale = question.group, SettingError("the clusters have changed; reload the queue")
    if not (0 <= group < grouping.n_groups and grouping.sizes[group]):
        raise stale
    pieces = []
    if question.kind == LINK:
        level, node = question.pieces
        pieces = [_rows_of_link(grouping.run, level, node)]
    elif question.is_leaving:
        n_nodes = 0 if candidates is None else len(candidates.leaves.start)
        for node in question.pieces:
            if candidates is None or node >= n_nodes:
                raise stale
            pieces.append(candidates.leaves.rows_of(node))
    else:
        for piece in question.pieces:
            if piece == group or not (piece < grouping.n_groups and grouping.sizes[piece]):
                raise stale
            pieces.append(grouping.rows_of(piece))
    if question.is_leaving:
        pieces = [np.sort(rows[grouping.labels[rows] == group]) for rows in pieces]
        taken = np.concatenate(pieces)
        if not all(map(len, pieces)) or len(np.unique(taken)) != len(taken):
            raise stale
        if len(taken) >= grouping.sizes[group]:
            raise stale
    return pieces


class Queue:
    """The open questions of a review at one moment, those of the highest gain first.

    Parameters
    ----------
    candidates : Candidates
    grouping : Grouping
        The reviewed partition.
    state : ReviewState
    events : list of Event
        Actions in force.
    """

    def __init__(
        self, candidates: Candidates, grouping: Grouping, state: ReviewState, events: list[Event]
    ) -> None:
        self.candidates, self.grouping, self.state = candidates, grouping, state
        self.offsets = learn_offsets(events)
        self.skipped = _find_skipped(state)
        self.is_junk = np.zeros(grouping.n_groups, dtype=bool)
        self.is_junk[list(state.junk)] = True

    def rank(self) -> list[Question]:
        """Return all open questions."""
        found = [*self._leaving(), *self._joining()]
        return sorted(found, key=lambda question: (-question.gain, question.key))

    def _leaving(self) -> list[Question]:
        splits = self.candidates.splits_of(self.state)
        logit = logit_of(estimate_splits(splits, self.candidates.graph.k))
        kept, confirmed = self._unanswered(splits)
        kept &= splits.size <= splits.rest
        # A part that was found to belong makes it likelier that the others of the group do.
        logit = logit + np.log1p(confirmed[splits.group])
        questions = []
        for kind in (ODD, PART):
            chosen = kept & ((splits.size == 1) == (kind == ODD))
            same = _sigmoid(logit + self.offsets.get(kind, 0.0))
            gain = _KEPT_WHEN_PARTED * (1 - same) * weigh(splits.size, splits.rest)
            gain[~chosen | (1 - same < _LEAST_TO_PART[kind])] = 0
            ranked = [i for i in np.argsort(-gain)[:_MOST_RANKED].tolist() if gain[i] > 0]
            taken: dict[int, list[int]] = defaultdict(list)
            for i in ranked:
                group = int(splits.group[i])
                before = taken.get(group, [])
                if len(before) < MOST_PIECES and self._fits(splits, before, i, kind):
                    taken[group].append(i)
            for group, chosen_parts in taken.items():
                estimates = splits.node, same, logit
                questions.append(_make_question(kind, group, chosen_parts, estimates, gain))
        return questions

    def _fits(self, splits: Splits, taken: list[int], one: int, kind: str) -> bool:
        """Whether a part can be asked about together with others of its group."""
        if (kind, int(splits.group[one]), int(splits.node[one])) in self.skipped:
            return False
        apart = all(
            splits.high[one] <= splits.low[other] or splits.high[other] <= splits.low[one]
            for other in taken
        )
        # What is left must still show what the group is.
        asked = sum(int(splits.size[i]) for i in (*taken, one))
        return apart and 2 * asked <= int(splits.size[one] + splits.rest[one])

    def _joining(self) -> list[Question]:
        joins = self.candidates.joins_of(self.state)
        sizes = self.grouping.sizes
        same = logit_of(joins.estimate(sizes, self.candidates.graph.k))
        a_is_larger = sizes[joins.a] >= sizes[joins.b]
        target = np.where(a_is_larger, joins.a, joins.b)
        piece = np.where(a_is_larger, joins.b, joins.a)
        open_pairs = ~(self.is_junk[target] | self.is_junk[piece])
        open_pairs &= ~self._separated(joins.a, joins.b)
        questions = []
        for kind in (LONELY, PAIR):
            chosen = open_pairs & ((sizes[piece] == 1) == (kind == LONELY))
            probable = _sigmoid(same + self.offsets.get(kind, 0.0))
            gain = probable * weigh(sizes[target], sizes[piece])
            gain[~chosen | (probable < LEAST_CHANCE)] = 0
            taken: dict[int, list[int]] = defaultdict(list)
            seen: set[int] = set()
            for i in np.argsort(-gain)[:_MOST_RANKED].tolist():
                group, other = int(target[i]), int(piece[i])
                is_new = other not in seen and (kind, group, other) not in self.skipped
                if gain[i] > 0 and is_new and len(taken.get(group, ())) < MOST_PIECES:
                    taken[group].append(i)
                    seen.add(other)
            for group, pairs in taken.items():
                estimates = piece, probable, same
                questions.append(_make_question(kind, group, pairs, estimates, gain))
        return questions

    def _unanswered(self, splits: Splits) -> tuple[BoolArray, NDArray[np.float64]]:
        """Which parts no answer "same" holds in their groups, and such answers of each group."""
        kept = ~self.is_junk[splits.group]
        confirmed = np.zeros(self.grouping.n_groups)
        labels, place = self.state.labels, self.candidates.leaves.place
        by_group: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for a, b in self.state.constraints()[0]:
            by_group[int(labels[a])].append((int(place[a]), int(place[b])))
        if not by_group:
            return kept, confirmed
        answered = np.flatnonzero(np.isin(splits.group, list(by_group)))
        order = answered[np.argsort(splits.group[answered], kind="stable")]
        for group, pairs in by_group.items():
            confirmed[group] = len(pairs)
            first, last = np.searchsorted(splits.group[order], [group, group + 1])
            mine = order[first:last]
            low, high = splits.low[mine][:, None], splits.high[mine][:, None]
            one, other = np.array(pairs).T
            inside = ((low <= one) & (one < high)) != ((low <= other) & (other < high))
            kept[mine[inside.any(axis=1)]] = False
        return kept, confirmed

    def _separated(self, a: IntArray, b: IntArray) -> BoolArray:
        """Which pairs of groups hold items that are known to be different."""
        cannot = self.state.constraints()[1]
        if not cannot:
            return np.zeros(len(a), dtype=bool)
        groups = self.state.labels[np.array(cannot)]
        n_groups = self.grouping.n_groups
        known = groups.min(axis=1) * n_groups + groups.max(axis=1)
        return np.isin(a * n_groups + b, known)


def rank_links(run: Run, state: ReviewState) -> list[Question]:
    """Rank the merges of a run without a graph, by the linkage that joined them."""
    found = []
    for doubt in find_doubtful_merges(run.hierarchy):
        group = int(state.labels[doubt.b])
        question = Question(
            LINK, group, (doubt.level, doubt.nodes[1]), (doubt.linkage,), gain=doubt.weight
        )
        together = group == int(state.labels[doubt.a])
        if together and group not in state.junk and question.key not in state.answers:
            found.append(question)
    return found


def _make_question(
    kind: str, group: int, chosen: list[int], estimates: tuple[Any, Any, Any], gain: FloatArray
) -> Question:
    pieces, same, logits = (tuple(one[chosen].tolist()) for one in estimates)
    return Question(kind, group, pieces, same, logits, float(gain[chosen].sum()))


def _rows_of_link(run: Run, level: int, node: int) -> IntArray:
    """Return the rows that a merge of a level attached."""
    known = 0 <= level < run.n_levels and node < run.hierarchy.levels[level].n_nodes
    if not known or np.isnan(run.hierarchy.levels[level].linkage[node]):
        raise SettingError(f"there is no merge of node {node} at level {level}; reload the queue")
    return find_subtree_rows(run, level, node)


def _find_skipped(state: ReviewState) -> set[tuple[str, int, int]]:
    """Kind, group and piece of each decision that was skipped."""
    found = set()
    for key, verdict in state.answers.items():
        if verdict == "skip":
            try:
                question = parse_question(key)
            except SettingError:  # a key of version 0.1
                continue
            found |= {(question.kind, question.group, piece) for piece in question.pieces}
    return found


def _sigmoid(logit: Any) -> FloatArray:
    probability: FloatArray = 1 / (1 + np.exp(-logit))
    return probability


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
