"""Costs of the stages of a sharded run, and the model that `hilander cluster --plan` predicts with.

    python -m benchmarks.sharded run [--n 20000 40000 80000 160000] [--dim 128 256]
    python -m benchmarks.sharded fit         # the constants of hilander/sharded/cost.py
    python -m benchmarks.sharded render      # the tables of docs/how-it-works/sharded-runs.md

Rows are appended to ``benchmarks/results/sharded.jsonl``. They hold seconds of a processor, which
other programs of the machine hardly change. Points are those of `hilander.synthetic.face_like`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import RESULTS, ROOT, append_row, describe_circumstances, put_block, read_rows
from hilander import HiLander
from hilander.engines.thread_engine import ThreadEngine
from hilander.hierarchy.budget import show_time
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.work import Work
from hilander.io.memory import format_memory
from hilander.io.shards import list_shards
from hilander.linkage.storage import PRETRAINED
from hilander.sharded.cells import EXACT_UP_TO
from hilander.sharded.cost import STAGES, RunCost, Shape, describe_terms, predict
from hilander.sharded.points import ShardedPoints
from hilander.sharded.run import ShardedSettings, walk_sharded
from hilander.sharded.stage_log import StageLog
from hilander.synthetic.face_like import PRESETS, make_face_like

ROWS = RESULTS / "sharded.jsonl"
PAGE = ROOT / "docs" / "how-it-works" / "sharded-runs.md"
PAPER_POINTS, PAPER_MACHINES, CORES = (100_000_000, 1_000_000_000), (16, 128), 16
SIZES, DIMS = (20_000, 40_000, 80_000, 160_000), (128, 256)


def measure(n_points: int, dim: int, worker_memory: int) -> dict[str, Any]:
    """Cluster generated points on one thread and return what each stage took."""
    settings = replace(PRESETS["imdb"], dim=dim)
    points, _ = make_face_like(settings, scale=n_points / settings.n_points, seed=1)
    engine = ThreadEngine(1, worker_memory)
    log, work = StageLog(engine), Work()
    model = HiLander.load(PRETRAINED)
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(np.array_split(points, 8)):
            np.save(Path(folder) / f"{number}.npy", part)
        shards = ShardedPoints.of_shards(log, list_shards(folder))
        began = time.thread_time()
        how = ShardedSettings(worker_memory)
        found = Hierarchy.of_steps(
            walk_sharded(model.model_, shards, model.run_settings(), how, work)
        )
        driver = time.thread_time() - began
    engine.close()
    costs = {name: log.costs[name].cpu_seconds for name in log.costs}
    moved = {name: log.costs[name].bytes_moved for name in log.costs}
    return {
        "n": len(points),
        "dim": dim,
        "worker_memory": worker_memory,
        "k": model.rules_.k,
        "cpu_seconds": costs | {"driver": driver},
        "bytes_moved": moved,
        "n_clusters": [level.n_clusters for level in found.levels],
    }


def fit(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Coefficients of each stage by least squares of relative errors, none below 0."""
    from scipy.optimize import nnls

    rows, found = fitted(rows), {}
    for stage in STAGES:
        terms = np.array([describe_terms(stage, shape_of(row)) for row in rows])
        cost = np.array([row["cpu_seconds"][stage] for row in rows])
        found[stage] = nnls(terms / cost[:, None], np.ones(len(rows)))[0].tolist()
    return found


def fitted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of large sets; smaller ones take seconds, mostly to load the program."""
    return [row for row in rows if row["n"] > EXACT_UP_TO]


def shape_of(row: dict[str, Any]) -> Shape:
    """Size of the run of a row."""
    return Shape(row["n"], row["dim"], row["k"])


def render_error(rows: list[dict[str, Any]]) -> str:
    """Measured seconds of a processor beside the predicted ones."""
    lines = ["| points | features | measured s | predicted s | ratio |", "|---|---|---|---|---|"]
    for row in fitted(rows):
        measured = sum(row["cpu_seconds"][stage] for stage in STAGES)
        expected = sum(predict(shape_of(row)).values())
        lines.append(
            f"| {row['n']:,} | {row['dim']} | {measured:.1f} | {expected:.1f} | "
            f"{expected / measured:.2f} |"
        )
    return "\n".join(lines)


def render_paper(rows: list[dict[str, Any]]) -> str:
    """What the model predicts for sets that were never run."""
    largest = max(rows, key=lambda row: row["n"] * row["dim"])
    moved = {
        stage: largest["bytes_moved"].get(stage, 0) / (4 * largest["n"] * largest["dim"])
        for stage in STAGES
    }
    lines = [
        "| points x 256 | machines | " + " | ".join(STAGES) + " | driver memory | a worker |",
        "|---|---|" + "---|" * (len(STAGES) + 2),
    ]
    for n_points in PAPER_POINTS:
        for machines in PAPER_MACHINES:
            shape = Shape(n_points, 256, 15)
            cost = RunCost(shape, machines * CORES, 4_000_000_000)
            cells = [show_time(cost.seconds[stage]) for stage in STAGES]
            lines.append(
                f"| {n_points:,} | {machines} | {' | '.join(cells)} | "
                f"{format_memory(cost.driver_bytes)} | {format_memory(cost.worker_bytes)} |"
            )
    size = 4 * PAPER_POINTS[0] * 256 / 1e12
    parts = ", ".join(f"{stage} {one * size:.1f} TB" for stage, one in moved.items() if one)
    lines += ["", f"Read and returned by the tasks at {PAPER_POINTS[0]:,} points: {parts}."]
    return "\n".join(lines)


def render() -> None:
    """Put both tables into the page."""
    rows, text = read_rows(ROWS), PAGE.read_text("utf-8")
    for name, table in (("error", render_error(rows)), ("paper", render_paper(rows))):
        text = put_block(text, (f"<!-- {name}: begin -->", f"<!-- {name}: end -->"), table)
    PAGE.write_text(text, "utf-8")


def main() -> None:
    """Run or fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "fit", "render"))
    parser.add_argument("--n", type=int, nargs="*", default=SIZES)
    parser.add_argument("--dim", type=int, nargs="*", default=DIMS)
    parser.add_argument("--worker-memory", type=int, default=1_000_000_000)
    args = parser.parse_args()
    if args.what == "run":
        for dim in args.dim:
            for n_points in args.n:
                row = measure(n_points, dim, args.worker_memory)
                append_row(ROWS, row | describe_circumstances())
                print(row, flush=True)
        return
    if args.what == "render":
        render()
        return
    rows = read_rows(ROWS)
    for stage, constants in fit(rows).items():
        print(f'    "{stage}": ({", ".join(f"{one:.3g}" for one in constants)}),')
    for row in rows:
        expected = predict(shape_of(row))
        ratio = {name: expected[name] / row["cpu_seconds"][name] for name in STAGES}
        total = sum(expected.values()) / sum(row["cpu_seconds"][name] for name in STAGES)
        print(row["n"], row["dim"], f"all {total:.2f}", {n: round(v, 2) for n, v in ratio.items()})


if __name__ == "__main__":
    main()
