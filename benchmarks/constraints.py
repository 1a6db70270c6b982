"""Scores with what is known of the points beforehand.

    python -m benchmarks.constraints run [--dataset NAME ...]
    python -m benchmarks.constraints render          # the table of docs/results/constraints.md

The pretrained model clusters the test files with true constraints: random pairs, half of them of
one identity, and photos with five faces of five people. Each set is also clustered without
constraints, and the same constraints are applied afterwards to that partition.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from benchmarks.datasets import begin_row
from benchmarks.pretrained import read_test
from benchmarks.rows import RESULTS, ROOT, append_row, put_block, read_rows
from hilander import HiLander
from hilander.arrays.rows import FloatArray, IntArray
from hilander.hierarchy.constraints.building import Knowledge, build_constraints
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.knn.search import build_knn_graph
from hilander.metrics.scores import bcubed_f, pairwise_f
from hilander.training.inference import plan_run
from hilander.training.methods import find_method
from hilander.training.set_preparation import resolve_preparation

ROWS = RESULTS / "constraints.jsonl"
PAGE = ROOT / "docs" / "results" / "constraints.md"
MARKS = ("<!-- constraints: begin -->", "<!-- constraints: end -->")
DATASETS = ("faces", "omniglot", "flowers")
SHARES = (0.001, 0.01, 0.05)  # pairs, as a share of the points
PHOTOS = "photos"
FACES = 5  # in a photo
SEEDS = (0, 1, 2)
METHODS = ("none", "afterwards, points", "afterwards, clusters", "constraints")


@dataclass(frozen=True, eq=False)
class Drawn:
    """True statements about a set."""

    must: IntArray
    cannot: IntArray
    photo: IntArray | None = None

    def build(self, n_points: int) -> Constraints:
        """The statements as constraints."""
        photos = [] if self.photo is None else [self.photo]
        return build_constraints(n_points, Knowledge(self.must, self.cannot, apart=photos))


def draw_pairs(labels: IntArray, n_pairs: int, rng: np.random.Generator) -> Drawn:
    """Random pairs: half of one identity, half of two.

    Parameters
    ----------
    labels : ndarray of shape (n_points,), ints from 0
    n_pairs : int
    rng : numpy Generator
    """
    several = np.flatnonzero(np.bincount(labels)[labels] > 1)
    must = []
    for one in rng.choice(several, (n_pairs + 1) // 2):
        same = np.flatnonzero(labels == labels[one])
        must.append((one, rng.choice(same[same != one])))
    cannot: list[IntArray] = []
    while len(cannot) < n_pairs // 2:
        pair = rng.integers(len(labels), size=2)
        if labels[pair[0]] != labels[pair[1]]:
            cannot.append(pair)
    return Drawn(np.array(must).reshape(-1, 2), np.array(cannot, dtype=np.int64).reshape(-1, 2))


def draw_photos(labels: IntArray, rng: np.random.Generator) -> Drawn:
    """Photos of five points of five identities; points that are left over are in none.

    Parameters
    ----------
    labels : ndarray of shape (n_points,), ints from 0
    rng : numpy Generator
    """
    photo = np.full(len(labels), -1)
    shown: list[int] = []
    for row in rng.permutation(len(labels)):
        if labels[row] not in labels[shown]:
            shown.append(int(row))
        if len(shown) == FACES:
            photo[shown] = photo.max() + 1
            shown = []
    none = np.empty((0, 2), dtype=np.int64)
    return Drawn(none, none, photo)


def apply_afterwards(
    found: IntArray, points: FloatArray, drawn: Drawn, *, join_clusters: bool
) -> IntArray:
    """Apply statements to a partition that was made without them.

    Parameters
    ----------
    found : ndarray of shape (n_points,), ints from 0
    points : ndarray of shape (n_points, dim)
        Unit rows.
    drawn : Drawn
    join_clusters : bool
        Join the clusters of two points of one identity; else only the second point moves. Of points
        that must be apart, the nearest to the mean of their cluster stays and each other one
        becomes a cluster.

    Returns
    -------
    labels : ndarray of shape (n_points,)
    """
    labels = found.copy()
    if join_clusters and len(drawn.must):
        ends = labels[drawn.must[:, 0]], labels[drawn.must[:, 1]]
        n_labels = int(labels.max()) + 1
        joins = coo_matrix((np.ones(len(drawn.must)), ends), (n_labels, n_labels))
        labels = connected_components(joins, directed=False)[1][labels].astype(np.int64)
    else:
        for stays, moves in drawn.must:
            labels[moves] = labels[stays]
    mean: npt.NDArray[np.float64] = np.zeros((int(labels.max()) + 1, points.shape[1]))
    np.add.at(mean, labels, points)
    mean /= np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
    fit = np.einsum("ij,ij->i", mean[labels], points)
    groups = [*drawn.cannot]
    if drawn.photo is not None:
        groups += [np.flatnonzero(drawn.photo == one) for one in range(drawn.photo.max() + 1)]
    for group in groups:
        ordered = group[np.argsort(-fit[group], kind="stable")]
        taken: set[int] = set()
        for row in ordered:
            if int(labels[row]) in taken:
                labels[row] = labels.max() + 1
            taken.add(int(labels[row]))
    return labels


def measure(name: str) -> Iterator[dict[str, Any]]:
    """Measure all kinds of constraints on the test file of a pair."""
    features, truth = read_test(name)
    truth = np.unique(truth, return_inverse=True)[1]
    model = HiLander.pretrained()
    settings = model.run_settings()
    plan = plan_run(model.model_, features, settings)
    score = find_method(settings.method).make_scorer(model.network_, plan.rules, "auto")
    preparation = resolve_preparation(
        model.model_, features, plan.rules, score, whiten="auto", own_graph=False
    )
    points = plan.memory.prepare(preparation, features, None)
    graph = build_knn_graph(points, plan.rules.k)

    def cluster(constraints: Constraints | None) -> tuple[Hierarchy, float]:
        start = time.perf_counter()
        steps = walk_levels(points, score, plan.rules, graph=graph, constraints=constraints)
        return Hierarchy.of_steps(steps), time.perf_counter() - start

    free, seconds = cluster(None)
    for given in (*SHARES, PHOTOS):
        for seed in SEEDS:
            rng = np.random.default_rng([seed, 41])
            if isinstance(given, float):
                drawn = draw_pairs(truth, max(2, round(given * len(truth))), rng)
            else:
                drawn = draw_photos(truth, rng)
            constraints = drawn.build(len(truth))
            bound, bound_seconds = cluster(constraints)
            broken = [constraints.count_broken(bound.labels(n)) for n in range(bound.n_levels)]
            whole, alone = (
                apply_afterwards(free.labels(), points, drawn, join_clusters=joins)
                for joins in (True, False)
            )
            partitions = (free.labels(), alone, whole, bound.labels())
            for method, labels in zip(METHODS, partitions, strict=True):
                ours = method == METHODS[-1]
                yield {
                    "given": given, "seed": seed, "method": method, **constraints.describe(),
                    "pairwise_f": pairwise_f(truth, labels), "bcubed_f": bcubed_f(truth, labels),
                    "broken": sum(sum(one.values()) for one in broken) if ours
                    else sum(constraints.count_broken(labels).values()),
                    "seconds": round(bound_seconds if ours else seconds, 2),
                }  # fmt: skip


def format_rows(rows: list[dict[str, Any]]) -> str:
    """A Markdown table: pairwise and BCubed F, means over the draws."""
    latest = {(row["dataset"], str(row["given"]), row["method"], row["seed"]): row for row in rows}
    lines = [
        "| data set | given | " + " | ".join(METHODS) + " | broken |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in DATASETS:
        for given in (*SHARES, PHOTOS):
            cells, broken = [], 0
            for method in METHODS:
                some = [one for key, one in latest.items() if key[:3] == (name, str(given), method)]
                cells.append(_cell(some))
                if method == METHODS[-1]:
                    broken = sum(one["broken"] for one in some)
            kind = f"pairs, {given:.1%} of the points" if isinstance(given, float) else given
            lines.append(f"| {name} | {kind} | " + " | ".join(cells) + f" | {broken} |")
    return "\n".join(lines)


def _cell(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "not run"
    means = (np.mean([row[key] for row in rows]) for key in ("pairwise_f", "bcubed_f"))
    return " / ".join(f"{one:.3f}".lstrip("0") for one in means)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "render"])
    parser.add_argument("--dataset", nargs="+", choices=DATASETS, default=DATASETS)
    args = parser.parse_args(arguments)
    if args.command == "render":
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(put_block(text, MARKS, format_rows(read_rows(ROWS))), encoding="utf-8")
        return 0
    for name in args.dataset:
        start = begin_row(name, 0)
        for row in measure(name):
            append_row(ROWS, start | row)
            print(name, row["given"], row["seed"], row["method"], row["pairwise_f"], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
