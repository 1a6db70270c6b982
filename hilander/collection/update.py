"""An update of a collection: read, revise or cluster the whole again, keep the ids, write."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, IntArray
from hilander.collection.changes import (
    Transition,
    count_changes,
    describe_changes,
    join_tables,
    to_table,
)
from hilander.collection.cluster_ids import NEW, match_clusters
from hilander.collection.known import Known, News, hold_review
from hilander.collection.new_ids import as_ids, new_ids
from hilander.collection.region import ScoredLists
from hilander.collection.revision import revise
from hilander.collection.snapshot import Snapshot, carry_extras, write_snapshot
from hilander.collection.storage import Stored, write_source
from hilander.embeddings.validation import as_embeddings
from hilander.errors import EmbeddingError, LabelError, SettingError
from hilander.estimator import HiLander
from hilander.hierarchy.basis import SetBase
from hilander.hierarchy.constraints.building import join_constraints
from hilander.hierarchy.constraints.constraints import Constraints, check_fits
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.level import Level
from hilander.hierarchy.rules import FEWEST_K
from hilander.hierarchy.run_extras import DETAILS_FILE
from hilander.hierarchy.storage import RUN_KIND
from hilander.hierarchy.trust import estimate_trust
from hilander.hierarchy.work import Work
from hilander.io.writing import folder_writer, write_json

# The whole set is clustered again when it has this many times the points that the last such run
# had, or less than one over it.
MOST_GROWTH = 1.5


@dataclass(frozen=True, eq=False)
class Drop:
    """Items to add.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    ids, labels : array-like of shape (n_samples,), optional
    columns : mapping of str to array-like of shape (n_samples,)
        What else is known about them, such as the path of a picture.
    """

    X: Any
    ids: Any = None
    labels: Any = None
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """What an update did.

    Parameters
    ----------
    n_added, n_removed : int
        Items.
    n_rescored : int
        Items whose neighbour lists changed, and whose edges were scored again.
    n_decoded : int
        Items whose clusters were found again.
    whole : bool
        Whether the whole set was clustered again.
    reason : str
        Why it was, or why it should be; empty for neither.
    changes : dict of str to int
        Number of changes of each kind, see `hilander.collection.changes`.
    seconds : dict of str to float
        Time of each stage.
    conflicts : list of str
        Decisions of the review that contradict what else is known, and do not hold.
    """

    n_added: int
    n_removed: int
    n_rescored: int
    n_decoded: int
    whole: bool
    reason: str
    changes: dict[str, int]
    seconds: dict[str, float] = field(default_factory=dict)
    conflicts: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Items:
    """The items of a collection after an update: those that stay, then the added ones."""

    kept: BoolArray
    ids: npt.NDArray[Any]
    embeddings: npt.NDArray[Any]
    added: npt.NDArray[Any]
    columns: dict[str, npt.NDArray[Any]]
    next_row: int


@dataclass(frozen=True, eq=False)
class _Clustered:
    """A set that was clustered, and how."""

    levels: Hierarchy
    features: npt.NDArray[Any] | None
    lists: ScoredLists | None
    base: SetBase | None
    n_rescored: int
    n_decoded: int


def update_collection(
    stored: Stored,
    model: HiLander,
    drop: Drop | None,
    remove: npt.NDArray[Any] | None,
    rerun: bool | str = "auto",
    news: News | None = None,
) -> Update:
    """Update a collection on disk, whose lock is held.

    Parameters
    ----------
    stored : Stored
    model : HiLander
    drop : Drop, optional
    remove : ndarray of ids, optional
    rerun : bool or "auto"
        As for `Collection.add`.
    news : News, optional
        What is newly known. What was known holds on.
    """
    start = time.perf_counter()
    items = _collect_items(stored, drop, remove)
    news = news or News()
    known, constraints, conflicts = _hold_known(stored, items, news)
    whole, reason = _must_rerun(stored, len(items.ids), rerun)
    run = _cluster_whole if whole else _revise
    clustered = run(stored, model, items, constraints)
    clustered_at = time.perf_counter()

    n_added, lists = len(items.added), clustered.lists
    moved = _match_ids(stored, items, clustered.levels.labels(-1), news)
    hierarchy = Hierarchy(clustered.levels.levels, cluster_ids=moved.match.ids)
    hierarchy.constraints = constraints
    if lists is not None and clustered.base is not None and clustered.base.preparation.per_set:
        hierarchy.trust = estimate_trust(lists.linkage)
    graph = (None, None) if lists is None else (lists.neighbours, lists.linkage)
    number = stored.notes.n_updates + 1
    is_first = stored.hierarchy is None
    changes = to_table([]) if is_first else describe_changes(number, moved, *graph)
    snapshot = Snapshot(hierarchy, items.ids, clustered.features, lists, clustered.base)
    seconds = {"cluster": round(clustered_at - start, 4)}
    done = Update(
        n_added, int((~items.kept).sum()), clustered.n_rescored, clustered.n_decoded, whole,
        reason, count_changes(changes), seconds, conflicts,
    )  # fmt: skip
    notes = stored.notes.count_up(moved.match.next_id, items.next_row)
    extras = carry_extras(stored, items.kept, n_added, clustered.features, items.columns)
    history = join_tables(stored.read_changes(), changes)
    with folder_writer(stored.folder, RUN_KIND) as inside:
        as_csv = (stored.folder / "clusters.csv").is_file()
        write_snapshot(inside, snapshot, extras, as_csv=as_csv)
        write_source(inside, model, items.embeddings, notes, history, known)
        write_json(inside / DETAILS_FILE, _describe(stored, snapshot, items, done))
    seconds["write"] = round(time.perf_counter() - clustered_at, 4)
    return done


def _match_ids(stored: Stored, items: _Items, labels: IntArray, news: News) -> Transition:
    """Give the new clusters their ids, shape (n_items,) each before and after."""
    here, next_id = stored.labels(), stored.notes.next_cluster
    reviewed = here
    if news.clusters is not None:
        reviewed = news.clusters.correct(stored.ids, here)
        next_id = max(next_id, news.clusters.next_id)
    new = np.full(len(items.added), NEW)
    before, former = (np.concatenate([one[items.kept], new]) for one in (here, reviewed))
    match = match_clusters(former, labels, next_id, before)
    gone = ~items.kept
    return Transition(items.ids, before, match.ids[labels], match, stored.ids[gone], here[gone])


def _collect_items(stored: Stored, drop: Drop | None, remove: npt.NDArray[Any] | None) -> _Items:
    """Check what is added and removed, and put the items together."""
    kept = np.ones(len(stored.ids), dtype=bool)
    if remove is not None:
        gone = as_ids(remove, stored.ids.dtype.kind if len(stored.ids) else None)
        missing = np.setdiff1d(gone, stored.ids)
        if len(missing):
            raise LabelError(
                f"the collection has no item {missing[0].item()!r} ({len(missing):,} of "
                f"{len(gone):,} ids to remove are not in it); give ids of its items"
            )
        kept = ~np.isin(stored.ids, gone)
    before = stored.map_embeddings()
    if drop is None:
        none = np.empty((0, before.shape[1]), dtype=before.dtype)
        return _Items(kept, stored.ids[kept], before[kept], none, {}, stored.notes.next_row)
    added = as_embeddings(drop.X, min_rows=1, as_stored=True)
    if len(stored.ids) and added.shape[1] != before.shape[1]:
        raise EmbeddingError(
            f"X has {added.shape[1]} features, the collection has {before.shape[1]}; use the "
            "embedder of the collection"
        )
    ids, next_row = new_ids(stored, kept, drop.ids, len(added))
    embeddings = np.concatenate([before[kept], added]) if kept.any() else np.asarray(added)
    given = {} if drop.labels is None else {"label": drop.labels}
    columns = {name: np.asarray(one) for name, one in {**drop.columns, **given}.items()}
    for name, values in columns.items():
        if values.shape != (len(added),):
            raise LabelError(
                f"got {name}s of shape {values.shape} for {len(added)} rows; give one each"
            )
    return _Items(kept, ids, embeddings, added, columns, next_row)


def _hold_known(
    stored: Stored, items: _Items, news: News
) -> tuple[Known, Constraints | None, list[str]]:
    """What is known after an update, the constraints, and the decisions that do not fit."""
    known = stored.read_known()
    so_far = None if stored.hierarchy is None else stored.hierarchy.constraints
    if so_far is None and known.is_nothing and news.is_nothing:
        return Known(Constraints.none(len(items.ids))), None, []
    names = items.ids.astype(str).tolist()
    after = known.extend(items.kept, news, names)
    if news.review is not None:
        constraints, conflicts = hold_review(after.constraints, news, names)
    else:
        parts = [after.constraints]
        if so_far is not None:
            parts.append(so_far.renumber(known.new_rows(items.kept), len(names)))
        constraints, conflicts = join_constraints(parts, names), []
    return after, check_fits(constraints, len(names)), conflicts


def _must_rerun(stored: Stored, n_points: int, rerun: bool | str) -> tuple[bool, str]:
    """Whether the whole set is clustered again, and why it is or should be."""
    if rerun not in (True, False, "auto"):
        raise SettingError(f'rerun={rerun!r} is not known; use True, False or "auto"')
    if not n_points:
        raise SettingError("nothing would be left in the collection; delete its folder instead")
    if stored.hierarchy is None:
        return True, "there was nothing yet"
    try:
        basis = stored.hierarchy.basis
    except SettingError:
        return True, "there were too few items for a graph"
    if n_points <= basis.k:
        return True, f"{n_points} items are fewer than the neighbours of a list"
    clustered = basis.base.n_points
    text = (
        f"the set has {n_points:,} items, and {clustered:,} when it was last clustered as a whole"
    )
    has_drifted = not clustered / MOST_GROWTH <= n_points <= clustered * MOST_GROWTH
    if rerun == "auto":
        return has_drifted, text if has_drifted else ""
    return bool(rerun), "asked for" if rerun else (text if has_drifted else "")


def _revise(
    stored: Stored, model: HiLander, items: _Items, constraints: Constraints | None
) -> _Clustered:
    """Insert and remove items, and cluster again what that affects."""
    from hilander.training.assignment import freeze_scorer

    hierarchy = stored.hierarchy
    if hierarchy is None:
        raise SettingError("a collection without items cannot be revised; add some")
    base = hierarchy.basis.base
    score = freeze_scorer(model.model_, base, model.method, model.device)
    inserted = base.preparation.apply(items.added)
    found = revise(hierarchy, items.kept, inserted, score, constraints)
    counts = len(found.rescored), int(found.in_region.sum())
    return _Clustered(Hierarchy(found.levels), found.features, found.lists, found.base, *counts)


def _cluster_whole(
    stored: Stored, model: HiLander, items: _Items, constraints: Constraints | None
) -> _Clustered:
    """Cluster all items, with the settings of the first run."""
    n_points = len(items.ids)
    if n_points <= FEWEST_K:
        groups = None if constraints is None else constraints.component
        alone = Hierarchy([Level.of_single_nodes(n_points, groups)])
        return _Clustered(alone, None, None, None, n_points, n_points)
    work = Work()
    steps = model.walk(items.embeddings, work=work, constraints=constraints, **stored.notes.asked)
    keep_last = model.rules_.as_released
    hierarchy = Hierarchy.of_steps(steps, keep_last=keep_last, keep_graph=True, work=work)
    basis = hierarchy.basis
    lists = ScoredLists(basis.neighbours, basis.affinity, basis.linkage, hierarchy.density)
    return _Clustered(hierarchy, basis.features, lists, basis.base, n_points, n_points)


def _describe(stored: Stored, snapshot: Snapshot, items: _Items, done: Update) -> dict[str, Any]:
    """Content of run.json after an update."""
    details, hierarchy = stored.read_details(), snapshot.hierarchy
    known = details.get("input", {})
    shape = {"n": len(items.ids), "dim": int(items.embeddings.shape[1]), "has_ids": True}
    stages = [{"stage": stage, "seconds": value} for stage, value in done.seconds.items()]
    base = snapshot.base
    model = details.get("model", {})
    if base is not None:
        model = {**model, "preparation": base.preparation.describe()}
    facts = {
        name: getattr(done, name)
        for name in (
            "n_added",
            "n_removed",
            "n_rescored",
            "n_decoded",
            "whole",
            "reason",
            "conflicts",
        )
    }
    return {
        **details,
        "input": {**known, **shape},
        "model": model,
        "n_levels": hierarchy.n_levels,
        "n_clusters": [level.n_clusters for level in hierarchy.levels],
        "stages": stages,
        "update": {"number": stored.notes.n_updates + 1, **facts, "changes": done.changes},
    }
