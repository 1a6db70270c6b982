"""What the result does not depend on: measured for each kind of change that should not matter.

    python -m benchmarks.invariances run [--dataset NAME ...] [--methods NAME ...]
    python -m benchmarks.invariances render      # the table of docs/results/invariances.md

Each row compares the labels of a changed input with those of the input itself. The fitted model
was trained on the train file. The paper's method is not fitted here, since it takes an hour; a test
shows that it does not depend on the order of the rows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits

from benchmarks.datasets import SHARED
from benchmarks.pretrained import read_test
from benchmarks.rows import RESULTS, ROOT, find_data
from benchmarks.set_study import Row, SetStudy
from hilander.arrays.rows import IntArray
from hilander.estimator import HiLander
from hilander.hierarchy.decoding import decode
from hilander.hierarchy.decoding.communities import find_by_leiden
from hilander.io.files import read_embeddings
from hilander.metrics.scores import ari, pairwise_f

ROWS = RESULTS / "invariances.jsonl"
PAGE = ROOT / "docs" / "results" / "invariances.md"
MARKS = ("<!-- invariances: begin -->", "<!-- invariances: end -->")
METHODS = ("pretrained", "fitted")
COPIES = 10  # every tenth row is given twice
SEEDS = (0, 1, 2)  # of permutations and rotations; the table shows the worst

Array = npt.NDArray[Any]
Cluster = Callable[[Array], IntArray]


def permute(features: Array, cluster: Cluster, seed: int) -> IntArray:
    """Labels of the rows in another order, given back in the first order."""
    order = np.random.default_rng([seed, 1]).permutation(len(features))
    labels = np.empty(len(features), dtype=np.int64)
    labels[order] = cluster(features[order])
    return labels


def rotate(features: Array, cluster: Cluster, seed: int) -> IntArray:
    """Labels after a random rotation, computed in float64 and rounded to float32."""
    rng = np.random.default_rng([seed, 2])
    square = rng.standard_normal((features.shape[1], features.shape[1]))
    rotation, _ = np.linalg.qr(square)
    return cluster((features.astype(np.float64) @ rotation).astype(np.float32))


def copy_rows(features: Array, cluster: Cluster, _: int) -> IntArray:
    """Labels of the rows where some are given twice."""
    return cluster(np.concatenate([features, features[::COPIES]]))[: len(features)]


def join_far_set(features: Array, cluster: Cluster, seed: int) -> IntArray:
    """Labels of the rows beside a set of a thousand points that are orthogonal to all of them.

    The features of the two sets are in dimensions of their own.
    """
    rng = np.random.default_rng([seed, 3])
    centres = np.repeat(rng.standard_normal((100, features.shape[1])), 10, axis=0)
    other = centres + 0.3 * rng.standard_normal(centres.shape)
    both = np.zeros((len(features) + len(other), 2 * features.shape[1]), dtype=np.float32)
    both[: len(features), : features.shape[1]] = features
    both[len(features) :, features.shape[1] :] = other
    return cluster(both)[: len(features)]


def use_two_threads(features: Array, cluster: Cluster, _: int) -> IntArray:
    """Labels found with two threads of every library."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with threadpool_limits(2):
            return cluster(features)
    finally:
        torch.set_num_threads(before)


def draw_other_starts(features: Array, cluster: Cluster, seed: int) -> IntArray:
    """Labels found with another seed of the community search."""
    with patch.object(decode, "find_by_leiden", partial(find_by_leiden, seed=seed + 1)):
        return cluster(features)


# Name -> (words of the table, labels of the changed input, seeds)
CHANGES: dict[str, tuple[str, Callable[[Array, Cluster, int], IntArray], Sequence[int]]] = {
    "permuted": ("rows in another order", permute, SEEDS),
    "doubled": ("all numbers times 2", lambda X, cluster, _: cluster(X * X.dtype.type(2)), (0,)),
    "tripled": (
        "all numbers times 3, in float32",
        lambda X, cluster, _: cluster(X.astype(np.float32) * np.float32(3)),
        (0,),
    ),
    "float32": ("float16 as float32", lambda X, cluster, _: cluster(X.astype(np.float32)), (0,)),
    "float64": ("float16 as float64", lambda X, cluster, _: cluster(X.astype(np.float64)), (0,)),
    "threads": ("two threads instead of one", use_two_threads, (0,)),
    "rotated": ("rotated", rotate, SEEDS),
    "starts": ("another draw of the starts", draw_other_starts, SEEDS),
    "copies": (f"every {COPIES}th row twice", copy_rows, (0,)),
    "far set": ("beside a far-away set of 1,000 points", join_far_set, (0,)),
}
PROCESS = "another process"


def measure(name: str, methods: Sequence[str]) -> Iterator[Row]:
    """Compare the labels of changed inputs with those of the test file of a pair."""
    features, _ = read_test(name)
    for method in methods:
        model = make_model(method, name)
        with threadpool_limits(1):
            reference = model.predict(features)
            for change, (_words, relabel, seeds) in CHANGES.items():
                if change == "far set" and method != "pretrained":
                    continue  # a fitted model takes features of one width
                for seed in seeds:
                    found = relabel(features, model.predict, seed)
                    yield {"method": method, "change": change, **compare(reference, found, seed)}
        found = predict_in_another_process(model, features)
        yield {"method": method, "change": PROCESS, **compare(reference, found, 0)}


def make_model(method: str, name: str) -> HiLander:
    """The pretrained model, or one that is trained on the train file of a pair."""
    if method == "pretrained":
        return HiLander.pretrained(device="cpu")
    train = read_embeddings(find_data() / SHARED[name][0])
    return HiLander(device="cpu").fit(train.features, train.labels)


def predict_in_another_process(model: HiLander, features: Array) -> IntArray:
    """Labels that the command finds with the stored model."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        model.save(place / "model")
        np.save(place / "features.npy", features)
        command = [sys.executable, "-m", "hilander", "cluster", "features.npy", "-m", "model"]
        subprocess.run(
            [*command, "-o", "run", "--quiet", "--device", "cpu"],
            cwd=place,
            check=True,
        )
        from hilander.hierarchy.hierarchy import Hierarchy

        return Hierarchy.load(place / "run").labels(-1)


def compare(reference: IntArray, found: IntArray, seed: int) -> Row:
    """How far two partitions of the same points agree."""
    return {
        "change_seed": seed,
        "equal": bool(np.array_equal(reference, found)),
        "same_partition": ari(reference, found) == 1.0,
        "ari": ari(reference, found),
        "agreement": pairwise_f(reference, found),
        "n_clusters": len(np.unique(found)),
        "n_points": len(reference),
    }


def format_rows(rows: list[Row]) -> str:
    """A Markdown table: a line for each change, a column for each set and method."""
    latest = {
        (row["dataset"], row["method"], row["change"], row["change_seed"]): row for row in rows
    }
    columns = [(name, method) for method in METHODS for name in SHARED]
    names = [f"{name}, {method}" for name, method in columns]
    lines = ["| change | " + " | ".join(names) + " |", "|---|" + "---|" * len(columns)]
    words = {change: text for change, (text, _, _) in CHANGES.items()} | {PROCESS: PROCESS}
    for change, text in words.items():
        cells = []
        for column in columns:
            found = [row for key, row in latest.items() if (*column, change) == key[:3]]
            cells.append(_cell(found))
        lines.append(f"| {text} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(rows: list[Row]) -> str:
    """The worst of the rows of one change."""
    if not rows:
        return "not run"
    if all(row["equal"] for row in rows):
        return "equal"
    if all(row["same_partition"] for row in rows):
        return "same partition"
    worst = min(rows, key=lambda row: row["ari"])
    return f"{worst['ari']:.3f} / {worst['agreement']:.3f}"


STUDY = SetStudy(__doc__, ROWS, PAGE, MARKS, METHODS, measure, format_rows)

if __name__ == "__main__":
    sys.exit(STUDY.main())
