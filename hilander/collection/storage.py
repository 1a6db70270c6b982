"""A collection on disk: a run folder that also holds what an update needs.

================== ==========================================================================
`embeddings.npy`   the embeddings as they were given, (n_points, n_features)
`model`            the model, as `HiLander.save` writes it
`collection.json`  numbers that were never used as ids, and the settings of a run of the whole
`known.npz`        what was given beforehand of the items, see `hilander.collection.known`
`changes.parquet`  what each update changed, see `hilander.collection.changes`
================== ==========================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.collection.changes import CHANGES_FILE, COLUMNS, Table, to_table, write_changes
from hilander.collection.known import Known
from hilander.errors import FileFormatError
from hilander.estimator import HiLander
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.run_extras import DETAILS_FILE, NOTES_FILE
from hilander.hierarchy.storage import HIERARCHY_FILE, RUN_KIND, list_cluster_files
from hilander.io.digests import FileList
from hilander.io.parquet import read_parquet_column
from hilander.io.schemas import CollectionNotes, RunDetails
from hilander.io.writing import open_stored_folder, read_json, write_json

EMBEDDINGS_FILE = "embeddings.npy"
MODEL_FOLDER = "model"


@dataclass(frozen=True)
class Notes:
    """Content of `collection.json`.

    Parameters
    ----------
    next_cluster : int
        Lowest number that was never the id of a cluster.
    next_row : int
        Lowest number that was never the id of an item, where items are numbered.
    n_updates : int
    asked : dict
        k, p_tau, early_stop and decoder that the user gave for the whole set; None for the model's.
    whiten : bool or "auto"
    """

    next_cluster: int = 0
    next_row: int = 0
    n_updates: int = 0
    asked: Mapping[str, Any] = field(default_factory=dict)
    whiten: bool | str = "auto"

    def count_up(self, next_cluster: int, next_row: int) -> Notes:
        """The notes after one more update."""
        return replace(
            self, next_cluster=next_cluster, next_row=next_row, n_updates=self.n_updates + 1
        )


@dataclass(frozen=True, eq=False)
class Stored:
    """A collection as it was read.

    Parameters
    ----------
    files : FileList
    notes : Notes
    hierarchy : Hierarchy, optional
        None for a collection without items.
    ids : ndarray of shape (n_points,)
        Ids of the items: ints or text.
    """

    files: FileList
    notes: Notes
    hierarchy: Hierarchy | None
    ids: npt.NDArray[Any]

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.files.folder

    def labels(self) -> IntArray:
        """Id of the cluster of each item, shape (n_points,)."""
        hierarchy = self.hierarchy
        return np.arange(0) if hierarchy is None else hierarchy.cluster_ids[hierarchy.labels(-1)]

    def load_model(self) -> HiLander:
        """The model of the collection."""
        model = HiLander.load(self.folder / MODEL_FOLDER)
        model.whiten = self.notes.whiten  # type: ignore[assignment]
        return model

    def map_embeddings(self) -> npt.NDArray[Any]:
        """The embeddings as they were given, mapped."""
        path = self.folder / EMBEDDINGS_FILE
        try:
            mapped: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise FileFormatError(
                f"{path} is damaged or missing ({error}); run `hilander cluster` again"
            ) from error
        return mapped

    def read_known(self) -> Known:
        """What was given beforehand of the items."""
        return Known.load(self.files, len(self.ids))

    def read_changes(self) -> Table:
        """All changes so far."""
        path = self.files.check(CHANGES_FILE)
        if not path.is_file():
            return to_table([])
        columns = {name: read_parquet_column(path, name, ()) for name in COLUMNS}
        return {name: np.asarray(columns[name]).astype(kind) for name, kind in COLUMNS.items()}

    def read_details(self) -> dict[str, Any]:
        """Content of `run.json`; empty if there is none."""
        path = self.files.check(DETAILS_FILE)
        found: dict[str, Any] = read_json(path, RunDetails) if path.is_file() else {}
        return found


def read_collection(folder: str | Path) -> Stored:
    """Read a collection. Its large files are mapped when they are needed.

    Raises
    ------
    FileFormatError
        When the folder is not a run, or lacks what an update needs.
    """
    files = open_stored_folder(Path(folder), RUN_KIND)
    if not all((files.folder / name).exists() for name in (NOTES_FILE, MODEL_FOLDER)):
        raise FileFormatError(
            f"{folder} holds no {NOTES_FILE} or no {MODEL_FOLDER}, which an update needs; it was "
            "written by an earlier version or from Python: run `hilander cluster` again"
        )
    notes = Notes(**read_json(files.check(NOTES_FILE), CollectionNotes))
    if not (files.folder / HIERARCHY_FILE).exists():
        return Stored(files, notes, None, np.arange(0))
    hierarchy = Hierarchy.load(folder)
    return Stored(files, notes, hierarchy, read_item_ids(files))


def read_item_ids(files: FileList) -> npt.NDArray[Any]:
    """Ids of the items of a run, ints or text."""
    found = [read_parquet_column(path, "id", ()) for path in list_cluster_files(files)]
    parts = [one for one in found if one is not None]
    if len(parts) < len(found):
        raise FileFormatError(f"{files.folder} has clusters without ids; cluster again")
    ids = np.concatenate(parts)
    return ids.astype(str) if ids.dtype.kind == "O" else ids


def write_source(
    inside: Path,
    model: HiLander,
    embeddings: npt.NDArray[Any],
    notes: Notes,
    changes: Table,
    known: Known | None = None,
) -> None:
    """Write what an update needs into an open run folder."""
    if known is not None:
        known.save(inside)
    model.save(inside / MODEL_FOLDER)
    np.save(inside / EMBEDDINGS_FILE, embeddings)
    write_json(inside / NOTES_FILE, asdict(notes))
    write_changes(changes, inside)
