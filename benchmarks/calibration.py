"""Calibration of linkage, and ranking of clusters and doubts by quality.

``python -m benchmarks.calibration run`` trains on four fifths of the identities of each train
file. It scores the last fifth (as it is, and re-sampled to other sizes) and the test file, and
appends a row for each to ``benchmarks/results/calibration.jsonl``. ``python -m
benchmarks.calibration render`` draws the tables and the figure of ``docs/results/confidence.md``
from the rows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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

ROWS = RESULTS / "calibration.jsonl"
PAGE = ROOT / "docs" / "results" / "confidence.md"
FIGURE = ROOT / "docs" / "images" / "reliability.png"
BEGIN, END = "<!-- confidence: begin -->", "<!-- confidence: end -->"
PAIRS = {
    "omniglot": ("omniglot-train.npz", "omniglot-test.npz"),
    "faces": ("faces-celeba-train.npz", "faces-lfw-test.npz"),
    "flowers": ("flowers-train.npz", "flowers-test.npz"),
}
PICTURE = (
    "![Share of links that join one identity, by predicted linkage, on the test files.]"
    "(../images/reliability.png)"
)
HELD_OUT, TEST = "held-out", "test"
HELD_OUT_SHARE = 5  # one identity in five is held out
TOP_DOUBTS = 50


def measure(dataset: str, data: Path, seed: int = 0, **settings: Any) -> Iterator[dict[str, Any]]:
    """Train once, and compare linkage and quality with the true identities.

    Parameters
    ----------
    dataset : str
        A key of `PAIRS`.
    data : Path
        Folder of the files of `PAIRS`.
    seed : int
    **settings
        Parameters of `HiLander`.

    Yields
    ------
    row : dict
        One for the held-out identities, then one for the test file.
    """
    from hilander import HiLander
    from hilander.metrics.calibration import learn_scaling
    from hilander.synthetic.episodes import Episode
    from hilander.training.evidence.thresholds import make_validation_episodes

    train_path, test_path = (data / name for name in PAIRS[dataset])
    features, labels = _read(train_path)
    rng = np.random.default_rng([seed, 7])
    held = np.isin(labels, rng.permutation(labels.max() + 1)[::HELD_OUT_SHARE])
    start = time.perf_counter()
    model = HiLander(random_state=seed, **settings).fit(features[~held], labels[~held])
    row = {
        "dataset": dataset,
        "seed": seed,
        "k": model.rules_.k,
        "fit_seconds": round(time.perf_counter() - start, 1),
        "data_sha256": f"{hash_file(train_path)} {hash_file(test_path)}",
        **describe_circumstances(),
    }
    codes = np.unique(labels[held], return_inverse=True)[1]
    unseen = Episode(model.preparation_.apply(features[held]), codes)
    episodes = make_validation_episodes(unseen, rng)
    found = [score_links(model, one.features, one.labels) for one in episodes]
    linkage, same = (np.concatenate([one[part] for one in found]) for part in (0, 1))
    scaling = learn_scaling(linkage, same)
    scales = {"slope": round(scaling.slope, 4), "offset": round(scaling.offset, 4)}
    facts = {name: _mean([one[2][name] for one in found]) for name in found[0][2]}
    yield {**row, **scales, "part": HELD_OUT, **facts, **_curves(linkage, same, scaling)}
    features, labels = _read(test_path)
    linkage, same, facts = score_links(model, model.preparation_.apply(features), labels)
    yield {**row, **scales, "part": TEST, **facts, **_curves(linkage, same, scaling)}


def _read(path: Path) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    with np.load(path) as file:
        codes = np.unique(file["labels"], return_inverse=True)[1]
        return file["features"].astype(np.float32), codes


def _curves(linkage: Any, same: Any, scaling: Any) -> dict[str, Any]:
    from hilander.metrics.calibration import measure_reliability

    return {
        "linkage": measure_reliability(linkage, same).to_dict(),
        "scaled": measure_reliability(scaling.apply(linkage), same).to_dict(),
    }


def score_links(model: Any, features: Any, labels: Any) -> tuple[Any, Any, dict[str, float | None]]:
    """Cluster, and compare linkage, quality and doubts with the true identities.

    Parameters
    ----------
    model : HiLander
    features : ndarray of shape (n_points, dim)
        Prepared embeddings.
    labels : ndarray of shape (n_points,), from 0

    Returns
    -------
    linkage, same : ndarray of shape (n_links,)
        Linkage of each edge, and whether it joins one identity.
    facts : dict
        ``spearman`` of quality with the BCubed F of the clusters; ``auc`` of quality for clusters
        that are exactly one identity; means of quality and of BCubed F over the points; shares of
        the first doubts that are right.
    """
    from hilander.hierarchy.doubts import find_doubtful_merges, find_merge_candidates
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.levels import walk_levels
    from hilander.hierarchy.quality import measure_quality
    from hilander.knn.search import build_knn_graph
    from hilander.metrics.calibration import same_identity
    from hilander.training.methods import find_method

    graph = build_knn_graph(features, min(model.rules_.k, len(features) - 1))
    score = find_method(model.method).make_scorer(model.network_, model.rules_, model.device)
    steps = list(walk_levels(features, score, model.rules_, graph=graph))
    neighbours, linkage = steps[0].graph.neighbours, steps[0].scores.linkage
    hierarchy = Hierarchy.of_steps(steps)
    clusters = hierarchy.labels(-1)
    found = measure_quality(neighbours, linkage, clusters)
    bcubed, perfect = score_clusters(clusters, labels)
    merges = find_doubtful_merges(hierarchy, TOP_DOUBTS)
    pairs = find_merge_candidates(hierarchy, neighbours, linkage, TOP_DOUBTS)
    facts = {
        "spearman": _rank_correlation(found.quality, bcubed),
        "auc": _auc(perfect, found.quality),
        "mean_quality": float(np.average(found.quality, weights=found.size)),
        "mean_bcubed": float(np.average(bcubed, weights=found.size)),
        "merges_wrong": _mean([labels[one.a] != labels[one.b] for one in merges]),
        "splits_right": _mean([labels[one.a] == labels[one.b] for one in pairs]),
    }
    rounded = {name: None if one is None else round(one, 4) for name, one in facts.items()}
    return linkage.ravel(), same_identity(neighbours, labels).ravel(), rounded


def score_clusters(clusters: Any, labels: Any) -> tuple[Any, Any]:
    """Mean BCubed F of the points of each cluster, and whether it is exactly one identity."""
    cells = clusters * (labels.max() + 1) + labels
    _, inverse, count = np.unique(cells, return_inverse=True, return_counts=True)
    size = np.bincount(clusters)
    both = count[inverse]
    f = 2 * both / (size[clusters] + np.bincount(labels)[labels])  # F of both / size, both / true
    score = np.bincount(clusters, f) / size
    return score, score == 1


def _rank_correlation(one: Any, other: Any) -> float | None:
    from scipy.stats import spearmanr

    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(spearmanr(one, other)[0])


def _auc(truth: Any, score: Any) -> float | None:
    from sklearn.metrics import roc_auc_score

    return None if truth.all() or not truth.any() else float(roc_auc_score(truth, score))


def _mean(values: Sequence[Any]) -> float | None:
    known = [float(one) for one in values if one is not None]
    return round(sum(known) / len(known), 4) if known else None


def latest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last row of each data set and part, in the order of `PAIRS`."""
    last = {(row["dataset"], row["part"]): row for row in rows}
    keys = [(name, part) for name in PAIRS for part in (HELD_OUT, TEST)]
    return [last[key] for key in keys if key in last]


def render_table(rows: Sequence[dict[str, Any]]) -> str:
    """The figure, the table of links and the table of clusters and doubts, as Markdown."""
    chosen = latest(rows)
    if not chosen:
        return "*Not measured yet: `python -m benchmarks.calibration run`, then `render`.*"
    links = [
        "| links of | links | ECE | Brier | ECE, scaled | Brier, scaled | slope, offset |",
        "|---|---|---|---|---|---|---|",
    ]
    clusters = [
        "| clusters of | rank correlation | AUC | mean quality | mean BCubed F | merges | "
        "candidates |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in chosen:
        name, plain, scaled = f"{row['dataset']}, {row['part']}", row["linkage"], row["scaled"]
        links.append(
            f"| {name} | {sum(plain['count']):,} | {plain['ece']:.3f} | {plain['brier']:.3f} | "
            f"{scaled['ece']:.3f} | {scaled['brier']:.3f} | "
            f"{row['slope']:.2f}, {row['offset']:+.2f} |"
        )
        facts = ("spearman", "auc", "mean_quality", "mean_bcubed", "merges_wrong", "splits_right")
        cells = ["–" if row[fact] is None else f"{row[fact]:.2f}" for fact in facts]
        clusters.append(f"| {name} | " + " | ".join(cells) + " |")
    commits = ", ".join(sorted({row["commit"] for row in chosen}))
    machines = "; ".join(sorted({row["machine"] for row in chosen}))
    notes = "".join(f" {one}" for one in sorted({row.get("note", "") for row in chosen} - {""}))
    drawn = "Drawn by `python -m benchmarks.calibration render`."
    note = f"Commit {commits}; {machines}.{notes} {drawn}"
    return "\n".join([PICTURE, "", *links, "", *clusters, "", note])


def render(text: str, rows: Sequence[dict[str, Any]]) -> str:
    """The page with the tables of these rows between its marks."""
    return put_block(text, (BEGIN, END), render_table(rows))


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the reliability curves of the test files."""
    from hilander.metrics.calibration import Reliability, plot_reliability

    curves = {}
    for row in latest(rows):
        if row["part"] == TEST:
            curve = row["linkage"]
            predicted, observed = (
                np.array([np.nan if one is None else one for one in curve[name]])
                for name in ("predicted", "observed")
            )
            count = np.array(curve["count"])
            curves[row["dataset"]] = Reliability(predicted, observed, count, curve["brier"])
    plot_reliability(curves, path)


def main(arguments: list[str] | None = None) -> int:
    """Measure, or draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "render"))
    parser.add_argument("--dataset", choices=tuple(PAIRS), action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--figure", type=Path, default=FIGURE)
    args = parser.parse_args(arguments)
    if args.what == "run":
        for dataset in args.dataset or PAIRS:
            for row in measure(dataset, args.data or find_data(), args.seed):
                append_row(args.rows, row)
    else:
        rows = read_rows(args.rows)
        args.page.write_text(render(args.page.read_text(encoding="utf-8"), rows), encoding="utf-8")
        if rows:
            draw(rows, args.figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
