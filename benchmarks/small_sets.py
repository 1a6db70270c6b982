"""Scores on small sets: 30 to 1,000 points of small identities.

    python -m benchmarks.small_sets run [--dataset NAME ...]
    python -m benchmarks.small_sets render           # the table of docs/results/small-sets.md

Sets are drawn from the test files. The pretrained model was trained without the domain. The fitted
model was trained on the train file. The rivals run at their defaults.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.datasets import SHARED, load_labelled
from benchmarks.pretrained import cluster_by_rival, find_pretrained, read_test, split_noise
from benchmarks.pretrained_sets import DOMAIN_OF
from benchmarks.rows import RESULTS, ROOT
from benchmarks.set_study import SetStudy
from hilander import HiLander
from hilander.arrays.rows import IntArray
from hilander.metrics.scores import bcubed_f, pairwise_f

ROWS = RESULTS / "small_sets.jsonl"
PAGE = ROOT / "docs" / "results" / "small-sets.md"
MARKS = ("<!-- small sets: begin -->", "<!-- small sets: end -->")
POINTS = (30, 100, 300, 1000)
SIZES = ("two each", "five each", "ten each", "mixed")
DRAWS = 5  # sets of each number of points and kind of sizes
FITTED, PRETRAINED, RIVALS = "fitted", "pretrained", ("fast_hdbscan", "FINCH", "EVoC")
METHODS = (FITTED, PRETRAINED, *RIVALS)
_MIXED_SINGLES, _MIXED_LARGEST = 0.6, 12  # share of single points, points of an identity


def draw_small_set(
    labels: IntArray, sizes: str, n_points: int, rng: np.random.Generator
) -> IntArray:
    """Row numbers of `n_points` points of small identities, or of all there are.

    Parameters
    ----------
    labels : ndarray of shape (n_all,)
    sizes : str
        One of `SIZES`. "mixed": six in ten identities have one point, the others two to twelve.
    n_points : int
    rng : numpy Generator
    """
    each = {"two each": 2, "five each": 5, "ten each": 10}.get(sizes, 0)
    codes = np.unique(labels, return_inverse=True)[1]
    large_enough = np.flatnonzero(np.bincount(codes) >= max(each, 1))
    rows: list[int] = []
    for identity in rng.permutation(large_enough):
        if len(rows) >= n_points:
            break
        single = rng.random() < _MIXED_SINGLES
        size = each or (1 if single else int(rng.integers(2, _MIXED_LARGEST + 1)))
        rows += rng.permutation(np.flatnonzero(codes == identity))[:size].tolist()
    return np.array(rows[:n_points], dtype=np.int64)


def make_method(method: str, name: str) -> Callable[[Any], Any]:
    """The function by which a method clusters embeddings of a pair."""
    if method == FITTED:
        return HiLander().fit(*load_labelled(name)).predict
    if method == PRETRAINED:
        return HiLander.load(find_pretrained(DOMAIN_OF[name])).predict
    return partial(cluster_by_rival, method, seed=0)


def measure(name: str, methods: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Measure methods on all small sets for which a pair has enough points."""
    features, labels = read_test(name)
    for method in methods:
        cluster = make_method(method, name)
        for n_points in POINTS:
            for sizes in SIZES:
                draws = [np.random.default_rng([n_points, d, 31]) for d in range(DRAWS)]
                sets = [draw_small_set(labels, sizes, n_points, rng) for rng in draws]
                if len(sets[0]) < n_points:
                    continue
                scores = [score(labels[rows], features[rows], cluster) for rows in sets]
                pair, bcubed = np.mean(scores, axis=0)
                yield {
                    "method": method, "n_points": n_points, "sizes": sizes, "draws": DRAWS,
                    "pairwise_f": float(pair), "bcubed_f": float(bcubed),
                }  # fmt: skip


def score(truth: IntArray, features: Any, cluster: Callable[[Any], Any]) -> tuple[float, float]:
    """Pairwise and BCubed F. Where a method refuses so few points, each is a cluster."""
    try:
        found = split_noise(np.asarray(cluster(features)))
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


STUDY = SetStudy(__doc__, ROWS, PAGE, MARKS, METHODS, measure, format_rows)

if __name__ == "__main__":
    sys.exit(STUDY.main())
