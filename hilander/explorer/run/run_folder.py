"""Open a run folder for reading."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import FileFormatError, HiLanderError
from hilander.explorer.run.graph import RunGraph, read_run_graph
from hilander.explorer.run.images import ImageSource, NoImages, open_images
from hilander.explorer.run.items import Items, read_items
from hilander.explorer.run.nested_order import NestedOrder, build_nested_order
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.merge_tree import MergeTree
from hilander.hierarchy.run_extras import DETAILS_FILE, GRAPH_FILE, NOTES_FILE, PEAKS_FILE
from hilander.hierarchy.storage import HIERARCHY_FILE
from hilander.io.digests import FileList
from hilander.io.mapped_npz import map_npz
from hilander.io.schemas import CollectionNotes, RunDetails
from hilander.io.writing import list_stored_files, read_json

# Tables have a row for each number up to the highest id of a cluster. Ids of clusters that ended
# leave gaps, but hardly more of them than this.
_IDS_PER_POINT, _LEAST_LIMIT = 100, 1_000_000


@dataclass(frozen=True)
class Attachments:
    """Labels and images that the user adds to a run when opening it.

    Parameters
    ----------
    labels : ndarray of shape (n_points,), optional
        True identities.
    thumbs : path, optional
        Images in a `.npy` or `.npz`.
    images_folder : path, optional
        Folder of the image files that the run lists.
    """

    labels: npt.NDArray[Any] | None = None
    thumbs: Path | None = None
    images_folder: Path | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """An opened run. Its values never change.

    Parameters
    ----------
    folder : Path
    hierarchy : Hierarchy
    nested : NestedOrder
        Members and sub-clusters of every cluster.
    items : Items
    images : ImageSource
    graph : RunGraph, optional
    details : dict
        Content of `run.json`: settings, stages with their seconds, versions.
    notes : tuple of str
        One message for each optional file that could not be read.
    """

    folder: Path
    hierarchy: Hierarchy
    nested: NestedOrder
    items: Items
    images: ImageSource
    graph: RunGraph | None
    details: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the run folder."""
        return self.folder.resolve().name

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.hierarchy.n_points

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return self.hierarchy.n_levels

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the ids and the last level's labels; identifies one clustering of one set."""
        table = self.nested.tables[-1]
        digest = hashlib.sha256(np.ascontiguousarray(table.labels).tobytes())
        if table.n_numbers > table.n_clusters:  # numbers of new clusters begin elsewhere
            digest.update(str(table.n_numbers).encode())
        for buffer in self.items.ids.buffers():
            if buffer is not None:
                digest.update(buffer)
        return digest.hexdigest()[:32]

    @cached_property
    def merge_tree(self) -> MergeTree | None:
        """The merge tree over all points; None if the run has no graph."""
        if self.graph is None:
            return None
        edges = np.asarray(self.graph.neighbours), np.asarray(self.graph.linkage)
        return Hierarchy(self.hierarchy.levels, lambda: edges).tree

    def image_key(self, row: int) -> str | None:
        """Return a hash of this run, the id and the image of a row; None without an image.

        A browser that keeps a picture under this key never shows it for another run, for another
        item, or after the image has changed.
        """
        version = self.images.version(row) if self.images.has(row) else None
        if version is None:
            return None
        text = "\0".join((self.fingerprint, self.items.id_of(row), version))
        return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=12).hexdigest()

    @cached_property
    def peak_features(self) -> tuple[IntArray, FloatArray] | None:
        """Points that are peaks of the first level, and their features, if the run has them."""
        path = list_stored_files(self.folder).check(PEAKS_FILE)
        if not path.is_file():
            return None
        arrays = map_npz(path)
        points, features = arrays.get("points"), arrays.get("features")
        if (
            points is None
            or features is None
            or points.dtype.kind not in "iu"
            or features.dtype.kind != "f"
            or (points.ndim, features.ndim) != (1, 2)
            or len(points) != len(features)
        ):
            raise FileFormatError(
                f"{path} holds no features of peaks; run `hilander cluster` again"
            )
        if len(points) and not (int(points.min()) >= 0 and int(points.max()) < self.n_points):
            raise FileFormatError(f"{path} names points that the run does not have")
        if not np.isfinite(features).all():
            raise FileFormatError(f"{path} holds numbers that are not finite")
        return np.asarray(points), features

    def stamp(self) -> tuple[int, int]:
        """Return inode and modification time of the hierarchy; they change when it is rewritten."""
        try:
            facts = os.stat(self.folder / HIERARCHY_FILE)
        except OSError:
            return (0, 0)
        return facts.st_ino, facts.st_mtime_ns


def open_run(
    folder: str | Path, attachments: Attachments | None = None, cache: Path | None = None
) -> Run:
    """Open a run folder.

    Parameters
    ----------
    folder : path
    attachments : Attachments, optional
    cache : Path, optional
        Folder where thumbnails of image files are stored.

    Raises
    ------
    FileFormatError
        If the folder is not a run, or a required file is damaged. A damaged optional file adds a
        note instead.
    """
    path = Path(folder)
    given = attachments or Attachments()
    hierarchy = Hierarchy.load(path)
    _check_ranges(hierarchy, path)
    files = list_stored_files(path)
    items = read_items(path, hierarchy.n_points, given.labels)
    notes: list[str] = []
    graph: RunGraph | None = None
    details: dict[str, Any] = {}
    images: ImageSource = NoImages()
    next_id = _read_next_id(files, hierarchy)
    try:
        graph = read_run_graph(files.check(GRAPH_FILE), hierarchy.n_points)
    except HiLanderError as error:
        notes.append(str(error))
    try:
        has_details = (path / DETAILS_FILE).is_file()
        details = read_json(files.check(DETAILS_FILE), RunDetails) if has_details else {}
    except HiLanderError as error:
        notes.append(str(error))
    try:
        images = open_images(path, items, cache, given.thumbs, given.images_folder)
    except HiLanderError as error:
        if given.thumbs is not None or given.images_folder is not None:
            raise
        notes.append(str(error))
    nested = build_nested_order(hierarchy, next_id)
    return Run(path, hierarchy, nested, items, images, graph, details, tuple(notes))


def _read_next_id(files: FileList, hierarchy: Hierarchy) -> int:
    """The lowest number that was never the id of a cluster of a run."""
    highest = int(hierarchy.cluster_ids.max())
    if not (files.folder / NOTES_FILE).is_file():
        return highest + 1
    notes = read_json(files.check(NOTES_FILE), CollectionNotes)
    return _check_id(max(int(notes["next_cluster"]), highest + 1), hierarchy, files.folder)


def _check_id(number: int, hierarchy: Hierarchy, folder: Path) -> int:
    """The number; FileFormatError if tables of so many clusters would fill the memory."""
    if number > _LEAST_LIMIT + _IDS_PER_POINT * hierarchy.n_points:
        raise FileFormatError(
            f"{folder} has ids of clusters up to {number:,} for {hierarchy.n_points:,} items; "
            "run `hilander cluster` again, into another folder"
        )
    return number


def _check_ranges(hierarchy: Hierarchy, folder: Path) -> None:
    """Raise FileFormatError if a parent, label, peak or id is out of range."""
    ids = hierarchy.cluster_ids
    if ids.dtype.kind not in "iu" or int(ids.min()) < 0 or len(np.unique(ids)) < len(ids):
        raise FileFormatError(
            f"{folder / HIERARCHY_FILE} is damaged: ids of clusters must be different numbers "
            "from 0; run `hilander cluster` again"
        )
    _check_id(int(ids.max()), hierarchy, folder)
    for number, level in enumerate(hierarchy.levels):
        arrays = (level.parent, level.labels, level.peaks)
        are_indices = all(array.dtype.kind in "iu" and array.ndim == 1 for array in arrays)
        if not are_indices or not all(
            len(array) and int(array.min()) >= 0 and int(array.max()) < bound
            for array, bound in zip(
                arrays, (level.n_nodes, level.n_clusters, level.n_nodes), strict=True
            )
        ):
            raise FileFormatError(
                f"{folder / HIERARCHY_FILE} is damaged: level {number} points outside of its "
                "nodes; run `hilander cluster` again"
            )
