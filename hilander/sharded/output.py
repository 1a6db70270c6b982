"""The run folder of a sharded run: clusters in one Parquet file for each shard."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.quality import write_quality
from hilander.hierarchy.run_extras import DETAILS_FILE, RunExtras, write_extras
from hilander.hierarchy.run_log import RunLog
from hilander.hierarchy.storage import (
    CLUSTERS_FOLDER,
    RUN_KIND,
    write_levels,
    write_scored_graph,
)
from hilander.io.shards import Shard
from hilander.io.writing import folder_writer, write_json
from hilander.sharded.stage_log import StageLog


def write_sharded_run(
    folder: Path,
    hierarchy: Hierarchy,
    shards: list[Shard],
    details: dict[str, Any],
    log: RunLog,
    stages: StageLog,
) -> None:
    """Write a run folder, whole or not at all.

    Parameters
    ----------
    folder : Path
    hierarchy : Hierarchy
    shards : list of Shard
        The input; each has a file of clusters, with the ids of its rows.
    details : dict
        Content of run.json, without the stages.
    log : RunLog
    stages : StageLog
    """
    with folder_writer(folder, RUN_KIND) as inside:
        write_levels(hierarchy, inside)
        write_clusters(inside / CLUSTERS_FOLDER, hierarchy, shards, stages)
        if log.first is not None:
            write_scored_graph(log.first, inside)
            graph, linkage = log.first.graph, log.first.scores.linkage
            ids = StoredIds(inside / CLUSTERS_FOLDER, shards) if shards[0].id_column else None
            write_quality(hierarchy, graph.neighbours, linkage, inside, ids)
            write_extras(inside, hierarchy, RunExtras(features=log.first.nodes.identity))
        log.note("write")
        found = {**details, "stages": log.stages, "engine": stages.to_dict()}
        write_json(inside / DETAILS_FILE, found)


def write_clusters(
    folder: Path, hierarchy: Hierarchy, shards: list[Shard], stages: StageLog
) -> None:
    """Write the clusters of each shard; workers read its ids and make its file."""
    folder.mkdir()
    columns = hierarchy.to_columns()
    engine = stages.engine
    starts = np.cumsum([0, *(shard.n_rows for shard in shards)]).tolist()

    def submit() -> Iterator[Any]:
        for shard, (start, stop) in zip(shards, pairwise(starts), strict=True):
            some = {name: values[start:stop] for name, values in columns.items()}
            yield engine.submit(_make_table, shard, some, rows=stop - start)

    for number, task in enumerate(stages.run("write", submit(), starts[-1])):
        name = part_name(number, shards[number])
        (folder / name).write_bytes(engine.fetch(task.results[0]))


def part_name(number: int, shard: Shard) -> str:
    """Name of the clusters of a shard; the number keeps the order."""
    return f"{number:06}-{Path(shard.name).stem}.parquet"


def _make_table(shard: Shard, columns: dict[str, npt.NDArray[Any]]) -> bytes:
    """A Parquet file of some columns, with the ids of a shard in place of row numbers."""
    import pyarrow
    import pyarrow.parquet

    arrays: dict[str, Any] = {name: pyarrow.array(values) for name, values in columns.items()}
    ids = shard.read_ids(0, shard.n_rows)
    if ids is not None:
        arrays["id"] = ids
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(arrays), sink)
    found: bytes = sink.getvalue().to_pybytes()
    return found


class StoredIds:
    """Ids of a run's points, read from its files of clusters when they are asked for.

    Parameters
    ----------
    folder : Path
    shards : list of Shard
    """

    def __init__(self, folder: Path, shards: list[Shard]) -> None:
        self.folder, self.shards = folder, shards
        self.starts = np.cumsum([0, *(shard.n_rows for shard in shards)])

    def __getitem__(self, rows: IntArray) -> npt.NDArray[Any]:
        """Ids of some points, in their order."""
        import pyarrow.parquet

        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], self.starts)
        found = []
        for number in np.flatnonzero(np.diff(ends)).tolist():
            path = self.folder / part_name(number, self.shards[number])
            ids = pyarrow.parquet.read_table(path, columns=["id"]).column(0).to_numpy()
            found.append(ids[rows[order[ends[number] : ends[number + 1]]] - self.starts[number]])
        ids = np.concatenate(found)
        sorted_back = np.empty_like(ids)
        sorted_back[order] = ids
        return sorted_back
