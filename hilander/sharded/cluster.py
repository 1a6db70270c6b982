"""Cluster a folder of shards, or an array, on an engine: what `HiLander.cluster` calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hilander.engines.protocol import Engine
from hilander.engines.thread_engine import ThreadEngine
from hilander.errors import EmbeddingError, SettingError
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.work import Work
from hilander.io.shards import list_shards
from hilander.sharded.arrays import cut_array
from hilander.sharded.points import ShardedPoints
from hilander.sharded.run import ShardedSettings, walk_sharded
from hilander.sharded.stage_log import StageLog
from hilander.training.inference import RunSettings
from hilander.training.model import Model


def cluster_source(
    model: Model, source: Any, settings: RunSettings, engine: Engine | None, **others: Any
) -> Hierarchy:
    """Cluster embeddings that are read by the workers of an engine.

    Parameters
    ----------
    model : Model
    source : str, Path or array-like
        A folder of .parquet or .npy shards, or one such file; or an array.
    settings : RunSettings
    engine : Engine, optional
        Threads of this process by default, which end with the run.
    **others
        Arguments of `HiLander.cluster` that are for arrays only; refused unless empty.
    """
    if given := sorted(name for name, one in others.items() if one is not None and one != ()):
        raise SettingError(
            f"{', '.join(given)} cannot be used with shards or an engine; leave it out, or give "
            "the embeddings as an array"
        )
    running = engine or ThreadEngine()
    log = StageLog(running, settings.verbose)
    try:
        points = open_points(log, source, model.n_features)
        how = ShardedSettings(running.worker_memory)
        steps = walk_sharded(model, points, settings, how, Work())
        return Hierarchy.of_steps(steps, keep_last=model.rules.as_released, keep_graph=True)
    finally:
        if engine is None:
            running.close()


def open_points(
    log: StageLog,
    source: Any,
    dim: int | None = None,
    features: str | None = None,
    ids: str | None = None,
) -> ShardedPoints:
    """The points of a source, whose headers are read.

    Parameters
    ----------
    log : StageLog
    source : str, Path or array-like
    dim : int, optional
        Number of features that the model was trained on.
    features, ids : str, optional
        Columns of Parquet files.
    """
    shards: list[Any]
    if isinstance(source, str | Path):
        shards = list(list_shards(str(source), features, ids))
    else:
        shards = list(cut_array(source, dim))
    if dim is not None and shards[0].dim != dim:
        raise EmbeddingError(
            f"{shards[0].path} has {shards[0].dim} features, expected the {dim} that the model was "
            "trained on; use the embedder of the training set"
        )
    if sum(one.n_rows for one in shards) < 2:
        raise EmbeddingError(f"{source} has one row, clustering needs at least 2; give more")
    return ShardedPoints.of_shards(log, shards)
