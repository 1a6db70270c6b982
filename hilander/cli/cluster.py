"""``hilander cluster``: group embeddings with a trained model, or with the pretrained one."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander.cli import cluster_shards
from hilander.cli.inputs import (
    AUTO_YES_NO,
    PRETRAINED_NAME,
    add_decoder,
    add_device,
    add_input,
    add_wait,
    check_probability,
    find_model,
    read_input,
    whole,
)
from hilander.cli.known import add_known_options, read_known, read_reviewed
from hilander.cli.run_details import (
    describe_counts,
    describe_p_tau,
    describe_replaced,
    describe_run,
    make_extras,
)
from hilander.cli.size_remarks import remark_on_sizes
from hilander.errors import SettingError
from hilander.io.files import EmbeddingFile
from hilander.io.locks import lock_output
from hilander.io.memory import parse_memory
from hilander.io.writing import check_output_folder

if TYPE_CHECKING:
    from hilander.estimator import HiLander
    from hilander.hierarchy.constraints.constraints import Constraints
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.run_log import RunLog


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "cluster",
        help="group embeddings with a trained model or the pretrained one",
        description="Group embeddings and write a run folder: clusters.parquet (one row for each "
        "embedding: id, cluster, level_0, level_1 …, confidence, density, is_peak), run.json, "
        "hierarchy.npz and graph.npz. If a run of 50,000 points or more is killed or stopped, the "
        "same command resumes from RUN.work.",
        allow_abbrev=False,
    )
    add_input(parser)
    parser.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        default=PRETRAINED_NAME,
        help="model folder, as `hilander train` or `hilander convert` writes it (default: "
        "pretrained, the model that comes with hilander)",
    )
    parser.add_argument(
        "-o", "--output", metavar="RUN", type=Path, required=True, help="run folder to write"
    )
    _add_settings(parser)
    add_known_options(parser)
    parser.add_argument(
        "--format",
        choices=("parquet", "csv"),
        default="parquet",
        help="csv writes clusters.csv too, next to clusters.parquet (default: parquet)",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="limit of the memory to use, such as 512MB, 4GB or 4GiB (default: no limit)",
    )
    parser.add_argument(
        "--canonical-order",
        action="store_true",
        help=argparse.SUPPRESS,  # does nothing: rows are always clustered in canonical order
    )
    cluster_shards.add_engine_options(parser)
    add_wait(parser)
    add_device(parser)
    parser.set_defaults(run=run)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options that take the place of the model's own settings."""
    parser.add_argument(
        "--k",
        type=whole,
        help="neighbours of each point, itself not counted (default: the model's)",
    )
    parser.add_argument(
        "--p-tau",
        type=float,
        metavar="P",
        help="lowest probability of a link, and of a merge of clusters unless the model's is "
        "higher, 0 to 1 (default: the model's)",
    )
    add_decoder(parser, "the model's")
    parser.add_argument(
        "--whiten",
        choices=list(AUTO_YES_NO),
        default="auto",
        help="whiten the embeddings within the clusters of a first clustering. This is for the "
        "pretrained model only: a trained model has learnt whether to whiten (default: auto, which "
        "whitens if that helps, and not with --graph)",
    )
    parser.add_argument(
        "--early-stop",
        action="store_true",
        default=None,
        help="stop at a level that adds more than 1/k of the edges that the previous level added "
        "(default: as the model was trained)",
    )
    parser.add_argument(
        "--graph",
        metavar="GRAPH",
        type=Path,
        help="k-NN graph of EMB to use instead of a search: .npz with neighbours and affinity, "
        "both of shape (n, k), such as graph.npz of another run",
    )


def run(args: argparse.Namespace) -> int:
    """Cluster and write the run folder, which is locked meanwhile."""
    check_settings(args)
    if cluster_shards.wants_engine(args):
        cluster_shards.check_engine_settings(args)
    if args.plan:
        print(cluster_shards.describe_plan(args, load_model(args)))
        return 0
    check_output_folder(args.output, "run")
    with lock_output(args.output, wait=args.wait):
        if cluster_shards.wants_engine(args):
            cluster_on_engine(args)
        else:
            cluster_and_write(args)
    return 0


def cluster_on_engine(args: argparse.Namespace) -> None:
    """Cluster a folder of shards, write the run folder and print what was done."""
    from hilander.hierarchy.run_log import RunLog

    log = RunLog()
    model = load_model(args)
    log.note("load_model")
    replaced = describe_replaced(args.output)
    hierarchy, engine = cluster_shards.cluster_shards(args, model, asked_settings(args), log)
    if not args.quiet:
        print(describe_counts(hierarchy, log))
        settings = collect_settings(model, args, log)
        print(describe_model(settings, log), f"run: {args.output}", sep="; ")
        print(engine)
        print(*filter(None, [replaced]), sep="\n", end="\n" * bool(replaced))


def cluster_and_write(args: argparse.Namespace) -> None:
    """Read the input, cluster it, write the run folder and print what was done."""
    from hilander.cli.kept_work import remove_work
    from hilander.collection.rerun import carry_ids, write_source
    from hilander.hierarchy.run_folder import RunContent, write_run
    from hilander.hierarchy.run_log import RunLog

    log = RunLog()
    model = load_model(args)
    log.note("load_model")
    file = read_input(args)
    log.note("read")
    constraints, known, lines = read_known(args, file)
    if not args.quiet:
        print(*lines, sep="\n", end="\n" * bool(lines))
    hierarchy = cluster_file(model, file, args, log, constraints)
    settings = collect_settings(model, args, log)
    graph = () if log.first is None else (log.first.graph.neighbours, log.first.scores.linkage)
    carried = carry_ids(
        args.output, hierarchy, file.ids, asked_settings(args), model.whiten, graph,
        read_reviewed(args, args.output),
    )  # fmt: skip
    hierarchy = carried.hierarchy
    remark = remark_on_sizes(
        hierarchy,
        file.features,
        can_whiten=model.model_.prepares_each_set,
        whitened="whitened" in log.work.preparation,
    )
    details = describe_run(model, file, hierarchy, settings, log) | {"remark": remark}
    keep = partial(
        write_source, model=model, embeddings=file.features, carried=carried, known=known
    )
    content = RunContent(hierarchy, details, file.ids, make_extras(file, log), keep)
    replaced = describe_replaced(args.output)
    write_run(args.output, content, log, as_csv=args.format == "csv")
    remove_work(log.work)
    if not args.quiet:
        print(describe_counts(hierarchy, log))
        print(describe_model(settings, log), f"run: {args.output}", sep="; ")
        for line in filter(None, (remark, replaced, carried.describe())):
            print(line)


def check_settings(args: argparse.Namespace) -> None:
    """Refuse settings that mean nothing, before anything is read."""
    check_probability("--p-tau", args.p_tau)
    if args.graph is not None and args.k is not None:
        raise SettingError("--graph has its own k; give --graph or --k, not both")
    if args.memory is not None:
        parse_memory(args.memory)


def load_model(args: argparse.Namespace) -> HiLander:
    """Read the model, and set how it whitens."""
    from hilander.estimator import HiLander

    model = HiLander.load(find_model(args.model), device=args.device)
    model.verbose = not args.quiet
    if args.whiten == "auto":
        return model
    if not model.model_.prepares_each_set:
        raise SettingError(
            f"--whiten {args.whiten} is for the pretrained model, {args.model} prepares embeddings "
            "as it learnt to; leave it out"
        )
    model.whiten = AUTO_YES_NO[args.whiten]
    return model


def cluster_file(
    model: HiLander,
    file: EmbeddingFile,
    args: argparse.Namespace,
    log: RunLog,
    constraints: Constraints | None,
) -> Hierarchy:
    """Group the embeddings of a file. A long run prints an estimate and keeps its work."""
    from hilander.cli.kept_work import leave_work, start_work
    from hilander.graph.knn_graph import KnnGraph
    from hilander.hierarchy.hierarchy import Hierarchy

    asked = asked_settings(args)
    try:
        graph = None if args.graph is None else KnnGraph.load(args.graph)
        log.work = start_work(model, file, args, asked, graph, constraints)
        options = {"graph": graph, "memory": args.memory, "constraints": constraints} | asked
        steps = model.walk(file.features, work=log.work, **options)
        log.note("prepare")
        as_released = model.rules_.as_released
        hierarchy = Hierarchy.of_steps(log.watch(steps), keep_last=as_released, work=log.work)
        hierarchy.constraints = constraints
        return hierarchy
    except BaseException as error:
        leave_work(log.work, stopped=isinstance(error, KeyboardInterrupt))
        raise


def asked_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Settings in place of the model's own; None for the model's."""
    return {name: getattr(args, name) for name in ("k", "p_tau", "early_stop", "decoder")}


def collect_settings(model: HiLander, args: argparse.Namespace, log: RunLog) -> dict[str, Any]:
    """The settings of a run, for run.json: those given, or else the model's."""
    rules = model.rules_
    return {
        "k": log.first.graph.k if log.first else rules.k,
        "p_tau": rules.p_tau if args.p_tau is None else args.p_tau,
        "adapt_merges": rules.adapt_merges and args.p_tau is None,
        "decoder": args.decoder or rules.decoder,
        "early_stop": rules.early_stop if args.early_stop is None else args.early_stop,
        "graph": args.graph,
        "memory": None if args.memory is None else parse_memory(args.memory),
        "device": args.device,
        "model": args.model,
        "id_column": args.id_column,
        "features_column": args.features_column,
    }


def describe_model(settings: dict[str, Any], log: RunLog) -> str:
    """The model, the threshold that was applied, and how the embeddings were prepared."""
    return f"model: {settings['model']}{describe_p_tau(log)}, embeddings {log.work.preparation}"
