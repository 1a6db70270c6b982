"""Scores on albums: sets in which one identity has most of the points.

    python -m benchmarks.albums run [--dataset NAME ...]
    python -m benchmarks.albums render           # the table of docs/results/dominant-identity.md

Albums are drawn from the test files: one of the largest identities, and a few points of others.
The pretrained model was trained without the domain. The fitted model was trained on the train
file. The rivals run at their defaults.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.datasets import SHARED
from benchmarks.pretrained import read_test
from benchmarks.rows import RESULTS, ROOT
from benchmarks.set_study import SetStudy
from benchmarks.small_sets import METHODS, make_method, score
from hilander.arrays.rows import IntArray

ROWS = RESULTS / "albums.jsonl"
PAGE = ROOT / "docs" / "results" / "dominant-identity.md"
MARKS = ("<!-- albums: begin -->", "<!-- albums: end -->")
LARGEST = 6  # largest identities of a file; each is the dominant one of some albums
SHARES = (0.5, 0.8, 0.9)  # share of the points that the dominant identity has
MOST_OF_OTHERS = (1, 5)  # points of each other identity, at most


def draw_album(
    labels: IntArray, large: int, share: float, most: int, rng: np.random.Generator
) -> IntArray:
    """Row numbers of all points of one identity and of a few points of each of others.

    Parameters
    ----------
    labels : ndarray of shape (n_all,)
    large : int
        The dominant identity.
    share : float
        Its share of the points. It is larger where there are not enough other points.
    most : int
        Points of each other identity, at most; from 1 to `most` are drawn.
    rng : numpy Generator
    """
    rows = np.flatnonzero(labels == large).tolist()
    n_points = round(len(rows) / share)
    for identity in rng.permutation(np.setdiff1d(labels, [large])):
        if len(rows) >= n_points:
            break
        size = int(rng.integers(1, most + 1))
        rows += rng.permutation(np.flatnonzero(labels == identity))[:size].tolist()
    return np.array(rows[:n_points], dtype=np.int64)


def measure(name: str, methods: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Measure methods; each row is the mean over the albums of one share."""
    features, labels = read_test(name)
    identities, size = np.unique(labels, return_counts=True)
    large = identities[np.argsort(-size, kind="stable")[:LARGEST]]
    for method in methods:
        cluster = make_method(method, name)
        for share in SHARES:
            albums = [
                draw_album(labels, one, share, most, np.random.default_rng([number, most, 37]))
                for number, one in enumerate(large)
                for most in MOST_OF_OTHERS
            ]
            scores = [score(labels[rows], features[rows], cluster) for rows in albums]
            pair, bcubed = np.mean(scores, axis=0)
            yield {
                "method": method, "share": share, "albums": len(albums),
                "n_points": int(np.median([len(rows) for rows in albums])),
                "pairwise_f": float(pair), "bcubed_f": float(bcubed),
            }  # fmt: skip


def format_rows(rows: list[dict[str, Any]]) -> str:
    """A Markdown table: pairwise and BCubed F by the share of the dominant identity."""
    latest = {(row["dataset"], row["method"], row["share"]): row for row in rows}
    lines = ["| data set | method | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |"]
    lines.append("|---|---|" + "---|" * len(SHARES))
    for name in SHARED:
        for method in METHODS:
            found = [latest.get((name, method, share)) for share in SHARES]
            lines.append(f"| {name} | {method} | " + " | ".join(map(_cell, found)) + " |")
    return "\n".join(lines)


def _cell(row: dict[str, Any] | None) -> str:
    """Both scores of a row."""
    if row is None:
        return "not run"
    return " / ".join(f"{row[key]:.3f}".lstrip("0") for key in ("pairwise_f", "bcubed_f"))


STUDY = SetStudy(__doc__, ROWS, PAGE, MARKS, METHODS, measure, format_rows)

if __name__ == "__main__":
    sys.exit(STUDY.main())
