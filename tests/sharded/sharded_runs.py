"""Runs over shards, and what makes two of them equal."""

from __future__ import annotations

import numpy as np

from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.work import Work
from hilander.io.shards import list_shards
from hilander.sharded.points import ShardedPoints
from hilander.sharded.run import ShardedSettings, walk_sharded
from hilander.sharded.stage_log import StageLog


def write_shards(folder, rows, n_shards=3):
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(rows, n_shards)):
        np.save(folder / f"part-{number:03}.npy", part)
    return folder


def run(model, folder, engine, n_parts=None, worker_memory=4_000_000_000, **asked):
    """The hierarchy of a folder of shards, and the first level with its graph and scores."""
    log = StageLog(engine)
    points = ShardedPoints.of_shards(log, list_shards(str(folder)))
    settings = ShardedSettings(worker_memory, n_parts)
    first = []

    def watch(steps):
        for step in steps:
            first.append(step) if not first else None
            yield step

    steps = walk_sharded(model.model_, points, model.run_settings(asked), settings, Work())
    return Hierarchy.of_steps(watch(steps)), first[0], log


def assert_same(found, expected):
    """Equal to the last bit: labels, densities and linkages of every level."""
    assert found.n_levels == expected.n_levels
    for one, other in zip(found.levels, expected.levels, strict=True):
        for name in ("parent", "labels", "peaks", "density", "linkage"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
