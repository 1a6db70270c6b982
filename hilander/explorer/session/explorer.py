"""The Explorer: one opened run with its review. Every view and every action uses it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilander.arrays.rows import IntArray
from hilander.errors import FileFormatError, HiLanderError, LevelError, SettingError
from hilander.explorer.partition.grouping import (
    GroupFacts,
    Grouping,
    group_by_level,
    group_by_review,
)
from hilander.explorer.review.actions import prepare_action
from hilander.explorer.review.candidates import Candidates, find_candidates
from hilander.explorer.review.carry import Carried, carry_over
from hilander.explorer.review.conflicts import find_unsolved, prepare_solution
from hilander.explorer.review.queue import (
    Question,
    Queue,
    find_pieces,
    parse_question,
    rank_links,
)
from hilander.explorer.review.wording import describe_action
from hilander.explorer.review_log.state import (
    REDO,
    UNDO,
    Event,
    ReviewState,
    count_new_groups,
    resolve_undos,
)
from hilander.explorer.review_log.store import Base, ReviewStore
from hilander.explorer.run.map_layout import MapLayout, build_map
from hilander.explorer.run.run_folder import Run
from hilander.metrics.report import score_clustering

REVIEWED = "reviewed"
SOLVE = "solve"
# Attempts to append an action while another process writes to the same log.
_ATTEMPTS = 5
# Values that are computed once, in the background if possible.
_PRECOMPUTED = ("candidates", "map", "metrics")


@dataclass
class Review:
    """The review at one moment. It is replaced and never changed, so readers need no lock.

    Parameters
    ----------
    state : ReviewState
    log : list of Event
        All events, undos and redos included.
    done, undone : list of Event
        Actions in force, and actions that a redo would restore.
    """

    state: ReviewState
    log: list[Event] = field(default_factory=list)
    done: list[Event] = field(default_factory=list)
    undone: list[Event] = field(default_factory=list)

    @property
    def revision(self) -> int:
        """Number of the last event."""
        return self.log[-1].seq if self.log else 0


class Explorer:
    """A run, its review, and values that are computed from them on first use.

    Parameters
    ----------
    run : Run
    store : ReviewStore
    others : dict of str to Run, optional
        Runs to compare with.
    cache : Path, optional
        Folder for values that take long to compute.
    """

    def __init__(
        self,
        run: Run,
        store: ReviewStore,
        others: dict[str, Run] | None = None,
        cache: Path | None = None,
    ) -> None:
        self.run = run
        self.store = store
        self.others = others or {}
        self.cache = cache
        self.opened_stamp = run.stamp()
        self.stopping = threading.Event()
        self._lock = threading.RLock()
        self._computed: dict[str, Any] = {}
        self._compute_locks = {name: threading.Lock() for name in _PRECOMPUTED}
        self._precomputing = False
        self._levels = [group_by_level(run, level) for level in range(run.n_levels)]
        self._grouping: tuple[tuple[int, bool], Grouping] | None = None
        self._base_id: int | None = None
        self._group_facts: dict[int, GroupFacts] = {}
        self._by_revision: dict[str, tuple[int, Any]] = {}
        self.review = Review(self._fresh_state())
        self._open_review()

    @property
    def base(self) -> Grouping:
        """The last level of the hierarchy, which the review starts from."""
        return self._levels[-1]

    def grouping(self, level: str | int = REVIEWED) -> Grouping:
        """Return a level by its number, or the last level as reviewed."""
        if str(level) == REVIEWED:
            return self.reviewed()
        text = str(level)
        if not (text.isascii() and text.isdigit() and int(text) < self.run.n_levels):
            raise LevelError(
                f"level {text[:20]!r} does not exist; use {REVIEWED!r} or 0 to "
                f"{self.run.n_levels - 1}"
            )
        return self._levels[int(text)]

    def reviewed(self) -> Grouping:
        """Return the last level as reviewed."""
        review, candidates = self.review, self._computed.get("candidates")
        cached, key = self._grouping, (review.revision, candidates is not None)
        if cached is not None and cached[0] == key:
            return cached[1]
        grouping = group_by_review(self.run, review.state, self.base, self._group_facts)
        if candidates is not None:
            grouping.doubt = candidates.doubt_of(review.state)
        self._grouping = (key, grouping)
        return grouping

    def act(self, kind: str, body: dict[str, Any], client_key: str | None = None) -> Event:
        """Apply one action; it is in the log on disk when this returns.

        Parameters
        ----------
        kind : str
            merge, split, move, name, junk, answer, solve, undo or redo.
        body : dict
            Arguments of the action.
        client_key : str, optional
            Identifies the request. A second request with the same key changes nothing.
        """
        with self._lock:
            base = self._ensure_base()
            for _ in range(_ATTEMPTS):
                self._read_new_events(base)
                if client_key is not None and self.store.find_key(client_key) is not None:
                    return self._find_logged(client_key)
                kind_written, payload, after = self._plan(kind, body)
                event = self.store.append(
                    base, kind_written, payload, client_key, self.review.revision
                )
                if event is not None:
                    after.log = [*self.review.log, event]
                    if kind not in (UNDO, REDO):
                        after.done = [*self.review.done, event]
                    self.review = after
                    return event
            raise SettingError("another process is writing to the same review; try again")

    def find_question(self, key: str) -> tuple[Question, list[IntArray]]:
        """Return the question with a given key, with its estimates if it is open, and its rows."""
        question = next((one for one in self.questions if one.key == key), parse_question(key))
        return question, find_pieces(question, self.reviewed(), self.candidates)

    @property
    def candidates(self) -> Candidates | None:
        """What could be asked; None if the run has no graph."""
        found: Candidates | None = self._once(
            "candidates", lambda: find_candidates(self.run, self.base)
        )
        return found

    @property
    def questions(self) -> list[Question]:
        """The open questions, those of the highest gain first."""
        found: list[Question] = self.cache_by_revision("questions", self._rank_questions)
        return found

    def _rank_questions(self) -> list[Question]:
        review, candidates = self.review, self.candidates
        if candidates is None:
            return rank_links(self.run, review.state)
        return Queue(candidates, self.reviewed(), review.state, review.done).rank()

    @property
    def map(self) -> MapLayout | None:
        """Positions of the peaks on the map, if the run has their features."""
        layout: MapLayout | None = self._once("map", lambda: build_map(self.run, self.cache))
        return layout

    @property
    def map_pending(self) -> bool:
        """Whether the map is being computed, so that reading `map` would block."""
        return self._precomputing and "map" not in self._computed

    @property
    def metrics(self) -> list[dict[str, Any]] | None:
        """Scores of each level, if identities are known and the scores are computed."""
        return self._computed.get("metrics")

    def precompute(self) -> None:
        """Compute all slow values, so that no request has to wait for them."""
        self._precomputing = True
        try:
            self.run.items.find("", 1)
            for grouping in self._levels:
                _ = grouping.purity
                for sort in ("size", "doubt", "quality", "purity"):
                    grouping.order(sort)
            _ = self.questions
            known = self.run.items.labels
            if known is not None:
                scores = [score_clustering(known.codes, one.labels) for one in self._levels]
                self._once("metrics", lambda: [one.to_dict() for one in scores])
            _ = self.map
        finally:
            self._precomputing = False

    def start_precomputing(self, delay: float = 0.0) -> threading.Thread:
        """Run `precompute` in the background after a delay in seconds."""
        self._precomputing = True
        thread = threading.Timer(delay, self.precompute)
        thread.daemon = True
        thread.start()
        return thread

    def cache_by_revision(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a named value; it is computed again after the review has changed."""
        revision = self.review.revision
        cached = self._by_revision.get(name)
        if cached is None or cached[0] != revision:
            cached = (revision, make())
            self._by_revision[name] = cached
        return cached[1]

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._computed:
            with self._compute_locks[name]:
                if name not in self._computed:
                    self._computed[name] = make()
        return self._computed[name]

    def carried_conflicts(self) -> list[dict[str, Any]]:
        """Return the decisions of an earlier clustering that do not fit and are not solved."""
        if self._base_id is None:
            return []
        review = self.review
        return find_unsolved(self.store.conflicts(self._base_id), review.state, review.done)

    def import_review(self, other: ReviewStore) -> Carried:
        """Carry the review of another run over to this one."""
        with self._lock:
            if self.review.log:
                raise SettingError(
                    "this run has a review already; import into a run without one, or move its "
                    "review away"
                )
            base = other.latest_base()
            if base is None:
                raise SettingError("the other folder has no review to import")
            return self._carry(base, other)

    def _plan(self, kind: str, body: dict[str, Any]) -> tuple[str, dict[str, Any], Review]:
        """Return an action as it will be written, and the review that results."""
        review = self.review
        if kind == UNDO:
            return UNDO, *self._plan_undo(review, body.get("seq"))
        if kind == REDO:
            if not review.undone:
                raise SettingError("there is nothing to redo")
            again = review.undone[-1]
            state = review.state.copy()
            state.apply(again)
            done, undone = [*review.done, again], review.undone[:-1]
            return REDO, {"of": again.seq}, Review(state, done=done, undone=undone)
        if kind == SOLVE:
            kind, payload = self._prepare_solution(body)
        else:
            payload = prepare_action(self.reviewed(), kind, body, self.find_question)
        first = review.state.next_group
        if count := count_new_groups(kind, payload):
            payload["new"] = list(range(first, first + count))
        payload["words"] = describe_action(review.state, kind, payload, self.run.items.id_of)
        state = review.state.copy()
        state.apply(Event(review.revision + 1, kind, payload))
        return kind, payload, Review(state)

    def _prepare_solution(self, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        wanted = body.get("conflict")
        known = {one["conflict"]: one for one in self.carried_conflicts()}
        if wanted not in known:
            raise SettingError(f"there is no open conflict {wanted}; reload the page")
        return prepare_solution(known[wanted], body.get("choice"), self.reviewed(), self.candidates)

    def _plan_undo(self, review: Review, seq: int | None) -> tuple[dict[str, Any], Review]:
        """Plan to undo one action, or the last one."""
        own = [event for event in review.done if not event.payload.get("carried")]
        if seq is None and not own:
            raise SettingError("there is nothing to undo")
        wanted = own[-1] if seq is None else next((one for one in own if one.seq == seq), None)
        if wanted is None:
            raise SettingError(f"action {seq} is undone already or is not one of this review")
        place = review.done.index(wanted)
        later = review.done[place + 1 :]
        done, undone = [*review.done[:place], *later], [*review.undone, wanted]
        # Without recorded numbers, the new clusters of a later action would change theirs.
        renumbers = count_new_groups(wanted.kind, wanted.payload) and any(
            count_new_groups(one.kind, one.payload) and "new" not in one.payload for one in later
        )
        try:
            if renumbers:
                raise FileFormatError("clusters would change their numbers")
            return {"of": wanted.seq}, Review(self._replay(done), done=done, undone=undone)
        except FileFormatError as error:
            raise SettingError(
                f"this cannot be undone alone, because {len(later)} later actions build on it; "
                "undo those first"
            ) from error

    def _open_review(self) -> None:
        latest = self.store.latest_fingerprint()
        if latest is None:
            return
        number, fingerprint = latest
        if fingerprint == self.run.fingerprint:
            self._base_id = number
            self._load(number)
            return
        base = self.store.latest_base()
        if base is not None:
            self._carry(base, self.store)

    def _carry(self, base: Base, store: ReviewStore) -> Carried:
        old = ReviewState(base.labels, base.n_clusters)
        for event in resolve_undos(store.events(base.id))[0]:
            old.apply(event)
        new = self._own_base()
        carried = carry_over(base, old, new)
        self._base_id = self.store.add_base(new, carried.events, carried.conflicts)
        self._load(self._base_id)
        return carried

    def _load(self, base: int) -> None:
        log = self.store.events(base)
        done, undone = resolve_undos(log)
        self.review = Review(self._replay(done), log, done, undone)

    def _read_new_events(self, base: int) -> None:
        """Read events that another process appended to the same log."""
        if self.store.events(base, self.review.revision):
            self._load(base)

    def _find_logged(self, client_key: str) -> Event:
        seq = self.store.find_key(client_key)
        return next(event for event in self.review.log if event.seq == seq)

    def _replay(self, events: list[Event]) -> ReviewState:
        state = self._fresh_state()
        for event in events:
            try:
                state.apply(event)
            except (HiLanderError, LookupError, TypeError, ValueError, AttributeError) as error:
                raise FileFormatError(
                    f"{self.store.path}: action {event.seq} does not fit this run ({error}); "
                    "move the file away to start again"
                ) from error
        return state

    def _fresh_state(self) -> ReviewState:
        last = self.run.n_levels - 1
        table = self.run.nested.tables[last]
        return ReviewState(
            table.labels, table.n_numbers, lambda group: self.run.nested.members(last, group)
        )

    def _ensure_base(self) -> int:
        if self._base_id is None:
            self._base_id = self.store.add_base(self._own_base())
        return self._base_id

    def _own_base(self) -> Base:
        ids = [str(value) for value in self.run.items.ids.to_pylist()]
        return Base(0, self.run.fingerprint, self.base.n_groups, ids, self.base.labels)
