"""A run folder written anew after an update: hierarchy, graph, quality, items and base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray
from hilander.collection.region import ScoredLists
from hilander.collection.storage import Stored
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.basis import SetBase
from hilander.hierarchy.basis_storage import write_base
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.quality import write_quality
from hilander.hierarchy.run_extras import (
    IMAGES_FILE,
    ITEMS_FILE,
    THUMBS_FILE,
    RunExtras,
    write_extras,
)
from hilander.hierarchy.run_folder import CSV_FILE
from hilander.hierarchy.storage import write_graph, write_hierarchy
from hilander.io.files import write_table
from hilander.io.schemas import ImagesNote
from hilander.io.writing import read_json


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The state of a set after an update.

    Parameters
    ----------
    hierarchy : Hierarchy of n_points points, with the ids of its clusters
    ids : ndarray of shape (n_points,)
    features : ndarray of shape (n_points, dim), optional
        Prepared points; None, as `lists` and `base`, for a set too small for a graph.
    lists : ScoredLists, optional
    base : SetBase, optional
    """

    hierarchy: Hierarchy
    ids: npt.NDArray[Any]
    features: npt.NDArray[Any] | None
    lists: ScoredLists | None
    base: SetBase | None


def write_snapshot(inside: Path, snapshot: Snapshot, extras: RunExtras, *, as_csv: bool) -> None:
    """Write the files of a run into an open folder."""
    hierarchy, ids = snapshot.hierarchy, snapshot.ids
    write_hierarchy(hierarchy, inside, ids)
    if as_csv:
        write_table(inside / CSV_FILE, hierarchy.to_columns(ids))
    if snapshot.lists is not None and snapshot.base is not None and snapshot.features is not None:
        lists = snapshot.lists
        scores = EdgeScores(lists.linkage, lists.density)
        write_graph(inside, lists.neighbours, lists.affinity, scores)
        features = snapshot.features
        write_quality(hierarchy, lists.neighbours, lists.linkage, inside, ids, features)
        write_base(inside, snapshot.features, snapshot.base)
    write_extras(inside, hierarchy, extras)


def carry_extras(
    stored: Stored,
    kept: BoolArray,
    n_inserted: int,
    features: npt.NDArray[Any] | None,
    columns: Mapping[str, npt.NDArray[Any]],
) -> RunExtras:
    """What is known about the items of a run, for those that stay; the inserted ones have none.

    Parameters
    ----------
    stored : Stored
    kept : ndarray of shape (n_before,), bool
    n_inserted : int
    features : ndarray of shape (n_points, dim), optional
        Prepared points after the update.
    columns : mapping of str to ndarray of shape (n_inserted,)
        Facts about the inserted items, such as their true identity ``label``.
    """
    folder, thumbs, images = stored.folder, None, None
    if (folder / THUMBS_FILE).is_file():
        before = np.load(stored.files.check(THUMBS_FILE), mmap_mode="r")
        blank = np.zeros((n_inserted, *before.shape[1:]), dtype=before.dtype)
        thumbs = np.concatenate([before[kept], blank])
    if (folder / IMAGES_FILE).is_file():
        images = Path(read_json(stored.files.check(IMAGES_FILE), ImagesNote)["folder"])
    carried = _carry_columns(stored, kept, n_inserted, columns)
    return RunExtras(features, thumbs, carried, images)


def _carry_columns(
    stored: Stored, kept: BoolArray, n_inserted: int, inserted: Mapping[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Columns of the items; a value that is not known is None."""
    path = stored.folder / ITEMS_FILE
    if not path.is_file():
        return {} if kept.any() else dict(inserted)
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(stored.files.check(ITEMS_FILE)).filter(kept)
    columns = {}
    for name in table.column_names:
        more = inserted[name].tolist() if name in inserted else [None] * n_inserted
        values = table.column(name).to_pylist() + more
        if {type(one) for one in values if one is not None} > {int, str}:
            values = [None if one is None else str(one) for one in values]
        columns[name] = np.array(values) if None not in values else np.array(values, dtype=object)
    return columns
