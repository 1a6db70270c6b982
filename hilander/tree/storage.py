"""The hierarchy on disk: a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.data.writing import check_folder_kind, folder_writer
from hilander.errors import FileFormatError

if TYPE_CHECKING:
    from hilander.tree.hierarchy import Hierarchy

HIERARCHY_FILE = "hierarchy.npz"
CLUSTERS_FILE = "clusters.parquet"
RUN_KIND = "run"
_ARRAYS = ("parent", "linkage", "density", "labels", "peaks")


def save_hierarchy(
    hierarchy: Hierarchy, folder: str | Path, ids: npt.ArrayLike | None = None
) -> Path:
    """Write a run folder, whole or not at all."""
    with folder_writer(Path(folder), RUN_KIND) as inside:
        write_hierarchy(hierarchy, Path(inside), ids)
    return Path(folder)


def write_hierarchy(hierarchy: Hierarchy, folder: Path, ids: npt.ArrayLike | None) -> None:
    """Write the hierarchy's files into an open run folder."""
    arrays: dict[str, Any] = {"n_levels": np.array(hierarchy.n_levels)}
    for number, level in enumerate(hierarchy.levels):
        for name in _ARRAYS:
            arrays[f"{number}/{name}"] = getattr(level, name)
        arrays[f"{number}/stops_early"] = np.array(level.stops_early)
    np.savez(folder / HIERARCHY_FILE, **arrays)
    hierarchy.to_parquet(folder / CLUSTERS_FILE, ids)


def load_hierarchy(folder: str | Path) -> Hierarchy:
    """Read a run folder."""
    from hilander.tree.hierarchy import Hierarchy, Level

    check_folder_kind(Path(folder), RUN_KIND)
    path = Path(folder) / HIERARCHY_FILE
    try:
        with np.load(path, allow_pickle=False) as arrays:
            levels = [
                Level(
                    **{name: arrays[f"{number}/{name}"] for name in _ARRAYS},
                    stops_early=bool(arrays[f"{number}/stops_early"]),
                )
                for number in range(int(arrays["n_levels"]))
            ]
        return Hierarchy(levels)
    except FileNotFoundError:
        message = f"{folder} holds no {HIERARCHY_FILE}; run `hilander cluster` again"
        raise FileFormatError(message) from None
    except Exception as error:  # zipfile and zlib raise kinds of their own on a damaged file
        message = (
            f"{path} is damaged ({error or type(error).__name__}); run `hilander cluster` again"
        )
        raise FileFormatError(message) from error
