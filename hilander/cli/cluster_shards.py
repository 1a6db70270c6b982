"""``hilander cluster`` of a folder of shards, or on another engine than this process."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander.errors import SettingError
from hilander.io.memory import parse_memory

if TYPE_CHECKING:
    from hilander.engines.protocol import Engine
    from hilander.estimator import HiLander
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.run_log import RunLog
    from hilander.sharded.points import ShardedPoints

ENGINES = ("threads", "ray")
WORKER_MEMORY = "4GB"  # of `engines.protocol`, repeated so that --help does not import it
# Options that need all embeddings in one process.
_FOR_ONE_FILE = {
    "graph": "--graph", "memory": "--memory",
    "together": "--together", "apart": "--apart", "pairs": "--pairs",
    "together_column": "--together-column", "apart_column": "--apart-column",
    "known_labels": "--known-labels", "review": "--review", "early_stop": "--early-stop",
}  # fmt: skip


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the stages run."""
    group = parser.add_argument_group(
        "engine", "for a folder of shards; the clusters are the same on every engine"
    )
    group.add_argument(
        "--engine",
        choices=ENGINES,
        help="threads of this process, or Ray, which needs the extra hilander[ray] (default: "
        "threads)",
    )
    group.add_argument(
        "--address",
        metavar="ADDRESS",
        help="running Ray cluster, such as auto or ray://host:10001 (default: a local Ray that is "
        "started and stopped)",
    )
    group.add_argument(
        "--workers", metavar="N", type=int, help="tasks at a time (default: one a processor)"
    )
    group.add_argument(
        "--worker-memory",
        metavar="SIZE",
        default=WORKER_MEMORY,
        help="memory of a worker; the number of partitions follows from it (default: "
        f"{WORKER_MEMORY})",
    )
    group.add_argument(
        "--plan",
        action="store_true",
        help="print the time and the memory that a run will take, and do not start it",
    )


def wants_engine(args: argparse.Namespace) -> bool:
    """Whether the input is a folder of shards, or an engine is named."""
    place = str(args.embeddings)
    return args.engine is not None or args.plan or "://" in place or os.path.isdir(place)


def check_engine_settings(args: argparse.Namespace) -> None:
    """Refuse options that need all embeddings in one process."""
    for name, option in _FOR_ONE_FILE.items():
        if getattr(args, name):
            raise SettingError(
                f"{option} is for one file of embeddings without --engine; leave it out"
            )
    if args.format == "csv":
        raise SettingError("--format csv is for one file; shards give clusters/*.parquet")
    if args.address is not None and args.engine != "ray":
        raise SettingError("--address is of a Ray cluster; give --engine ray, too")
    parse_memory(args.worker_memory)


def open_engine(args: argparse.Namespace) -> Engine:
    """The engine that the options name."""
    if args.engine == "ray":
        from hilander.engines.ray_engine import RayEngine

        return RayEngine(args.address, args.workers, args.worker_memory)
    from hilander.engines.thread_engine import ThreadEngine

    return ThreadEngine(args.workers, args.worker_memory)


def cluster_shards(
    args: argparse.Namespace, model: HiLander, asked: Mapping[str, Any], log: RunLog
) -> tuple[Hierarchy, str]:
    """Cluster shards, write the run folder, and describe what was done.

    Parameters
    ----------
    args : Namespace of ``hilander cluster``
    model : HiLander
    asked : mapping
        Settings in place of the model's own.
    log : RunLog
    """
    from hilander.sharded.cluster import open_points
    from hilander.sharded.stage_log import StageLog

    engine = open_engine(args)
    try:
        stages = StageLog(engine, not args.quiet)
        dim, columns = model.model_.n_features, (args.features_column, args.id_column)
        points = open_points(stages, str(args.embeddings), dim, *columns)
        points.check()
        log.note("read")
        hierarchy = _walk(args, model, points, asked, log)
        _write(args, model, points, hierarchy, log)
        return hierarchy, _describe(stages)
    finally:
        engine.close()


def describe_plan(args: argparse.Namespace, model: HiLander) -> str:
    """What a run will take: the headers of the shards are read, and nothing else."""
    from hilander.hierarchy.rules import resolve_rules
    from hilander.sharded.cluster import open_points
    from hilander.sharded.cost import RunCost, Shape
    from hilander.sharded.stage_log import StageLog

    engine = open_engine(args)
    try:
        columns = args.features_column, args.id_column
        points = open_points(
            StageLog(engine), str(args.embeddings), model.model_.n_features, *columns
        )
        rules = resolve_rules(model.rules_, len(points), adapt_k=model.k == "auto", k=args.k)
        n_workers = args.workers or engine.n_workers
        return RunCost(Shape(*points.shape, rules.k), n_workers, engine.worker_memory).describe()
    finally:
        engine.close()


def _walk(
    args: argparse.Namespace,
    model: HiLander,
    points: ShardedPoints,
    asked: Mapping[str, Any],
    log: RunLog,
) -> Hierarchy:
    from hilander.cli.kept_work import leave_work, open_sharded_work
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.sharded.run import ShardedSettings, walk_sharded

    settings = model.run_settings(asked)
    how = ShardedSettings(points.log.engine.worker_memory)
    try:
        log.work = open_sharded_work(args, points.digest, repr((settings, model.rules_)))
        steps = walk_sharded(model.model_, points, settings, how, log.work)
        log.note("prepare")
        return Hierarchy.of_steps(log.watch(steps), keep_last=model.rules_.as_released)
    except BaseException as error:
        leave_work(log.work, stopped=isinstance(error, KeyboardInterrupt))
        raise


def _write(
    args: argparse.Namespace,
    model: HiLander,
    points: ShardedPoints,
    hierarchy: Hierarchy,
    log: RunLog,
) -> None:
    from hilander.cli.kept_work import remove_work
    from hilander.cli.run_details import describe_rows
    from hilander.sharded.output import write_sharded_run

    shards: list[Any] = list(dict.fromkeys(piece.shard for piece in points.pieces))
    source = {
        "path": str(args.embeddings),
        "n": len(points),
        "dim": points.shape[1],
        "has_ids": bool(shards[0].id_column),
        "shards": len(shards),
    }
    settings = {
        "k": log.first.graph.k if log.first else model.rules_.k,
        "p_tau": model.rules_.p_tau if args.p_tau is None else args.p_tau,
        "decoder": args.decoder or model.rules_.decoder,
        "model": args.model,
        "engine": points.log.engine.name,
        "worker_memory": points.log.engine.worker_memory,
    }
    details = describe_rows(model, source, hierarchy, settings, log)
    write_sharded_run(Path(args.output), hierarchy, shards, details, log, points.log)
    remove_work(log.work)


def _describe(stages: Any) -> str:
    """One line on the engine and the memory of its workers."""
    from hilander.io.memory import format_memory

    found = stages.to_dict()
    peak = max((one["peak_bytes"] for one in found["stages"]), default=0)
    return (
        f"engine: {found['engine']} with {found['workers']} workers, of at most "
        f"{format_memory(peak)} each; this process {format_memory(found['driver_peak_bytes'])}"
    )
