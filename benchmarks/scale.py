"""Time, memory and quality as the number of points grows: our methods and rivals.

    python -m benchmarks.scale run [--n 20000 100000 200000 1270000] [--methods NAMES ...]
    python -m benchmarks.scale huge          # 5.2 M x 256 from a float16 file
    python -m benchmarks.scale train         # training on 100 k x 128
    python -m benchmarks.scale render        # docs/results/scale.md and its chart, from the rows
    python -m benchmarks.scale calibrate     # measured and estimated costs, for the cost model

Rows are appended to ``benchmarks/results/scale.jsonl``. Every measurement runs in its own process.
Points and models are made once and kept under ``build/scale``. The default method runs with the
pretrained model. The paper's network is trained on 20,000 points of other identities. The cost
model is `hilander.hierarchy.budget`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import RESULTS, ROOT, append_row, describe_circumstances, read_rows
from benchmarks.scale_data import (
    FOLDER,
    HUGE,
    PointSet,
    find_exact_neighbours,
    make_points,
    make_training,
)
from hilander.comparison.runner import Limits, run_limited
from hilander.errors import SettingError
from hilander.io.writing import read_json
from hilander.linkage.storage import PRETRAINED

ROWS = RESULTS / "scale.jsonl"
SIZES = (20_000, 100_000, 200_000, 1_270_000)
OURS = {"hilander (paper)": "paper", "hilander (default)": "evidence"}
RIVALS = ("FINCH", "k-means", "fast_hdbscan", "EVoC")
PAPER_HIDDEN = 512  # width of the paper's network
TRAINED_ON = 20_000  # points
BRIEF_EPOCHS, BRIEF_HIERARCHIES = 3, ((10, 2),)  # enough for labels that mean something


def make_estimator(method: str, *, brief: bool = False) -> Any:
    """An untrained model of one of our methods.

    Parameters
    ----------
    method : {"paper", "evidence"}
    brief : bool
        Train the paper's network for a few epochs only.
    """
    from hilander import HiLander
    from hilander.linkage.paper.training import LearningSettings

    if method == "evidence":
        return HiLander(random_state=0)
    learning = LearningSettings(epochs=20, batch_size=1_024, optimizer="adamw", learning_rate=1e-3)
    if brief:
        learning = replace(learning, epochs=BRIEF_EPOCHS, hierarchies=BRIEF_HIERARCHIES)
    return HiLander(
        method="paper", k=10, features="identity", encoder="attention", hidden=PAPER_HIDDEN,
        learning=learning, random_state=0,
    )  # fmt: skip


def find_model(method: str, dim: int, folder: Path = FOLDER, n: int = TRAINED_ON) -> Path:
    """Folder of a trained model: the pretrained one, or the paper's network of this width.

    The latter is trained if its folder is missing.
    """
    if method == "evidence":
        return PRETRAINED
    place = folder / f"model-{method}-{dim}"
    if not place.is_dir():
        print(f"training {place.name} on {n:,} points", file=sys.stderr, flush=True)
        features, labels = make_training(n, dim)
        make_estimator(method, brief=True).fit(features, labels).save(place)
    return place


def measure(
    method: str, points: PointSet, limits: Limits, *, model: Path | None, **options: Any
) -> dict[str, Any]:
    """Measure one method on one set of points and return the row.

    Parameters
    ----------
    method : str
        A name of `OURS` or `RIVALS`.
    points : PointSet
    limits : Limits
    model : Path, optional
        Folder of the model, for our methods.
    **options
        k and memory, for our methods.
    """
    facts = points.facts
    row = {
        "dataset": points.name,
        "dataset_hash": facts["hash"],
        "method": method,
        "n": facts["n"],
        "d": facts["d"],
        "n_identities": facts["n_identities"],
        "purity": facts["purity"],
        "within": facts["within"],
        "between": facts["between"],
    }
    job = {
        "kind": "ours" if method in OURS else "rival",
        "method": method,
        "features": str(points.features),
        "model": None if model is None else str(model),
        "n_identities": facts["n_identities"],
        **{name: value for name, value in options.items() if value is not None},
    }
    if model is not None and model != PRETRAINED:
        training = read_json(model / "model.json")["training"]
        row["trained_on"] = training["n_points"]
    return run_job(row, job, limits, points)


def run_job(
    row: dict[str, Any], job: dict[str, Any], limits: Limits, points: PointSet | None = None
) -> dict[str, Any]:
    """Run a job in a process under limits; return its row, or the row with the error."""
    row = {**row, **describe_circumstances(), "threads": limits.threads}
    row |= {"memory_budget": job.get("memory"), "load": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory(prefix="hilander-scale-") as temporary:
        folder = Path(temporary)
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.scale_worker", str(folder / "job.json")]
        found_here = {"PYTHONPATH": str(ROOT)}
        ended = run_limited(command, limits, folder / "log.txt", environment=found_here)
        if ended.reason is not None:
            return {
                **row,
                "error": ended.reason,
                "seconds": round(ended.seconds, 1),
                "peak_memory": ended.peak_memory,
            }
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        row |= result
        if points is not None:
            row |= score_result(points, folder)
    return {**row, "error": None}


def score_result(points: PointSet, folder: Path) -> dict[str, Any]:
    """Score labels against identities, and the graph of a sample against exact neighbours."""
    from hilander.metrics.report import score_clustering

    truth = np.load(points.labels)
    scores = score_clustering(truth, np.load(folder / "labels.npy")).to_dict()
    found_scores = {name: scores[name] for name in ("pairwise_f", "bcubed_f", "nmi", "n_clusters")}
    if (folder / "neighbours.npy").is_file():
        found = np.load(folder / "neighbours.npy")
        rows, exact = find_exact_neighbours(np.load(points.features, mmap_mode="r"), found.shape[1])
        hit = (exact[:, :, None] == found[:, None, :]).any(axis=2)
        same = truth[exact] == truth[rows, None]
        found_scores["recall"] = round(float(hit.mean()), 4)
        found_scores["same_recall"] = round(float(hit[same].mean()), 4)
    return found_scores


def run_sizes(args: argparse.Namespace) -> None:
    """Measure every method at every size, smallest first; stop a method that passed a limit."""
    limits = limits_of(args)
    given_up: set[str] = set()
    for n in sorted(args.n):
        points = make_points(n)
        for method in args.methods:
            if method in given_up:
                print(f"{method} passed a limit before; not run at {n:,}", flush=True)
                continue
            model = find_model(OURS[method], points.facts["d"]) if method in OURS else None
            row = measure(method, points, limits, model=model, k=args.k, memory=args.memory)
            append_row(args.rows, row)
            print_row(row)
            if row["error"] and "limit" in row["error"]:
                given_up.add(method)


def run_huge(args: argparse.Namespace) -> None:
    """Measure our methods on the huge set, read from a float16 file."""
    points = make_points(args.n, huge=True)
    for method in args.methods:
        model = find_model(OURS[method], HUGE.dim)
        row = measure(method, points, limits_of(args), model=model, k=args.k, memory=args.memory)
        append_row(args.rows, row)
        print_row(row)


def run_training(args: argparse.Namespace) -> None:
    """Measure training."""
    for method in args.methods:
        row = {"dataset": f"imdb-like training {args.n}", "method": f"training, {method}"}
        row |= {"n": args.n, "d": 128, "dataset_hash": ""}
        job = {"kind": "train", "method": OURS[method], "n": args.n}
        row = run_job(row, job, limits_of(args))
        append_row(args.rows, row)
        print_row(row)


def limits_of(args: argparse.Namespace) -> Limits:
    """The limits that the options give."""
    return Limits(args.time_limit, int(args.memory_limit * 2**30), args.threads)


def print_row(row: dict[str, Any]) -> None:
    """Print a row in one line."""
    if row["error"]:
        print(f"{row['n']:>9,} {row['method']:20s} {row['error']}", flush=True)
        return
    stages = ", ".join(f"{stage} {took:.1f}" for stage, took in row["stages"].items())
    quality = f"Fp {row['pairwise_f']:.3f} Fb {row['bcubed_f']:.3f}"
    print(
        f"{row['n']:>9,} {row['method']:20s} {row['seconds']:.1f} s, {row['cpu_seconds']:.1f} "
        f"CPU-s, {row['peak_memory'] / 1e9:.2f} GB; {stages}; {quality}; "
        f"recall {row.get('recall')} load {row['load']}",
        flush=True,
    )


def calibrate(rows: Sequence[dict[str, Any]]) -> str:
    """Measured and estimated costs, for the rows of our own methods."""
    from hilander.hierarchy.budget import measure_speed

    speed = measure_speed()
    lines = [f"matrix products here: {speed / 1e9:.0f} GFLOP/s"]
    for row in rows:
        if row["method"] not in OURS or row["error"]:
            continue
        load = load_of_row(row)
        seconds = load.seconds(speed)
        pairs = [
            f"{stage} {row['stages'].get(stage, 0):.1f}/{seconds[stage]:.1f}"
            for stage in ("search", "score", "decode", "pool")
        ]
        memory = f"{row['peak_memory'] / 1e9:.2f}/{load.peak() / 1e9:.2f} GB"
        lines.append(f"{row['n']:>9,} {row['method']:20s} {', '.join(pairs)} s; {memory}")
    return "\n".join(lines)


def load_of_row(row: dict[str, Any]) -> Any:
    """The load of the run that a row measured."""
    from hilander.hierarchy.budget import Load
    from hilander.training.methods import find_method

    cost = find_method(OURS[row["method"]]).cost(PAPER_HIDDEN)
    return Load(row["n"], row["d"], row["k"], cost)


def make_parser() -> argparse.ArgumentParser:
    """The options of all commands."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure methods at several sizes")
    run.add_argument("--n", type=int, nargs="+", default=list(SIZES))
    huge = commands.add_parser("huge", help="measure our methods on 5.2 M x 256 float16")
    huge.add_argument("--n", type=int, default=HUGE.n_points)
    train = commands.add_parser("train", help="measure training")
    train.add_argument("--n", type=int, default=100_000)
    for command, names in ((run, [*OURS, *RIVALS]), (huge, list(OURS)), (train, list(OURS))):
        command.add_argument("--methods", nargs="+", choices=names, default=names)
        command.add_argument("--time-limit", type=float, default=3_600, metavar="SECONDS")
        command.add_argument("--memory-limit", type=float, default=20, metavar="GIB")
        command.add_argument("--threads", type=int, default=os.cpu_count() or 1)
        command.add_argument("--k", type=int, help="neighbours (default: the model's)")
        command.add_argument("--memory", help="memory budget of our methods, such as 4GB")
    for name, text in (
        ("render", "draw the page and the chart"),
        ("calibrate", "print measured and estimated costs"),
    ):
        commands.add_parser(name, help=text)
    for command in commands.choices.values():
        command.add_argument("--rows", type=Path, default=ROWS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    args = make_parser().parse_args(arguments)
    if args.command in ("run", "huge", "train"):
        {"run": run_sizes, "huge": run_huge, "train": run_training}[args.command](args)
    elif args.command == "calibrate":
        print(calibrate(read_rows(args.rows)))
    elif args.command == "render":
        from benchmarks.scale_page import write_page

        write_page(read_rows(args.rows))
    else:
        raise SettingError(f"command {args.command!r} is not known")
    return 0


if __name__ == "__main__":
    sys.exit(main())
