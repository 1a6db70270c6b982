"""The pictures of the demo, and the page that shows them."""

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

# Clusters (rows) and images (columns) of a contact sheet.
SHEET_ROWS = 12
SHEET_IMAGES = 14
SAMPLE_ROWS = 10
SAMPLE_IMAGES = 12
MIN_SAMPLE_SIZE = 8  # images; smaller clusters fill too little of a row

_PICTURES = {
    "sample": (
        "Clusters drawn at random",
        f"Clusters of at least {MIN_SAMPLE_SIZE} images, of characters that were not in the "
        "training set. Each row is one cluster, each image one font. A blue frame marks the "
        "most frequent character of the row, another colour another character.",
    ),
    "largest": (
        "The largest clusters",
        "Wrong merges are most visible here: the largest clusters often hold two characters.",
    ),
    "mistakes": (
        "The worst mistakes",
        "The clusters with the most images of a wrong character. The colour of a frame stands for "
        "the true character.",
    ),
    "levels": (
        "Level by level",
        "Scores and number of clusters after each level. The dashed line is the true number.",
    ),
    "sizes": ("Sizes", "Number of clusters of each size, and of true characters of each size."),
    "training": ("Training", "Losses by epoch on the training characters."),
}

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .3rem .9rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; }
.scroll { overflow-x: auto; }
li { overflow-wrap: anywhere; }
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
        Folder that is being written.
    """
    plots = folder / "plots"
    plots.mkdir()
    drawn = {name: draw(result, data, plots / f"{name}.png") for name, draw in _DRAW.items()}
    shown = [name for name in _PICTURES if drawn[name]]
    (folder / "index.html").write_text(_page(result, data, shown), encoding="utf-8")


def _draw_sample(result: DemoResult, data: GlyphData, path: Path) -> bool:
    labels = result.hierarchy.labels(-1)
    large = np.flatnonzero(result.hierarchy.sizes(-1) >= MIN_SAMPLE_SIZE)
    if not len(large):
        return False
    chosen = np.random.default_rng(0).permutation(large)[:SAMPLE_ROWS]
    clusters = [np.flatnonzero(labels == cluster) for cluster in chosen]
    plot_contact_sheet(
        data.test_thumbs, clusters, path, per_cluster=SAMPLE_IMAGES, true=data.test_labels
    )
    return True


def _draw_largest(result: DemoResult, data: GlyphData, path: Path) -> bool:
    clusters = largest_clusters(result.hierarchy.labels(-1), SHEET_ROWS)
    plot_contact_sheet(
        data.test_thumbs, clusters, path, per_cluster=SHEET_IMAGES, true=data.test_labels
    )
    return True


def _draw_mistakes(result: DemoResult, data: GlyphData, path: Path) -> bool:
    clusters = worst_mistakes(data.test_labels, result.hierarchy.labels(-1), SHEET_ROWS)
    if not clusters:
        return False
    plot_contact_sheet(
        data.test_thumbs, clusters, path, per_cluster=SHEET_IMAGES, true=data.test_labels
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
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>hilander demo</title><style>{_STYLE}</style></head><body>",
        "<h1>Grouping characters that were not in the training set</h1>",
        f"<p>The model was trained on {len(data.train_ids):,} labelled images of {n_train} "
        f"characters, drawn in many fonts. Then it grouped {len(data.test_ids):,} images of "
        f"{n_test} <em>other</em> characters. It was not given their number.</p>",
        _table(result),
        "<p>Fp and Fb are pairwise and BCubed F. The first row joins images whose cosine reaches a "
        "threshold, which was chosen on the training characters.</p>",
    ]
    for name in shown:
        title, text = _PICTURES[name]
        parts.append(f"<h2>{html.escape(title)}</h2><p>{html.escape(text)}</p>")
        parts.append(f'<img src="plots/{name}.png" alt="{html.escape(title)}">')
    parts.append(
        "<h2>In this folder</h2><ul>"
        "<li><code>train.npz</code>, <code>test.npz</code>: embeddings, ids and labels; "
        "<code>thumbs.npy</code>: the test images</li>"
        "<li><code>model/</code>: the trained model</li>"
        "<li><code>run/</code>: the clusters (<code>clusters.parquet</code>, "
        "<code>clusters.csv</code>), the hierarchy, and the time of each stage "
        "(<code>run.json</code>)</li><li><code>scores.json</code>: the table above</li></ul>"
    )
    return "\n".join([*parts, "</body></html>", ""])


def _table(result: DemoResult) -> str:
    lines = [
        '<div class="scroll" tabindex="0" role="group" aria-label="Scores"><table>'
        "<tr><td></td><th>Fp</th><th>Fb</th><th>NMI</th><th>clusters / true</th></tr>"
    ]
    for name, scores in result.scores.items():
        values = (scores.pairwise.f, scores.bcubed.f, scores.nmi)
        cells = "".join(f"<td>{value:.3f}</td>" for value in values)
        lines.append(
            f"<tr><td>{html.escape(name)}</td>{cells}"
            f"<td>{scores.n_clusters:,} / {scores.n_identities:,}</td></tr>"
        )
    return "\n".join([*lines, "</table></div>"])
