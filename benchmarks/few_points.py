"""How sets of few points are grouped: a few dozen to a thousand points, of small identities.

    python -m benchmarks.few_points run [--dataset NAME ...]
    python -m benchmarks.few_points render           # the table of docs/quality.md

Sets are drawn from the test files. The model in the box is one that was trained without the
domain; the fitted one learned from the train file; the rivals run at their defaults.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.box import DOMAIN_OF, cluster_by_rival, find_box, read_test, stand_alone
from benchmarks.datasets import SHARED, load_labelled
from benchmarks.rows import RESULTS
from benchmarks.set_study import SetStudy
from hilander import HiLander
from hilander.arrays.rows import IntArray
from hilander.metrics.scores import bcubed_f, pairwise_f

ROWS = RESULTS / "few_points.jsonl"
MARKS = ("<!-- few points: begin -->", "<!-- few points: end -->")
POINTS = (30, 100, 300, 1000)
SIZES = ("two each", "five each", "ten each", "mixed")
DRAWS = 5
FITTED, PRETRAINED, RIVALS = "fitted", "in the box", ("fast_hdbscan", "FINCH", "EVoC")
METHODS = (FITTED, PRETRAINED, *RIVALS)
_MIXED_SINGLES, _MIXED_LARGEST = 0.6, 12


def draw_few(labels: IntArray, sizes: str, n_points: int, rng: np.random.Generator) -> IntArray:
    """Rows of about `n_points` points of small identities; fewer where there are no more.

    Parameters
    ----------
    labels : ndarray of shape (n_all,)
    sizes : str
        One of `SIZES`; "mixed" is one point of six in ten identities and two to twelve of others.
    n_points : int
    rng : numpy Generator
    """
    each = {"two each": 2, "five each": 5, "ten each": 10}.get(sizes, 0)
    codes = np.unique(labels, return_inverse=True)[1]
    able = np.flatnonzero(np.bincount(codes) >= max(each, 1))
    rows: list[int] = []
    for identity in rng.permutation(able):
        if len(rows) >= n_points:
            break
        single = rng.random() < _MIXED_SINGLES
        size = each or (1 if single else int(rng.integers(2, _MIXED_LARGEST + 1)))
        rows += rng.permutation(np.flatnonzero(codes == identity))[:size].tolist()
    return np.array(rows[:n_points], dtype=np.int64)


def make_method(method: str, name: str) -> Callable[[Any], Any]:
    """How a method clusters embeddings of a pair."""
    if method == FITTED:
        return HiLander().fit(*load_labelled(name)).predict
    if method == PRETRAINED:
        return HiLander.load(find_box(DOMAIN_OF[name])).predict
    return partial(cluster_by_rival, method, seed=0)


def measure(name: str, methods: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows of some methods on all sets of a pair that are large enough."""
    features, labels = read_test(name)
    for method in methods:
        cluster = make_method(method, name)
        for n_points in POINTS:
            for sizes in SIZES:
                draws = [np.random.default_rng([n_points, d, 31]) for d in range(DRAWS)]
                sets = [draw_few(labels, sizes, n_points, rng) for rng in draws]
                if len(sets[0]) < n_points:
                    continue
                scores = [score(labels[rows], features[rows], cluster) for rows in sets]
                pair, bcubed = np.mean(scores, axis=0)
                yield {
                    "method": method, "n_points": n_points, "sizes": sizes, "draws": DRAWS,
                    "pairwise_f": float(pair), "bcubed_f": float(bcubed),
                }  # fmt: skip


def score(truth: IntArray, features: Any, cluster: Callable[[Any], Any]) -> tuple[float, float]:
    """Pairwise and BCubed F; a method that refuses so few points leaves each alone."""
    try:
        found = stand_alone(np.asarray(cluster(features)))
    except ValueError:
        found = np.arange(len(truth))
    return pairwise_f(truth, found), bcubed_f(truth, found)


def format_rows(rows: list[dict[str, Any]]) -> str:
    """A Markdown table: BCubed F, the mean over sizes and draws, by the number of points."""
    latest = {
        (row["dataset"], row["method"], row["n_points"], row["sizes"]): row["bcubed_f"]
        for row in rows
    }
    lines = ["| data set | method | " + " | ".join(f"{n:,}" for n in POINTS) + " |"]
    lines.append("|---|---|" + "---|" * len(POINTS))
    for name in SHARED:
        for method in METHODS:
            cells = []
            for n_points in POINTS:
                found = [f for key, f in latest.items() if key[:3] == (name, method, n_points)]
                cells.append(f"{np.mean(found):.3f}".lstrip("0") if found else "not run")
            lines.append(f"| {name} | {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


STUDY = SetStudy(__doc__, ROWS, MARKS, METHODS, measure, format_rows)

if __name__ == "__main__":
    sys.exit(STUDY.main())
