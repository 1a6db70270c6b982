"""``hilander cluster``: group embeddings with a trained model, or the one in the box."""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander.cli.inputs import (
    AUTO_YES_NO,
    add_decoder,
    add_device,
    add_input,
    check_probability,
    name_model,
    read_input,
    whole,
)
from hilander.cli.size_remarks import remark_on_sizes
from hilander.errors import FileFormatError, SettingError
from hilander.io.files import EmbeddingFile, write_table
from hilander.io.memory import parse_memory
from hilander.io.writing import MARKER, check_output_folder, folder_writer, read_json, write_json

if TYPE_CHECKING:
    from hilander.estimator import HiLander
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.levels import LevelStep
    from hilander.hierarchy.run_extras import RunExtras
    from hilander.hierarchy.work import Work

CSV_FILE = "clusters.csv"


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "cluster",
        help="group embeddings with a trained model",
        description="Group embeddings with a trained model, and write a run folder: "
        "clusters.parquet (one row for each embedding: id, cluster, level_0, level_1 …, "
        "confidence, density, is_peak), run.json, hierarchy.npz and graph.npz. A long run that was "
        "killed or stopped goes on from RUN.work when the same command is given again.",
        allow_abbrev=False,
    )
    add_input(parser)
    parser.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        type=name_model,
        help="model folder that `hilander train` or `hilander convert` wrote (default: box, the "
        "model in the box, which needs no labels of yours)",
    )
    parser.add_argument(
        "-o", "--output", metavar="RUN", type=Path, required=True, help="run folder to write"
    )
    parser.add_argument("--k", type=whole, help="neighbours (default: the model's)")
    parser.add_argument(
        "--p-tau",
        type=float,
        metavar="P",
        help="least probability of a link, 0 to 1 (default: the model's)",
    )
    add_decoder(parser, "the model's")
    add_whiten(parser)
    parser.add_argument(
        "--early-stop",
        action="store_true",
        default=None,
        help="stop at a level that adds more than 1/k of the edges of the one before (default: as "
        "the model was trained)",
    )
    parser.add_argument(
        "--graph",
        metavar="GRAPH",
        type=Path,
        help="your own k-NN graph of EMB, an .npz of neighbours and affinity, both of shape "
        "(n, k); graph.npz of another run will do",
    )
    parser.add_argument(
        "--format",
        choices=("parquet", "csv"),
        default="parquet",
        help="csv writes clusters.csv beside clusters.parquet (default: parquet)",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="most memory to take, such as 512MB, 4GB or 4GiB (default: no limit)",
    )
    add_device(parser)
    parser.set_defaults(run=run)


def add_whiten(parser: argparse.ArgumentParser) -> None:
    """Add --whiten."""
    parser.add_argument(
        "--whiten",
        choices=list(AUTO_YES_NO),
        default="auto",
        help="whiten embeddings within the clusters of a first look; for the model in the box, "
        "others do what they learnt (default: auto, where it helps, and not with --graph)",
    )


@dataclass
class Log:
    """What happened and how long it took."""

    stages: list[dict[str, Any]] = field(default_factory=list)
    first: LevelStep | None = None
    work: Work | None = None
    _since: float = field(default_factory=time.perf_counter)

    def note(self, stage: str, **facts: Any) -> None:
        """End a stage that began where the last one ended."""
        now = time.perf_counter()
        self.stages.append({"stage": stage, "seconds": round(now - self._since, 4), **facts})
        self._since = now

    def watch(self, steps: Iterable[LevelStep]) -> Iterator[LevelStep]:
        """Pass the level loop's steps on, noting each and keeping the first."""
        for number, step in enumerate(steps):
            self.first = self.first or step
            self.note(
                f"level_{number}",
                n_nodes=len(step.labels),
                n_edges_added=step.parents.n_edges,
                n_clusters=len(step.peaks),
                p_tau=round(step.parents.p_tau, 4),
                **self._parts(number),
            )
            yield step

    def _parts(self, level: int) -> dict[str, Any]:
        """What the parts of a level took, as far as it is worked out."""
        done = [] if self.work is None else [one for one in self.work.done if one["level"] == level]
        parts: dict[str, Any] = {f"{one['stage']}_seconds": one["seconds"] for one in done}
        return parts | ({"kept": True} if any(one["kept"] for one in done) else {})


def run(args: argparse.Namespace) -> int:
    """Cluster and write the run folder."""
    from hilander.cli.kept_work import leave_work
    from hilander.estimator import HiLander
    from hilander.hierarchy.work import KeptWork
    from hilander.linkage.storage import PRETRAINED

    check_probability("--p-tau", args.p_tau)
    if args.graph is not None and args.k is not None:
        raise SettingError("--graph brings its own k; give --graph or --k, not both")
    budget = None if args.memory is None else parse_memory(args.memory)
    check_output_folder(args.output, "run")
    log = Log()
    model = HiLander.load(args.model or PRETRAINED, device=args.device)
    model.verbose = not args.quiet
    model.whiten = read_whiten(model, args)
    log.note("load_model")
    file = read_input(args)
    log.note("read")
    try:
        hierarchy = cluster_file(model, file, args, log)
    except BaseException as error:
        leave_work(log.work, stopped=isinstance(error, KeyboardInterrupt))
        raise
    settings = {
        "k": log.first.graph.k if log.first else model.rules_.k,
        "p_tau": model.rules_.p_tau if args.p_tau is None else args.p_tau,
        "p_tau_slope": model.rules_.p_tau_slope if args.p_tau is None else 0.0,
        "decoder": args.decoder or model.rules_.decoder,
        "early_stop": model.rules_.early_stop if args.early_stop is None else args.early_stop,
        "graph": args.graph,
        "memory": budget,
        "device": args.device,
        "model": args.model or "in the box",
        "id_column": args.id_column,
        "features_column": args.features_column,
    }
    found = None if log.first is None else log.first.graph.search
    prepared = "" if log.work is None else log.work.preparation
    described = describe_run(model, file, hierarchy, settings, prepared)
    described["search"] = None if found is None else asdict(found)
    content = RunContent(hierarchy, described, file, extras_of(file, log))
    replaced = describe_replaced(args.output)
    write_run(args.output, content, log, as_csv=args.format == "csv")
    if isinstance(log.work, KeptWork):
        log.work.remove()
    if not args.quiet:
        report(hierarchy, log)
        applied = describe_p_tau(log, settings["p_tau"])
        print(f"model: {settings['model']}{applied}, embeddings {prepared}; run: {args.output}")
        whitened = "whitened" in prepared
        remark = remark_on_sizes(
            hierarchy, file.features, is_pretrained=args.model is None, whitened=whitened
        )
        for line in filter(None, (remark, replaced)):
            print(line)
    return 0


def report(hierarchy: Hierarchy, log: Log) -> None:
    """Print how many clusters there are, how long that took, and how well the search went."""
    seconds = sum(stage["seconds"] for stage in log.stages)
    counts = " > ".join(f"{level.n_clusters:,}" for level in hierarchy.levels)
    clusters = "cluster" if hierarchy.n_clusters() == 1 else "clusters"
    print(
        f"{hierarchy.n_points:,} points in {hierarchy.n_clusters():,} {clusters} "
        f"(by level: {counts}) in {seconds:.1f} s"
    )
    found = None if log.first is None else log.first.graph.search
    if found is not None and found.method != "exact":
        print(f"the search found {found.recall:.1%} of the neighbours ({found.method})")


def describe_replaced(folder: Path) -> str:
    """One line on the run that a new one is going to replace; empty if there is none."""
    from hilander.explorer.review_log.store import REVIEW_FILE, state_folder
    from hilander.hierarchy.run_extras import DETAILS_FILE

    if not (folder / MARKER).is_file():
        return ""
    line = "it replaces an earlier run"
    try:
        told = read_json(folder / DETAILS_FILE)
        n_points, n_clusters = told["input"]["n"], told["n_clusters"][-1]
        written = datetime.fromtimestamp((folder / DETAILS_FILE).stat().st_mtime)
        line += f", of {written:%Y-%m-%d %H:%M} with {n_points:,} points"
        line += f" in {n_clusters:,} {'cluster' if n_clusters == 1 else 'clusters'}"
    except (FileFormatError, OSError, LookupError, TypeError, ValueError):
        pass  # a run that was saved from Python, or damaged
    review = state_folder(folder) / REVIEW_FILE
    return line + (f"; its review in {review.parent} is kept" if review.is_file() else "")


def describe_p_tau(log: Log, asked: float) -> str:
    """The threshold of the points, and from where the sizes have moved it."""
    if log.first is None:
        return ""
    applied = f"{log.first.parents.p_tau:.2g}"
    return f", p_tau {applied}" + (
        "" if applied == f"{asked:.2g}" else f" (for its sizes; else {asked:g})"
    )


def read_whiten(model: HiLander, args: argparse.Namespace) -> Any:
    """What is asked for, of a model that prepares each set by itself."""
    from hilander.embeddings.preparation import PerSetPreparation

    if args.whiten != "auto" and not isinstance(model.preparation_, PerSetPreparation):
        raise SettingError(
            f"--whiten {args.whiten} is for the model in the box, {args.model} prepares embeddings "
            "as it learnt to; leave it out"
        )
    return model.whiten if args.whiten == "auto" else AUTO_YES_NO[args.whiten]


def cluster_file(
    model: HiLander, file: EmbeddingFile, args: argparse.Namespace, log: Log
) -> Hierarchy:
    """Group the embeddings of a file, noting the levels; a long run tells and keeps its work."""
    from hilander.cli.kept_work import start_work
    from hilander.graph.knn_graph import KnnGraph
    from hilander.hierarchy.budget import LONG_RUN, describe_estimate
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.work import Work
    from hilander.training.inference import plan_run

    graph = None if args.graph is None else KnnGraph.load(args.graph)
    asked = {name: getattr(args, name) for name in ("k", "p_tau", "early_stop", "decoder")}
    if len(file.features) >= LONG_RUN or args.memory is not None:
        settings = model.run_settings(asked, args.memory)
        plan = plan_run(model.model_, file.features, settings, graph, may_map=True)
        if not args.quiet and len(file.features) >= LONG_RUN:
            print(describe_estimate(plan.load, plan.memory), flush=True)
        log.work = start_work(args, file, plan.rules, plan.memory)
    log.work = log.work or Work()
    steps = model.walk(file.features, graph=graph, memory=args.memory, work=log.work, **asked)
    log.note("prepare")
    return Hierarchy.of_steps(log.watch(steps), keep_last=model.rules_.as_released)


def describe_run(
    model: HiLander,
    file: EmbeddingFile,
    hierarchy: Hierarchy,
    settings: dict[str, Any],
    prepared: str = "",
) -> dict[str, Any]:
    """Everything about a run but its stages, for run.json; `prepared` says how its points were."""
    import faiss
    import numpy
    import torch

    from hilander import __version__

    return {
        "input": {
            "path": str(file.source),
            "n": len(file.features),
            "dim": int(file.features.shape[1]),
            "has_ids": file.ids is not None,
        },
        "settings": settings,
        "model": {
            "preparation": prepared or model.preparation_.describe(),
            "rules": asdict(model.rules_),
            "network": model.network_.settings.to_dict(),
        },
        "n_levels": hierarchy.n_levels,
        "n_clusters": [level.n_clusters for level in hierarchy.levels],
        "versions": {
            "hilander": __version__,
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "torch": torch.__version__,
            "faiss": faiss.__version__,
        },
    }


@dataclass(frozen=True, eq=False)
class RunContent:
    """All that a run folder holds but its stages.

    Attributes
    ----------
    hierarchy : Hierarchy
    described : dict
        From `describe_run`.
    file : EmbeddingFile
        What was clustered.
    extras : RunExtras
        For whoever looks at the run.
    """

    hierarchy: Hierarchy
    described: dict[str, Any]
    file: EmbeddingFile
    extras: RunExtras


def extras_of(file: EmbeddingFile, log: Log) -> RunExtras:
    """What the explorer wants to know besides: where the peaks lie, and labels if there are any."""
    from hilander.hierarchy.run_extras import RunExtras

    labels = file.labels if file.labels is not None and file.labels.ndim == 1 else None
    return RunExtras(
        features=None if log.first is None else log.first.nodes.identity,
        columns={} if labels is None else {"label": labels},
    )


def write_run(folder: Path, content: RunContent, log: Log, *, as_csv: bool = False) -> None:
    """Write a run folder, whole or not at all."""
    from hilander.hierarchy.quality import write_quality
    from hilander.hierarchy.run_extras import DETAILS_FILE, write_extras
    from hilander.hierarchy.storage import RUN_KIND, write_hierarchy, write_scored_graph

    hierarchy, ids = content.hierarchy, content.file.ids
    with folder_writer(folder, RUN_KIND) as inside:
        write_hierarchy(hierarchy, inside, ids)
        if as_csv:
            write_table(inside / CSV_FILE, hierarchy.to_columns(ids))
        if log.first is not None:
            write_scored_graph(log.first, inside)
            first = log.first
            write_quality(hierarchy, first.graph.neighbours, first.scores.linkage, inside, ids)
        write_extras(inside, hierarchy, content.extras)
        log.note("write")
        write_json(inside / DETAILS_FILE, {**content.described, "stages": log.stages})
