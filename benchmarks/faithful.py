"""The paper's own model and settings on real embeddings.

``python -m benchmarks.faithful run`` trains on the train file of each pair, scores the test file at
every p_tau, and appends a row for each to ``benchmarks/results/faithful.jsonl``. ``python -m
benchmarks.faithful render`` draws ``docs/results/faithful.md`` from the rows.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import (
    RESULTS,
    ROOT,
    append_row,
    describe_circumstances,
    find_data,
    hash_file,
    read_rows,
)

ROWS = RESULTS / "faithful.jsonl"
PAGE = ROOT / "docs" / "results" / "faithful.md"
PAIRS = {
    "omniglot": ("omniglot-train.npz", "omniglot-test.npz"),
    "faces": ("faces-celeba-train.npz", "faces-lfw-test.npz"),
}
ENCODERS = ("attention", "convolution")
P_TAUS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
SCORES = ("pairwise_f", "bcubed_f", "nmi")
K = 10


@dataclass(frozen=True)
class Trial:
    """One training run of the paper's model.

    Attributes
    ----------
    dataset : str
        A key of `PAIRS`.
    encoder, features : str
    epochs : int
    optimizer : str
    learning_rate : float
    hidden : int
    batch_size : int
    seed : int
    """

    dataset: str
    encoder: str
    features: str = "concat"
    epochs: int = 250
    optimizer: str = "sgd"
    learning_rate: float = 0.1
    hidden: int = 512
    batch_size: int = 4096
    seed: int = 0

    @property
    def name(self) -> str:
        """Name of its checkpoint."""
        return (
            f"{self.dataset}-{self.encoder}-{self.features}-{self.hidden}-{self.epochs}"
            f"-{self.optimizer}-{self.learning_rate:g}-{self.batch_size}-{self.seed}"
        )


def measure(
    trial: Trial,
    data: Path,
    p_taus: Sequence[float] = P_TAUS,
    checkpoints: Path | None = None,
    verbose: bool = False,
) -> Iterator[dict[str, Any]]:
    """Train once and score the test file at every p_tau.

    Parameters
    ----------
    trial : Trial
    data : Path
        Folder of the files of `PAIRS`.
    p_taus : sequence of float
    checkpoints : Path, optional
        Folder from which an interrupted run continues.
    verbose : bool

    Yields
    ------
    row : dict
        For each p_tau; one row with an ``error`` if training did not converge.
    """
    from hilander.knn.search import build_knn_graph
    from hilander.metrics.report import score_clustering

    train_path, test_path = (data / name for name in PAIRS[trial.dataset])
    row = {
        **trial.__dict__,
        "k": K,
        "data_sha256": f"{hash_file(train_path)} {hash_file(test_path)}",
        **describe_circumstances(),
    }
    start = time.perf_counter()
    model = train(trial, train_path, checkpoints, verbose)
    row["train_seconds"] = round(time.perf_counter() - start, 1)
    row["final_loss"] = model.history_[-1]["loss"]
    if not math.isfinite(row["final_loss"]):
        yield {**row, "error": "the loss is not finite; the learning rate is too high"}
        return
    with np.load(test_path) as test:
        features, labels = test["features"].astype(np.float32), test["labels"]
    graph = build_knn_graph(model.preparation_.apply(features), K)
    for p_tau in p_taus:
        start = time.perf_counter()
        found = model.cluster(features, p_tau=p_tau, graph=graph)
        scores = score_clustering(labels, found.labels(-1)).to_dict()
        seconds = round(time.perf_counter() - start, 2)
        yield {**row, "p_tau": p_tau, "seconds": seconds, "n_levels": found.n_levels, **scores}


def train(trial: Trial, path: Path, checkpoints: Path | None, verbose: bool) -> Any:
    """Train the paper's model. p_tau is not tuned, because all values are scored."""
    from hilander import HiLander
    from hilander.linkage.paper.training import LearningSettings

    with np.load(path) as data:
        features, labels = data["features"].astype(np.float32), data["labels"]
    learning = LearningSettings(
        epochs=trial.epochs,
        batch_size=trial.batch_size,
        optimizer=trial.optimizer,
        learning_rate=trial.learning_rate,
    )
    model = HiLander(
        method="paper",
        k=K,
        p_tau=0.5,
        features=trial.features,
        encoder=trial.encoder,
        hidden=trial.hidden,
        learning=learning,
        val_fraction=0.0,
        random_state=trial.seed,
        verbose=verbose,
    )
    folder = None if checkpoints is None else checkpoints / trial.name
    return model.fit(features, labels, checkpoint=folder)


def render(rows: Sequence[dict[str, Any]]) -> str:
    """The page of tables. Of several rows of one setting and seed, the last counts."""
    parts = [
        "# The paper's model",
        "",
        "Measured: the paper's own model (one layer of width 512, linkage from two raw features,",
        "k = 10, the losses of eqs. 8 to 11), trained on the train file of a pair and scored at",
        "each p_tau on its test file, which has other identities. Cells are Fp / Fb / NMI; with",
        "several seeds, their mean. Command: `python -m benchmarks.faithful run`. Rows:",
        "`benchmarks/results/faithful.jsonl`; `python -m benchmarks.faithful render` draws this",
        "page from them.",
        "",
    ]
    if not rows:
        return "\n".join([*parts, "No run has been recorded yet.", ""])
    for dataset in [name for name in PAIRS if any(row["dataset"] == name for row in rows)]:
        of_pair = [row for row in rows if row["dataset"] == dataset]
        train_name, test_name = (name.removesuffix(".npz") for name in PAIRS[dataset])
        parts += [f"## {train_name} to {test_name}", "", *_table(of_pair), ""]
    parts += [_footnote(rows), ""]
    return "\n".join(parts)


def _table(rows: Sequence[dict[str, Any]]) -> list[str]:
    last = {(_setting(row), row["seed"], row.get("p_tau")): row for row in rows}
    settings = list(dict.fromkeys(key[0] for key in last))
    p_taus = sorted({key[2] for key in last if key[2] is not None})
    lines = [
        "| p_tau | " + " | ".join(settings) + " |",
        "|---|" + "---|" * len(settings),
    ]
    for p_tau in p_taus:
        cells = []
        for setting in settings:
            found = [row for key, row in last.items() if key[0] == setting and key[2] == p_tau]
            cells.append(_cell(found))
        lines.append(f"| {p_tau:g} | " + " | ".join(cells) + " |")
    for (setting, seed, _), row in last.items():
        if "error" in row:
            lines += ["", f"{setting}, seed {seed}: {row['error']}."]
    return lines


def _setting(row: dict[str, Any]) -> str:
    return (
        f"{row['encoder']}, {row['features']}; {row['epochs']} epochs of {row['optimizer']} "
        f"at {row['learning_rate']:g}, batches of {row['batch_size']:,}"
    )


def _cell(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "–"
    means = (statistics.mean(row[name] for row in rows) for name in SCORES)
    return " / ".join(f"{value:.3f}".removeprefix("0") for value in means)


def _footnote(rows: Sequence[dict[str, Any]]) -> str:
    commits = ", ".join(sorted({row["commit"] for row in rows}))
    machines = "; ".join(sorted({row["machine"] for row in rows}))
    hours = sum({_run_key(row): row["train_seconds"] for row in rows}.values()) / 3600
    return f"Commit {commits}; {machines}; {hours:.1f} hours of training in all."


def _run_key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["dataset"], _setting(row), row["seed"], row["commit"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or render."""
    args = make_parser().parse_args(arguments)
    if args.command == "render":
        args.page.write_text(render(read_rows(args.rows)), encoding="utf-8")
        print(f"{args.page} drawn from {args.rows}")
        return 0
    for dataset in args.dataset:
        for encoder in args.encoder:
            trial = Trial(
                dataset, encoder, args.features, args.epochs, args.optimizer,
                args.learning_rate, args.hidden, args.batch_size, args.seed,
            )  # fmt: skip
            for row in measure(trial, args.data, P_TAUS, args.checkpoints, verbose=True):
                append_row(args.rows, row)
                shown = {name: row.get(name) for name in ("p_tau", *SCORES, "error")}
                print(trial.name, {k: v for k, v in shown.items() if v is not None}, flush=True)
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of both commands."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faithful", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="train, score, append rows")
    run.add_argument("--dataset", nargs="+", choices=list(PAIRS), default=list(PAIRS))
    run.add_argument("--encoder", nargs="+", choices=ENCODERS, default=list(ENCODERS))
    run.add_argument("--features", choices=("identity", "average", "concat"), default="concat")
    run.add_argument("--epochs", type=int, default=250)
    run.add_argument("--optimizer", choices=("sgd", "adamw"), default="sgd")
    run.add_argument("--learning-rate", type=float, default=0.1)
    run.add_argument("--hidden", type=int, default=512)
    run.add_argument("--batch-size", type=int, default=4096)
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--data", type=Path, default=find_data())
    run.add_argument("--checkpoints", type=Path, default=ROOT / "build" / "faithful")
    draw = commands.add_parser("render", help="draw the page from the rows")
    draw.add_argument("--page", type=Path, default=PAGE)
    for command in (run, draw):
        command.add_argument("--rows", type=Path, default=ROWS)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
