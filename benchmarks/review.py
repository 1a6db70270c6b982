"""What an hour of review is worth: simulated answers, one row for each set, order and error rate.

    python -m benchmarks.review run            # append rows to benchmarks/results/review.jsonl
    python -m benchmarks.review render         # fill the table of docs/results/review.md

A reviewer answers whether the most frequent identity of a piece is that of its group. With 5 %
wrong answers, each decision is reversed with that probability. ``queue`` is the order of the
explorer, ``random`` a random open question of the same kinds, ``before`` the order of version 0.1:
doubtful merges first, then merge candidates, one decision each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import WIDE
from benchmarks.rows import (
    RESULTS,
    ROOT,
    append_row,
    describe_circumstances,
    find_data,
    put_block,
    read_rows,
)
from hilander.cli.main import main as run_command
from hilander.explorer.review_log.state import Event, ReviewState
from hilander.explorer.session.explorer import Explorer
from hilander.explorer.session.opening import open_explorer
from hilander.hierarchy.doubts import MERGE, find_doubtful_merges, find_merge_candidates
from hilander.metrics.report import score_clustering

ROWS = RESULTS / "review.jsonl"
PAGE = ROOT / "docs" / "results" / "review.md"
MARKS = "<!-- rows: begin -->", "<!-- rows: end -->"
SETS = ("demo", "omniglot", "faces", "clinc150")
STEPS = (0, 50, 100, 200)
WRONG = (0.0, 0.05)
ORDERS = ("before", "queue", "random")


class Reviewer:
    """Answers by the true identities, some of them wrongly.

    Parameters
    ----------
    identities : ndarray of shape (n_points,)
    wrong : float
        Share of the decisions that are reversed.
    seed : int
    """

    def __init__(self, identities: np.ndarray, wrong: float, seed: int) -> None:
        self.identities, self.wrong = identities, wrong
        self.rng = np.random.default_rng(seed)
        self.n_decisions = 0

    def belongs(self, piece: np.ndarray, rest: np.ndarray) -> bool:
        """Return whether two sides are said to be one identity."""
        self.n_decisions += 1
        same = self._most_frequent(piece) == self._most_frequent(rest)
        return same != (self.rng.random() < self.wrong)

    def _most_frequent(self, rows: np.ndarray) -> int:
        return int(np.bincount(self.identities[rows]).argmax())


def review_by_queue(
    explorer: Explorer, reviewer: Reviewer, choose: Callable[[int], int], note: Callable[..., None]
) -> None:
    """Answer questions of the explorer's queue; `choose` picks one of those that are open."""
    for number in range(max(STEPS)):
        note(number, explorer.review.state.labels)
        questions = explorer.questions
        if not questions:
            break
        question, pieces = explorer.find_question(questions[choose(len(questions))].key)
        rest = explorer.reviewed().rows_of(question.group)
        if question.is_leaving:
            rest = np.setdiff1d(rest, np.concatenate(pieces))
        said = [reviewer.belongs(rows, rest) for rows in pieces]
        verdict = "same" if sum(said) * 2 >= len(said) else "different"
        exceptions = [
            piece for piece, yes in zip(question.pieces, said, strict=True)
            if yes != (verdict == "same")
        ]  # fmt: skip
        explorer.act("answer", {"key": question.key, "verdict": verdict, "except": exceptions})
    note(max(STEPS), explorer.review.state.labels)


def review_as_before(explorer: Explorer, reviewer: Reviewer, note: Callable[..., None]) -> None:
    """Answer the doubtful merges and then the merge candidates, as version 0.1 asked them."""
    from hilander.explorer.partition.parts import find_subtree_rows

    run = explorer.run
    state = ReviewState(explorer.base.labels, explorer.base.n_groups)
    asked = find_doubtful_merges(run.hierarchy)
    asked += find_merge_candidates(run.hierarchy, run.graph.neighbours, run.graph.linkage)
    number = 0
    for doubt in asked:
        a, b = int(state.labels[doubt.a]), int(state.labels[doubt.b])
        if number == max(STEPS) or (a == b) != (doubt.kind == MERGE):
            continue
        note(number, state.labels)
        if doubt.kind == MERGE:
            piece = find_subtree_rows(run, doubt.level, doubt.nodes[1])
            piece = piece[state.labels[piece] == b]
            rest = np.setdiff1d(state.rows_of(a), piece)
            if not len(rest):
                continue
            if not reviewer.belongs(piece, rest):
                state.apply(Event(number, "split", {"group": b, "parts": [piece.tolist()]}))
        elif reviewer.belongs(state.rows_of(b), state.rows_of(a)):
            state.apply(Event(number, "merge", {"groups": [a, b]}))
        number += 1
    note(max(STEPS), state.labels)


def measure(name: str, folder: Path, order: str, wrong: float, seed: int = 0) -> dict[str, Any]:
    """Review one run and score it after each number of questions."""
    truth = read_truth(name, folder)
    scores: dict[int, Any] = {}
    with tempfile.TemporaryDirectory() as state:
        explorer = open_explorer(folder, state=Path(state))
        reviewer = Reviewer(np.unique(truth, return_inverse=True)[1], wrong, seed)
        decisions: dict[int, int] = {}

        def note(number: int, labels: np.ndarray) -> None:
            if number in STEPS and number not in scores:
                scores[number] = score_clustering(truth, labels)
                decisions[number] = reviewer.n_decisions

        if order == "before":
            review_as_before(explorer, reviewer, note)
        else:
            rng = np.random.default_rng(seed)
            pick = {"queue": lambda _: 0, "random": lambda n: int(rng.integers(n))}[order]
            review_by_queue(explorer, reviewer, pick, note)
        explorer.store.close()
    return {
        f"{key}_{number}": value
        for number, one in scores.items()
        for key, value in (
            ("fb", round(one.bcubed.f, 5)), ("fp", round(one.pairwise.f, 5)),
            ("decisions", decisions[number]),
        )
    }  # fmt: skip


def make_run(name: str, folder: Path) -> Path:
    """Train the default model on a set's training part and cluster its test part, unless done."""
    if name == "demo":
        if not (folder / "demo").exists():
            run_command(["demo", "-o", str(folder / "demo"), "--quiet"])
        return folder / "demo" / "run"
    if not (folder / name).exists():
        train, test = (str(find_data() / file) for file in WIDE[name])
        model = str(folder / f"model-{name}")
        run_command(["train", train, "-o", model, "--quiet"])
        run_command(["cluster", test, "-m", model, "-o", str(folder / name), "--quiet"])
    return folder / name


def read_truth(name: str, folder: Path) -> np.ndarray:
    """True identities of the points of a run."""
    file = folder.parent / "test.npz" if name == "demo" else find_data() / WIDE[name][1]
    with np.load(file) as arrays:
        return np.asarray(arrays["labels"])


def run_all(folder: Path, names: list[str]) -> None:
    """Append one row for each set, order and error rate."""
    for order, wrong in product(ORDERS, WRONG):
        for name in names:
            found = measure(name, make_run(name, folder), order, wrong)
            row = {"dataset": name, "order": order, "wrong": wrong, "seed": 0}
            append_row(ROWS, row | found | describe_circumstances())
            gains = [round(found[f"fb_{step}"] - found["fb_0"], 4) for step in STEPS[1:]]
            print(name, order, wrong, found["fb_0"], gains, found["decisions_100"], flush=True)


def render() -> str:
    """Table of the last row of each set, order and error rate."""
    rows = {(row["dataset"], row["wrong"], row["order"]): row for row in read_rows(ROWS)}
    lines = [
        "| set | wrong | order | BCubed F before | after 50 | after 100 | after 200 | "
        "decisions in 100 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, wrong, order), row in sorted(rows.items()):
        gains = " | ".join(f"{row[f'fb_{n}'] - row['fb_0']:+.4f}" for n in STEPS[1:])
        lines.append(
            f"| {name} | {wrong:.0%} | {order} | {row['fb_0']:.4f} | {gains} | "
            f"{row['decisions_100']} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=("run", "render"))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--folder", type=Path, default=Path("build/review"))
    options = parser.parse_args()
    if options.command == "run":
        run_all(options.folder, options.sets)
    else:
        PAGE.write_text(put_block(PAGE.read_text(encoding="utf-8"), MARKS, render()), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
