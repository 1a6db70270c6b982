"""Ids of clusters carried from the run in a folder to the run that takes its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.collection import storage
from hilander.collection.changes import (
    Table,
    Transition,
    describe_changes,
    join_tables,
    to_table,
)
from hilander.collection.cluster_ids import NEW, Reviewed, match_clusters
from hilander.collection.known import Known
from hilander.collection.storage import Notes, Stored, read_collection
from hilander.errors import HiLanderError
from hilander.estimator import HiLander
from hilander.hierarchy.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Carried:
    """What a new run takes over from the former one.

    Parameters
    ----------
    hierarchy : Hierarchy
        The new one, with the ids of its clusters.
    notes : Notes
    changes : Table
        Those of the former run, and what the new run changed.
    n_kept : int
        Clusters of the former run whose ids go on.
    n_former : int
        Clusters of the former run; 0 without one.
    """

    hierarchy: Hierarchy
    notes: Notes
    changes: Table
    n_kept: int = 0
    n_former: int = 0

    def describe(self) -> str:
        """One line on the ids that go on; empty without a former run."""
        if not self.n_former:
            return ""
        return (
            f"{self.n_kept:,} of {self.n_former:,} clusters keep their ids; what changed is in "
            "changes.parquet"
        )


def carry_ids(
    folder: Path,
    hierarchy: Hierarchy,
    ids: npt.NDArray[Any] | None,
    asked: Mapping[str, Any],
    whiten: bool | str,
    graph: tuple[Any, ...] = (),
    reviewed: Reviewed | None = None,
) -> Carried:
    """Give the clusters of a new run the ids of the run in a folder, as `match_clusters` does.

    Without a former run, or if it cannot be read, ids are the numbers of the clusters.

    Parameters
    ----------
    folder : Path
        Of the former run, if there is one.
    hierarchy : Hierarchy of n_points points
        The new run.
    ids : ndarray of shape (n_points,), optional
        Ids of the items; by default they are numbered.
    asked, whiten
        For `Notes`.
    graph : (neighbours, linkage), each of shape (n_points, k), optional
        For the reasons of changes.
    reviewed : Reviewed, optional
        The clusters of the former run as its review leaves them.
    """
    names = np.arange(hierarchy.n_points) if ids is None else np.asarray(ids)
    names = names.astype(str) if names.dtype.kind == "O" else names
    next_row = int(names.max(initial=-1)) + 1 if names.dtype.kind in "iu" else 0
    former, labels = _read_former(folder), hierarchy.labels(-1)
    if former is None or former.hierarchy is None:
        notes = Notes(hierarchy.n_clusters(-1), next_row, 0, asked, whiten)
        return Carried(hierarchy, notes, to_table([]))
    place = {name: row for row, name in enumerate(former.ids.tolist())}
    rows = np.array([place.get(name, -1) for name in names.tolist()], dtype=np.int64)
    old, next_id = former.labels(), former.notes.next_cluster
    corrected = old
    if reviewed is not None:
        corrected, next_id = reviewed.correct(former.ids, old), max(next_id, reviewed.next_id)
    before, goes_on = (np.where(rows >= 0, one[rows], NEW) for one in (old, corrected))
    match = match_clusters(goes_on, labels, next_id, before)
    gone = np.ones(len(old), dtype=bool)
    gone[rows[rows >= 0]] = False
    moved = Transition(names, before, match.ids[labels], match, former.ids[gone], old[gone])
    notes = former.notes.count_up(match.next_id, max(next_row, former.notes.next_row))
    changes = describe_changes(notes.n_updates, moved, *graph)
    notes = Notes(notes.next_cluster, notes.next_row, notes.n_updates, asked, whiten)
    return Carried(
        hierarchy.with_cluster_ids(match.ids),
        notes,
        join_tables(former.read_changes(), changes),
        int(np.isin(former.hierarchy.cluster_ids, match.ids).sum()),
        former.hierarchy.n_clusters(-1),
    )


def _read_former(folder: Path) -> Stored | None:
    """The run in a folder; None if there is none that can be read."""
    try:
        return read_collection(folder)
    except (HiLanderError, OSError):
        return None


def write_source(
    inside: Path,
    model: HiLander,
    embeddings: npt.NDArray[Any],
    carried: Carried,
    known: Known | None = None,
) -> None:
    """Write what an update of a new run needs into its open folder."""
    storage.write_source(inside, model, embeddings, carried.notes, carried.changes, known)
