"""The demo's pictures, and the page that shows them."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hilander.metrics.examples import largest_clusters, worst_mistakes
from hilander.metrics.plots import plot_contact_sheet, plot_levels, plot_sizes, plot_training

if TYPE_CHECKING:
    from hilander.cli.demo import DemoResult
    from hilander.synthetic.glyph_embedding import GlyphData

ROWS_SHOWN = 12
VIEWS_SHOWN = 14
SAMPLE_ROWS = 10
SAMPLE_VIEWS = 12
FEWEST_VIEWS = 8

_PICTURES = {
    "sample": (
        "Clusters drawn at random",
        f"Clusters of at least {FEWEST_VIEWS} views, of characters that the model had never seen. "
        "Each row is one cluster, each picture one font's view. A blue frame is the commonest "
        "character of its row, another colour is another character.",
    ),
    "largest": (
        "The largest clusters",
        "Here wrong merges show first: the largest clusters are often two characters in one.",
    ),
    "mistakes": (
        "The worst mistakes",
        "The clusters with most pictures of a wrong character: the colour of a frame is the true "
        "character.",
    ),
    "levels": (
        "Level by level",
        "Scores and the number of clusters after each merge, with the true number as a dashed "
        "line.",
    ),
    "sizes": ("Sizes", "How many clusters there are of each size, beside the true characters."),
    "training": ("Training", "Losses by epoch, on the characters the model learned from."),
}

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .3rem .9rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; }
code { background: #f3f3f3; padding: .1rem .3rem; }
h2 { margin-top: 2.5rem; }
"""


def write_page(result: DemoResult, data: GlyphData, folder: Path) -> None:
    """Draw the pictures into ``plots/`` and write ``index.html``.

    Parameters
    ----------
    result : DemoResult
    data : GlyphData
    folder : Path
        Open for writing.
    """
    plots = folder / "plots"
    plots.mkdir()
    drawn = {name: draw(result, data, plots / f"{name}.png") for name, draw in _DRAW.items()}
    shown = [name for name in _PICTURES if drawn[name]]
    (folder / "index.html").write_text(_page(result, data, shown), encoding="utf-8")


def _draw_sample(result: DemoResult, data: GlyphData, path: Path) -> bool:
    labels = result.hierarchy.labels(-1)
    large = np.flatnonzero(result.hierarchy.sizes(-1) >= FEWEST_VIEWS)
    if not len(large):
        return False
    chosen = np.random.default_rng(0).permutation(large)[:SAMPLE_ROWS]
    clusters = [np.flatnonzero(labels == cluster) for cluster in chosen]
    plot_contact_sheet(
        data.test_thumbs, clusters, path, per_cluster=SAMPLE_VIEWS, true=data.test_labels
    )
    return True


def _draw_largest(result: DemoResult, data: GlyphData, path: Path) -> bool:
    clusters = largest_clusters(result.hierarchy.labels(-1), ROWS_SHOWN)
    plot_contact_sheet(
        data.test_thumbs, clusters, path, per_cluster=VIEWS_SHOWN, true=data.test_labels
    )
    return True


def _draw_mistakes(result: DemoResult, data: GlyphData, path: Path) -> bool:
    clusters = worst_mistakes(data.test_labels, result.hierarchy.labels(-1), ROWS_SHOWN)
    if not clusters:
        return False
    plot_contact_sheet(
        data.test_thumbs, clusters, path, per_cluster=VIEWS_SHOWN, true=data.test_labels
    )
    return True


def _draw_levels(result: DemoResult, _: GlyphData, path: Path) -> bool:
    levels = result.hierarchy.levels
    early = next((number for number, level in enumerate(levels) if level.stops_early), None)
    counts = [level.n_clusters for level in levels]
    plot_levels(result.level_scores, counts, path, early_stop_level=early)
    return True


def _draw_sizes(result: DemoResult, data: GlyphData, path: Path) -> bool:
    plot_sizes(result.hierarchy.labels(-1), path, true=data.test_labels)
    return True


def _draw_training(result: DemoResult, _: GlyphData, path: Path) -> bool:
    plot_training(result.model.history_, path)
    return True


_DRAW: dict[str, Callable[[DemoResult, GlyphData, Path], bool]] = {
    "sample": _draw_sample,
    "largest": _draw_largest,
    "mistakes": _draw_mistakes,
    "levels": _draw_levels,
    "sizes": _draw_sizes,
    "training": _draw_training,
}


def _page(result: DemoResult, data: GlyphData, shown: list[str]) -> str:
    n_train, n_test = len(set(data.train_labels.tolist())), len(set(data.test_labels.tolist()))
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>hilander demo</title><style>{_STYLE}</style></head><body>",
        "<h1>Grouping characters never seen before</h1>",
        f"<p>The model learned from {len(data.train_ids):,} views of {n_train} characters, drawn "
        f"in many fonts, which views show one character. Then it grouped {len(data.test_ids):,} "
        f"views of {n_test} <em>other</em> characters, without being told how many there are.</p>",
        _table(result),
        "<p>Fp and Fb are pairwise and BCubed F. The first line joins views whose cosine reaches a "
        "threshold, which was chosen on the training characters.</p>",
    ]
    for name in shown:
        title, text = _PICTURES[name]
        parts.append(f"<h2>{html.escape(title)}</h2><p>{html.escape(text)}</p>")
        parts.append(f'<img src="plots/{name}.png" alt="{html.escape(title)}">')
    parts.append(
        "<h2>In this folder</h2><ul>"
        "<li><code>train.npz</code>, <code>test.npz</code>: embeddings, ids and labels; "
        "<code>thumbs.npy</code>: the test pictures</li>"
        "<li><code>model/</code>: the trained model</li>"
        "<li><code>run/</code>: the clusters (<code>clusters.parquet</code>, "
        "<code>clusters.csv</code>), the hierarchy, and how long each stage took "
        "(<code>run.json</code>)</li><li><code>scores.json</code>: the table above</li></ul>"
    )
    return "\n".join([*parts, "</body></html>", ""])


def _table(result: DemoResult) -> str:
    lines = ["<table><tr><th></th><th>Fp</th><th>Fb</th><th>NMI</th><th>clusters / true</th></tr>"]
    for name, scores in result.scores.items():
        values = (scores.pairwise.f, scores.bcubed.f, scores.nmi)
        cells = "".join(f"<td>{value:.3f}</td>" for value in values)
        lines.append(
            f"<tr><td>{html.escape(name)}</td>{cells}"
            f"<td>{scores.n_clusters:,} / {scores.n_identities:,}</td></tr>"
        )
    return "\n".join([*lines, "</table>"])
