"""Dendrogram purity of the merge tree beside the trees of other methods.

``python -m benchmarks.dendrograms run`` measures and appends rows; ``render`` writes the table of
docs/results/dendrograms.md. No method is tuned. Every method gets the embeddings as the pretrained
model prepares them without whitening: normalised, and centred where they lie in a narrow cone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from benchmarks.rows import (
    RESULTS,
    ROOT,
    append_row,
    describe_circumstances,
    find_data,
    hash_file,
    put_block,
    read_rows,
)
from hilander import HiLander
from hilander.comparison.rival import Problem
from hilander.comparison.rivals.finch import build_finch_levels
from hilander.embeddings.preparation import learn_preparation
from hilander.knn import build_knn_graph
from hilander.metrics import dendrogram_purity

ROWS = RESULTS / "dendrograms.jsonl"
PAGE = ROOT / "docs" / "results" / "dendrograms.md"
MARKS = ("<!-- dendrograms: begin -->", "<!-- dendrograms: end -->")
SETS = {
    "omniglot": "omniglot-test.npz",
    "faces": "faces-lfw-test.npz",
    "flowers": "flowers-test.npz",
    "clinc150": "clinc150-use-test.npz",
    "fruits360": "fruits360-efl0-test.npz",
}
CORE_NEIGHBOURS = 5  # neighbours of HDBSCAN's core distance, its default
Merges = Any  # (n_merges, 2) children


def grow_merge_tree(raw: Any, prepared: Any) -> Merges:
    """The merge tree of the pretrained model."""
    return HiLander.pretrained().cluster(raw).tree.children


def grow_average_tree(raw: Any, prepared: Any) -> Merges:
    """Hierarchical agglomerative clustering by average linkage of cosine distances."""
    distance = squareform(_cosine_distances(prepared), checks=False)
    return linkage(distance, "average")[:, :2].astype(np.int64)


def grow_density_tree(raw: Any, prepared: Any) -> Merges:
    """Single linkage of the mutual reachability distance: the tree that HDBSCAN cuts."""
    distance = _cosine_distances(prepared)
    core = np.partition(distance, CORE_NEIGHBOURS, axis=1)[:, CORE_NEIGHBOURS]
    np.maximum(distance, core[:, None], out=distance)
    np.maximum(distance, core[None, :], out=distance)
    np.fill_diagonal(distance, 0)
    return linkage(squareform(distance, checks=False), "single")[:, :2].astype(np.int64)


def grow_finch_tree(raw: Any, prepared: Any) -> Merges:
    """FINCH's partitions as a tree: nodes of one cluster merge one after the other."""
    problem = Problem(prepared, build_knn_graph(prepared, 1))
    return chain_levels(build_finch_levels(problem))


METHODS: dict[str, Callable[[Any, Any], Merges]] = {
    "hilander (pretrained)": grow_merge_tree,
    "HAC, average": grow_average_tree,
    "HDBSCAN's tree": grow_density_tree,
    "FINCH": grow_finch_tree,
}


def chain_levels(levels: list[Any]) -> Merges:
    """Binary merges of nested partitions, the finest first; the order in a cluster is arbitrary."""
    n_points = len(levels[0])
    node, children = np.arange(n_points), []
    group = np.arange(n_points)
    for labels in levels:
        top: dict[int, int] = {}
        for one in np.unique(group, return_index=True)[1]:
            cluster, present = int(labels[one]), int(node[one])
            if cluster in top:
                children.append((top[cluster], present))
                present = n_points + len(children) - 1
            top[cluster] = present
        node = np.array([top[int(label)] for label in labels])
        group = np.asarray(labels)
    return np.array(children, dtype=np.int64).reshape(-1, 2)


def _cosine_distances(prepared: Any) -> Any:
    """One minus the cosine of every two rows, shape (n_points, n_points), float32."""
    distance = 1 - prepared @ prepared.T
    np.fill_diagonal(distance, 0)
    return np.maximum(distance, 0, out=distance)


def run(names: list[str]) -> None:
    """Measure every method on some sets and append the rows."""
    for name in names:
        path = find_data() / SETS[name]
        with np.load(path) as arrays:
            raw = arrays["features"].astype(np.float32)
            truths = {kind: arrays[kind] for kind in ("labels", "coarse") if kind in arrays.files}
        prepared = learn_preparation(raw).apply(raw)
        for method, grow in METHODS.items():
            start = time.perf_counter()
            children = grow(raw, prepared)
            seconds = time.perf_counter() - start
            for kind, labels in truths.items():
                purity = dendrogram_purity(labels, children)
                row = {
                    "dataset": name,
                    "dataset_hash": hash_file(path),
                    "truth": kind,
                    "method": method,
                    "n_points": len(raw),
                    "purity": purity,
                    "seconds": round(seconds, 2),
                    **describe_circumstances(),
                }
                append_row(ROWS, row)
                print(f"{name} {kind} {method}: {purity:.4f} in {seconds:.1f} s", flush=True)


def format_rows(rows: list[dict[str, Any]]) -> str:
    """The newest row of each set and method as a table, the highest of a set in bold."""
    newest = {(row["dataset"], row["truth"], row["method"]): row["purity"] for row in rows}
    sets = list(dict.fromkeys((row["dataset"], row["truth"]) for row in rows))
    lines = [f"| data set | truth | {' | '.join(METHODS)} |", "|---" * (2 + len(METHODS)) + "|"]
    for dataset, truth in sets:
        values = [newest.get((dataset, truth, method)) for method in METHODS]
        best = max(value for value in values if value is not None)
        cells = [
            "not run" if value is None else f"**{value:.3f}**" if value == best else f"{value:.3f}"
            for value in values
        ]
        kind = {"labels": "identities", "coarse": "coarse groups"}[truth]
        lines.append(f"| {dataset} | {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def render() -> None:
    """Write the table into its page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(put_block(text, MARKS, format_rows(read_rows(ROWS))), encoding="utf-8")


def main() -> None:
    """Run or render."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dendrograms", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("run", help="measure and append rows")
    measure.add_argument("--datasets", nargs="+", choices=list(SETS), default=list(SETS))
    commands.add_parser("render", help="write the table into docs/results/dendrograms.md")
    args = parser.parse_args()
    if args.command == "run":
        run(args.datasets)
    else:
        render()


if __name__ == "__main__":
    main()
