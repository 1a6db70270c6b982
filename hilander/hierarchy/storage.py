"""The hierarchy on disk: a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.basis_storage import basis_reader
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.hierarchy.run_extras import GRAPH_FILE
from hilander.io.writing import folder_writer, open_stored_folder

if TYPE_CHECKING:
    from hilander.arrays.rows import FloatArray, IntArray
    from hilander.hierarchy.hierarchy import Hierarchy, ReadGraph
    from hilander.hierarchy.levels import LevelStep
    from hilander.io.digests import FileList

HIERARCHY_FILE = "hierarchy.npz"
CLUSTERS_FILE = "clusters.parquet"
CLUSTERS_FOLDER = "clusters"  # of a run over shards: one file for each of them
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
    write_levels(hierarchy, folder)
    hierarchy.to_parquet(folder / CLUSTERS_FILE, ids)


def write_levels(hierarchy: Hierarchy, folder: Path) -> None:
    """Write the levels, and what was known beforehand, into an open run folder."""
    arrays: dict[str, Any] = {"n_levels": np.array(hierarchy.n_levels)}
    for number, level in enumerate(hierarchy.levels):
        for name in _ARRAYS:
            arrays[f"{number}/{name}"] = getattr(level, name)
        arrays[f"{number}/stops_early"] = np.array(level.stops_early)
    arrays["cluster_ids"] = hierarchy.cluster_ids
    if hierarchy.trust < 1:
        arrays["trust"] = np.array(hierarchy.trust)
    np.savez(folder / HIERARCHY_FILE, **arrays)
    if hierarchy.constraints is not None:
        hierarchy.constraints.save(folder)


def list_cluster_files(files: FileList) -> list[Path]:
    """The files with one row for each point, in the order of the rows."""
    parts = sorted((files.folder / CLUSTERS_FOLDER).glob("*.parquet"))
    if not parts:
        return [files.check(CLUSTERS_FILE)]
    return [files.check(one.relative_to(files.folder).as_posix()) for one in parts]


def write_scored_graph(step: LevelStep, folder: Path) -> None:
    """Write the neighbours, affinity and linkage of one level into an open run folder.

    `KnnGraph.load` reads the file too: it is the graph of the points, for another run.
    """
    graph, scores = step.graph, step.scores
    write_graph(folder, graph.neighbours, graph.affinity, scores)


def write_graph(
    folder: Path, neighbours: IntArray, affinity: FloatArray, scores: EdgeScores
) -> None:
    """Write the graph of the points and its scores into an open run folder."""
    np.savez(
        folder / GRAPH_FILE,
        neighbours=neighbours,
        affinity=affinity,
        linkage=scores.linkage,
        density=scores.density,
    )


def load_scored_graph(folder: str | Path) -> tuple[KnnGraph, EdgeScores]:
    """Read the first level's graph of a run folder, and the scores of its edges.

    Returns
    -------
    graph : KnnGraph of n_points nodes
    scores : EdgeScores of that graph

    Raises
    ------
    FileFormatError
        When the run has no graph, or its file is damaged.
    """
    return _read_scored_graph(open_stored_folder(Path(folder), RUN_KIND))


def _read_scored_graph(files: FileList) -> tuple[KnnGraph, EdgeScores]:
    path = files.check(GRAPH_FILE)
    graph = KnnGraph.load(path)
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            scores = EdgeScores(arrays["linkage"], arrays["density"])
    except Exception as error:  # zipfile and zlib raise kinds of their own on a damaged file
        message = f"{path} holds no linkage ({error}); run `hilander cluster` again"
        raise FileFormatError(message) from error
    if scores.linkage.shape != graph.neighbours.shape:
        raise FileFormatError(f"{path}: linkage and neighbours differ in shape; cluster again")
    return graph, scores


def load_hierarchy(folder: str | Path) -> Hierarchy:
    """Read a run folder."""
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.level import Level

    files = open_stored_folder(Path(folder), RUN_KIND)
    path = files.check(HIERARCHY_FILE)
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            levels = [
                Level(
                    **{name: arrays[f"{number}/{name}"] for name in _ARRAYS},
                    stops_early=bool(arrays[f"{number}/stops_early"]),
                )
                for number in range(int(arrays["n_levels"]))
            ]
            ids, trust = arrays.get("cluster_ids"), float(arrays.get("trust", 1))
        hierarchy = Hierarchy(levels, _graph_reader(files), basis_reader(files), ids)
        hierarchy.constraints, hierarchy.trust = Constraints.load(files), trust
        return hierarchy
    except FileFormatError:
        raise
    except FileNotFoundError:
        message = f"{folder} holds no {HIERARCHY_FILE}; run `hilander cluster` again"
        raise FileFormatError(message) from None
    except Exception as error:  # zipfile and zlib raise kinds of their own on a damaged file
        message = (
            f"{path} is damaged ({error or type(error).__name__}); run `hilander cluster` again"
        )
        raise FileFormatError(message) from error


def _graph_reader(files: FileList) -> ReadGraph | None:
    """Reads the scored graph of a run when it is needed; None where the run has none."""
    if not (files.folder / GRAPH_FILE).is_file():
        return None

    def read() -> tuple[IntArray, FloatArray]:
        graph, scores = _read_scored_graph(files)
        return graph.neighbours, scores.linkage

    return read
