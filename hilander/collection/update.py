"""An update of a collection: read, revise or cluster the whole again, keep the ids, write."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray
from hilander.collection.changes import (
    Transition,
    count_changes,
    describe_changes,
    join_tables,
    to_table,
)
from hilander.collection.cluster_ids import NEW, match_clusters
from hilander.collection.region import ScoredLists
from hilander.collection.revision import revise
from hilander.collection.snapshot import Snapshot, carry_extras, write_snapshot
from hilander.collection.storage import Stored, write_source
from hilander.embeddings.validation import as_embeddings
from hilander.errors import EmbeddingError, LabelError, SettingError
from hilander.estimator import HiLander
from hilander.hierarchy.basis import SetBase
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.level import Level
from hilander.hierarchy.rules import FEWEST_K
from hilander.hierarchy.run_extras import DETAILS_FILE
from hilander.hierarchy.storage import RUN_KIND
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
    """

    n_added: int
    n_removed: int
    n_rescored: int
    n_decoded: int
    whole: bool
    reason: str
    changes: dict[str, int]
    seconds: dict[str, float] = field(default_factory=dict)


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
    """
    start = time.perf_counter()
    items = _collect_items(stored, drop, remove)
    whole, reason = _must_rerun(stored, len(items.ids), rerun)
    clustered = _cluster_whole(stored, model, items) if whole else _revise(stored, model, items)
    clustered_at = time.perf_counter()

    n_points, n_added = len(items.ids), len(items.added)
    before = np.full(n_points, NEW)
    if stored.hierarchy is not None:
        ids_before = stored.hierarchy.cluster_ids[stored.hierarchy.labels(-1)]
        before[: n_points - n_added] = ids_before[items.kept]
    else:
        ids_before = np.arange(0)
    labels = clustered.levels.labels(-1)
    match = match_clusters(before, labels, stored.notes.next_cluster)
    hierarchy = Hierarchy(clustered.levels.levels, cluster_ids=match.ids)
    moved = Transition(
        items.ids, before, match.ids[labels], match, stored.ids[~items.kept],
        ids_before[~items.kept],
    )  # fmt: skip
    lists = clustered.lists
    graph = (None, None) if lists is None else (lists.neighbours, lists.linkage)
    number = stored.notes.n_updates + 1
    is_first = stored.hierarchy is None
    changes = to_table([]) if is_first else describe_changes(number, moved, *graph)
    snapshot = Snapshot(hierarchy, items.ids, clustered.features, lists, clustered.base)
    seconds = {"cluster": round(clustered_at - start, 4)}
    done = Update(
        n_added, int((~items.kept).sum()), clustered.n_rescored, clustered.n_decoded, whole,
        reason, count_changes(changes), seconds,
    )  # fmt: skip
    notes = stored.notes.count_up(match.next_id, items.next_row)
    extras = carry_extras(stored, items.kept, n_added, clustered.features, items.columns)
    history = join_tables(stored.read_changes(), changes)
    with folder_writer(stored.folder, RUN_KIND) as inside:
        as_csv = (stored.folder / "clusters.csv").is_file()
        write_snapshot(inside, snapshot, extras, as_csv=as_csv)
        write_source(inside, model, items.embeddings, notes, history)
        write_json(inside / DETAILS_FILE, _describe(stored, snapshot, items, done))
    seconds["write"] = round(time.perf_counter() - clustered_at, 4)
    return done


def _collect_items(stored: Stored, drop: Drop | None, remove: npt.NDArray[Any] | None) -> _Items:
    """Check what is added and removed, and put the items together."""
    kept = np.ones(len(stored.ids), dtype=bool)
    if remove is not None:
        gone = _as_ids(remove, stored.ids.dtype.kind if len(stored.ids) else None)
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
    ids, next_row = _new_ids(stored, kept, drop.ids, len(added))
    embeddings = np.concatenate([before[kept], added]) if kept.any() else np.asarray(added)
    given = {} if drop.labels is None else {"label": drop.labels}
    columns = {name: np.asarray(one) for name, one in {**drop.columns, **given}.items()}
    for name, values in columns.items():
        if values.shape != (len(added),):
            raise LabelError(
                f"got {name}s of shape {values.shape} for {len(added)} rows; give one each"
            )
    return _Items(kept, ids, embeddings, added, columns, next_row)


def _new_ids(
    stored: Stored, kept: BoolArray, given: Any, n_added: int
) -> tuple[npt.NDArray[Any], int]:
    """Ids of all items after an update, and the next number for an item."""
    left, next_row = stored.ids[kept], stored.notes.next_row
    kind = stored.ids.dtype.kind if len(stored.ids) else None
    if given is None:
        if kind == "U":
            raise LabelError("the items of the collection have text as ids; give ids of the new")
        largest = int(stored.ids.max(initial=-1)) + 1
        ids: npt.NDArray[Any] = max(next_row, largest) + np.arange(n_added)
    else:
        ids = _as_ids(np.asarray(given), kind)
    if ids.shape != (n_added,):
        raise LabelError(f"got ids of shape {ids.shape} for {n_added} rows; give one each")
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < n_added:
        twice = values[counts > 1][0]
        raise LabelError(f"the id {twice.item()!r} is given to several rows; give each row its own")
    known = values[np.isin(values, left)]
    if len(known):
        raise LabelError(
            f"the collection has an item {known[0].item()!r} already ({len(known):,} of "
            f"{n_added:,} ids are in it); remove it first, or in the same update"
        )
    if ids.dtype.kind in "iu":
        next_row = max(next_row, int(ids.max()) + 1)
    return (np.concatenate([left, ids]) if kind is not None else ids), next_row


def _as_ids(given: npt.NDArray[Any], kind: str | None) -> npt.NDArray[Any]:
    """Ids as int64 or text; `kind` is that of the collection's ids."""
    if given.dtype.kind == "O":
        given = given.astype(str)
    is_text = given.dtype.kind == "U"
    if kind is not None and kind != "U" and is_text:
        try:
            return given.astype(np.int64)
        except ValueError:
            example = given[0] if len(given) else ""
            raise LabelError(
                f"the ids of the collection are whole numbers, got {example!r}; give such ids"
            ) from None
    if kind == "U":
        return given.astype(str)
    if not is_text and given.dtype.kind not in "iu":
        raise LabelError(f"ids are of type {given.dtype}; give whole numbers or text")
    return given if is_text else given.astype(np.int64)


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


def _revise(stored: Stored, model: HiLander, items: _Items) -> _Clustered:
    """Insert and remove items, and cluster again what that affects."""
    from hilander.training.assignment import freeze_scorer

    hierarchy = stored.hierarchy
    if hierarchy is None:
        raise SettingError("a collection without items cannot be revised; add some")
    base = hierarchy.basis.base
    score = freeze_scorer(model.model_, base, model.method, model.device)
    inserted = base.preparation.apply(items.added)
    found = revise(hierarchy, items.kept, inserted, score)
    counts = len(found.rescored), int(found.in_region.sum())
    return _Clustered(Hierarchy(found.levels), found.features, found.lists, base, *counts)


def _cluster_whole(stored: Stored, model: HiLander, items: _Items) -> _Clustered:
    """Cluster all items, with the settings of the first run."""
    n_points = len(items.ids)
    if n_points <= FEWEST_K:
        alone = Hierarchy([Level.of_single_nodes(n_points)])
        return _Clustered(alone, None, None, None, n_points, n_points)
    work = Work()
    steps = model.walk(items.embeddings, work=work, **stored.notes.asked)
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
        for name in ("n_added", "n_removed", "n_rescored", "n_decoded", "whole", "reason")
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
