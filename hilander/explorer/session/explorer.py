"""One opened run with the user's review: what every view and every action goes through."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilander.errors import FileFormatError, HiLanderError, LevelError, SettingError
from hilander.explorer.partition.grouping import Grouping, group_by_level, group_by_review
from hilander.explorer.review.actions import prepare_action
from hilander.explorer.review.carry import Carried, carry_over
from hilander.explorer.review.queue import Question, doubtful_merges, merge_candidates, question_of
from hilander.explorer.review_log.state import REDO, UNDO, Event, ReviewState, effective
from hilander.explorer.review_log.store import Base, ReviewStore
from hilander.explorer.run.map_layout import MapLayout, build_map
from hilander.explorer.run.run_folder import Run
from hilander.io.writing import write_json
from hilander.metrics.report import score_clustering

REVIEWED = "reviewed"
_TRIES = 5
_SLOW = ("merges", "pairs", "map", "metrics")


@dataclass
class Review:
    """The review as of one moment; replaced, never changed, so readers need no lock.

    Parameters
    ----------
    state : ReviewState
    log : list of Event
        Everything that was done, undos too.
    done, undone : list of Event
        Actions that hold, and those a redo would bring back.
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
    """A run, its review and what is worked out from them when first needed.

    Parameters
    ----------
    run : Run
    store : ReviewStore
    others : dict of str to Run, optional
        Runs to compare with.
    cache : Path, optional
        Folder for what is slow to work out.
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
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}
        self._slow_locks = {name: threading.Lock() for name in _SLOW}
        self._working = False
        self._levels = [group_by_level(run, level) for level in range(run.n_levels)]
        self._grouping: tuple[int, Grouping] | None = None
        self._base_id: int | None = None
        self._remembered: dict[str, tuple[int, Any]] = {}
        self.review = Review(self._fresh_state())
        self._open_review()

    @property
    def base(self) -> Grouping:
        """The last level, which the review starts from."""
        return self._levels[-1]

    def grouping(self, level: str | int = REVIEWED) -> Grouping:
        """Give a level by its number, or the last one as reviewed."""
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
        """Give the last level as the review has changed it."""
        review = self.review
        kept = self._grouping
        if kept is not None and kept[0] == review.revision:
            return kept[1]
        made = group_by_review(self.run, review.state, self.base)
        self._grouping = (review.revision, made)
        return made

    def act(self, kind: str, body: dict[str, Any], client_key: str | None = None) -> Event:
        """Do one action; it is in the log, on disk, when this returns.

        Parameters
        ----------
        kind : str
            merge, split, move, name, junk, answer, undo or redo.
        body : dict
            What the action needs.
        client_key : str, optional
            A request that is sent again with the same key is not done again.
        """
        with self._lock:
            base = self._ensure_base()
            for _ in range(_TRIES):
                self._read_on(base)
                if client_key is not None and self.store.find_key(client_key) is not None:
                    return self._logged(client_key)
                payload, after = self._plan(kind, body)
                event = self.store.append(base, kind, payload, client_key, self.review.revision)
                if event is not None:
                    after.log = [*self.review.log, event]
                    if kind not in (UNDO, REDO):
                        after.done = [*self.review.done, event]
                    self.review = after
                    return event
            raise SettingError("another explorer is writing to the same review; try again")

    def question(self, key: str) -> Question:
        """Give the question that a key names."""
        return question_of(key, self.run, self.base)

    @property
    def merges(self) -> list[Question]:
        """Doubtful merges, the most doubtful first."""
        found: list[Question] = self._once("merges", lambda: doubtful_merges(self.run))
        return found

    @property
    def pairs(self) -> list[Question]:
        """Clusters that look like one identity, the likeliest first."""
        found: list[Question] = self._once("pairs", lambda: merge_candidates(self.run))
        return found

    @property
    def map(self) -> MapLayout | None:
        """Places of the peaks on the map."""
        made: MapLayout | None = self._once("map", lambda: build_map(self.run, self.cache))
        return made

    @property
    def map_pending(self) -> bool:
        """Whether the map is being worked out, so that asking for it would have to wait."""
        return self._working and "map" not in self._made

    @property
    def metrics(self) -> list[dict[str, Any]] | None:
        """Scores of each level if identities are known and they are worked out already."""
        return self._made.get("metrics")

    def work_out(self) -> None:
        """Work out everything that is slow, so that no request has to wait for it."""
        self._working = True
        try:
            self.run.items.find("", 1)
            for grouping in self._levels:
                _ = grouping.purity
                for sort in ("size", "doubt", "quality", "purity"):
                    grouping.order(sort)
            _ = self.merges, self.pairs
            known = self.run.items.labels
            if known is not None:
                scores = [score_clustering(known.codes, one.labels) for one in self._levels]
                self._once("metrics", lambda: [one.to_dict() for one in scores])
            _ = self.map
        finally:
            self._working = False

    def start_work(self, delay: float = 0.0) -> threading.Thread:
        """Work everything out in the background, after so many seconds."""
        self._working = True
        thread = threading.Timer(delay, self.work_out)
        thread.daemon = True
        thread.start()
        return thread

    def remember(self, name: str, make: Callable[[], Any]) -> Any:
        """Give what was worked out under a name, anew after the review has changed."""
        revision = self.review.revision
        kept = self._remembered.get(name)
        if kept is None or kept[0] != revision:
            kept = (revision, make())
            self._remembered[name] = kept
        return kept[1]

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._made:
            with self._slow_locks[name]:
                if name not in self._made:
                    self._made[name] = make()
        return self._made[name]

    def carried_conflicts(self) -> list[dict[str, Any]]:
        """What could not be carried over from an earlier clustering."""
        return [] if self._base_id is None else self.store.conflicts(self._base_id)

    def import_review(self, other: ReviewStore) -> Carried:
        """Carry the review of another run's explorer over to this one."""
        with self._lock:
            if self.review.log:
                raise SettingError(
                    "this run has a review already; import into a run without one, or move its "
                    "review away"
                )
            base = other.latest_base()
            if base is None:
                raise SettingError("the other explorer has no review to import")
            return self._carry(base, other)

    def _plan(self, kind: str, body: dict[str, Any]) -> tuple[dict[str, Any], Review]:
        """Work out the payload of an action and what it leads to, before it is written."""
        review = self.review
        if kind == UNDO:
            mine = [event for event in review.done if not event.payload.get("carried")]
            if not mine:
                raise SettingError("there is nothing to undo")
            done, undone = review.done[:-1], [*review.undone, review.done[-1]]
            return {"of": undone[-1].seq}, Review(self._replay(done), done=done, undone=undone)
        if kind == REDO:
            if not review.undone:
                raise SettingError("there is nothing to redo")
            again = review.undone[-1]
            state = review.state.copy()
            state.apply(again)
            done, undone = [*review.done, again], review.undone[:-1]
            return {"of": again.seq}, Review(state, done=done, undone=undone)
        payload = prepare_action(self.reviewed(), kind, body, self.question)
        state = review.state.copy()
        state.apply(Event(review.revision + 1, kind, payload))
        return payload, Review(state)

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
        for event in effective(store.events(base.id))[0]:
            old.apply(event)
        new = self._own_base()
        carried = carry_over(base, old, new)
        self._base_id = self.store.add_base(new, carried.events, carried.conflicts)
        self._load(self._base_id)
        return carried

    def _load(self, base: int) -> None:
        log = self.store.events(base)
        done, undone = effective(log)
        self.review = Review(self._replay(done), log, done, undone)

    def _read_on(self, base: int) -> None:
        """Take in what another explorer wrote to the same log."""
        if self.store.events(base, self.review.revision):
            self._load(base)

    def _logged(self, client_key: str) -> Event:
        seq = self.store.find_key(client_key)
        return next(event for event in self.review.log if event.seq == seq)

    def _replay(self, events: list[Event]) -> ReviewState:
        state = self._fresh_state()
        for event in events:
            try:
                state.apply(event)
            except (HiLanderError, KeyError, TypeError, ValueError) as error:
                raise FileFormatError(
                    f"{self.store.path}: action {event.seq} does not fit this run ({error}); "
                    "move the file away to start afresh"
                ) from error
        return state

    def _fresh_state(self) -> ReviewState:
        last = self.run.n_levels - 1
        table = self.run.nested.tables[last]
        return ReviewState(
            table.labels, table.n_clusters, lambda group: self.run.nested.members(last, group)
        )

    def _ensure_base(self) -> int:
        if self._base_id is None:
            self._base_id = self.store.add_base(self._own_base())
        return self._base_id

    def _own_base(self) -> Base:
        ids = [str(value) for value in self.run.items.ids.to_pylist()]
        return Base(0, self.run.fingerprint, self.base.n_groups, ids, self.base.labels)


def mark_state_folder(folder: Path) -> None:
    """Say in the folder itself what it is."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "README.json"
    if not note.exists():
        write_json(note, {"review.sqlite": "your review; keep it", "cache": "can be deleted"})
