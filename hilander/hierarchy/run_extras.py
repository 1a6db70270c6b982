"""Optional files of a run folder: features of peaks, images, data about items.

Every file is optional; the explorer and the report show what is there.

============== =================================================================================
`peaks.npz`    ``points`` (m,), the peaks of the first level, and ``features`` (m, dim)
`thumbs.npy`   uint8 images (n_points, height, width) or (n_points, height, width, 3)
`items.parquet` one row a point; ``label`` is its true identity, ``path`` its image file
`images.json`  ``{"folder": …}``, the folder that the paths are relative to
============== =================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray
from hilander.errors import SettingError
from hilander.io.files import write_table
from hilander.io.writing import write_json

if TYPE_CHECKING:
    from hilander.hierarchy.hierarchy import Hierarchy

GRAPH_FILE = "graph.npz"
DETAILS_FILE = "run.json"
PEAKS_FILE = "peaks.npz"
THUMBS_FILE = "thumbs.npy"
ITEMS_FILE = "items.parquet"
IMAGES_FILE = "images.json"
# What a later update of the run has to know.
NOTES_FILE = "collection.json"


@dataclass(frozen=True, eq=False)
class RunExtras:
    """What to keep of a run so that it can be looked at.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), optional
        The normalised embeddings; those of the first level's peaks are kept, for the map.
    thumbs : ndarray of shape (n_points, height, width) or (n_points, height, width, 3), optional
        Images, uint8.
    columns : mapping of str to ndarray of shape (n_points,)
        Facts about each item; ``label`` and ``path`` have the meanings above.
    images_folder : path, optional
        Where the files named by ``path`` are.
    """

    features: FloatArray | None = None
    thumbs: npt.NDArray[np.uint8] | None = None
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    images_folder: Path | None = None


def write_extras(folder: Path, hierarchy: Hierarchy, extras: RunExtras) -> None:
    """Write the optional files into an open run folder.

    Parameters
    ----------
    folder : Path
        As `folder_writer` gives it.
    hierarchy : Hierarchy of n_points points
    extras : RunExtras
    """
    for name, rows in (("features", extras.features), ("thumbs", extras.thumbs)):
        if rows is not None and len(rows) != hierarchy.n_points:
            raise SettingError(
                f"{name} has {len(rows)} rows for {hierarchy.n_points} points; give one each"
            )
    if extras.features is not None:
        points = hierarchy.peaks(0)
        features = np.asarray(extras.features[points], dtype=np.float32)
        np.savez(folder / PEAKS_FILE, points=points, features=features)
    if extras.thumbs is not None:
        np.save(folder / THUMBS_FILE, check_thumbs(extras.thumbs))
    if extras.columns:
        columns = {name: np.asarray(values) for name, values in extras.columns.items()}
        write_table(folder / ITEMS_FILE, columns)
    if extras.images_folder is not None:
        write_json(folder / IMAGES_FILE, {"folder": str(extras.images_folder.resolve())})


def check_thumbs(thumbs: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Give thumbnails back if they are images: uint8, (n, height, width) or (n, height, width, 3).

    Raises
    ------
    SettingError
        If they are not.
    """
    shaped = thumbs.ndim == 3 or (thumbs.ndim == 4 and thumbs.shape[3] == 3)
    if thumbs.dtype != np.uint8 or not shaped or 0 in thumbs.shape:
        raise SettingError(
            f"thumbnails have dtype {thumbs.dtype} and shape {thumbs.shape}, expected uint8 of "
            "shape (n, height, width) or (n, height, width, 3); convert them"
        )
    return thumbs
