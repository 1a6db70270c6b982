"""What a review knows, for commands: pairs of ids, and the clusters that a person has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hilander.collection.cluster_ids import Reviewed
from hilander.errors import MissingFileError
from hilander.explorer.review_log.state import ReviewState, resolve_undos
from hilander.explorer.review_log.store import REVIEW_FILE, ReviewStore, state_folder

Pair = tuple[str, str]


@dataclass(frozen=True)
class ReviewKnowledge:
    """The decisions of a review that are in force.

    Parameters
    ----------
    must, cannot : list of (str, str)
        Pairs of ids.
    groups : dict of str to int
        For each item of a cluster that a decision concerns, the number of its corrected cluster.
        Clusters marked as junk are left out.
    clusters : Reviewed, optional
        All clusters as reviewed; None without a review.
    """

    must: list[Pair] = field(default_factory=list)
    cannot: list[Pair] = field(default_factory=list)
    groups: dict[str, int] = field(default_factory=dict)
    clusters: Reviewed | None = None

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.must) + len(self.cannot)


def find_review(run: Path) -> Path | None:
    """The file of the review of a run; None if it was not reviewed."""
    path = state_folder(run) / REVIEW_FILE
    return path if path.is_file() else None


def read_review(run: Path) -> ReviewKnowledge:
    """Read the review of a run.

    Parameters
    ----------
    run : Path
        Run folder, its ``.explorer`` folder, or the file of a review.

    Raises
    ------
    MissingFileError
        When there is no review.
    """
    path = next((one for one in (run, run / REVIEW_FILE) if one.is_file()), find_review(run))
    if path is None:
        raise MissingFileError(
            f"{run} has no review ({state_folder(run)} holds none); review it with "
            "`hilander explore`, or name another run"
        )
    store = ReviewStore(path)
    try:
        base = store.latest_base()
        events = [] if base is None else resolve_undos(store.events(base.id))[0]
    finally:
        store.close()
    if base is None:
        return ReviewKnowledge()
    state = ReviewState(base.labels, base.n_clusters)
    for event in events:
        state.apply(event)
    must, cannot = state.constraints()
    ids = base.ids
    named = [ids[row] for row in state.typical_items().tolist()]
    return ReviewKnowledge(
        [(ids[a], ids[b]) for a, b in must],
        [(ids[a], ids[b]) for a, b in cannot],
        _find_groups(state, ids),
        Reviewed(ids, base.labels, state.labels, state.next_group, named),
    )


def _find_groups(state: ReviewState, ids: list[str]) -> dict[str, int]:
    must, cannot = state.constraints()
    rows = np.array([row for pair in (*must, *cannot) for row in pair], dtype=np.int64)
    concerned = {*state.labels[rows].tolist(), *state.names} - state.junk
    chosen = np.flatnonzero(np.isin(state.labels, sorted(concerned)))
    return {ids[row]: int(state.labels[row]) for row in chosen.tolist()}
