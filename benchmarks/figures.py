"""The paper's figures for any data set: early stopping, sensitivity, the hierarchy on a map.

    python -m benchmarks.figures [early-stop] [sensitivity] [hierarchy] [--dataset NAME] [-o FOLDER]

Without names all three are drawn, each from the data set that the config names. Sensitivity is
measured first, into ``benchmarks/results/sensitivity.jsonl``; ``--draw-only`` reads existing rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.datasets import load_images, load_pair
from benchmarks.rows import RESULTS, ROOT, append_row, describe_circumstances, read_rows
from benchmarks.suite import CONFIG, Suite, read_suite
from hilander.comparison.methods import PAPER_EPOCHS
from hilander.comparison.pair import Pair
from hilander.errors import SettingError
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.metrics.canvas import BLUE, FAINT, INK, VERMILION, dress_axes, new_figure, save_figure
from hilander.metrics.plots import draw_levels
from hilander.metrics.report import score_clustering, score_levels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hilander.estimator import HiLander

EVERY = ("early-stop", "sensitivity", "hierarchy")
OUTPUT = ROOT / "docs" / "images"
ROWS = RESULTS / "sensitivity.jsonl"
# Values of each parameter that is varied.
SETTINGS: dict[str, tuple[Any, ...]] = {
    "k": (8, 9, 10, 11, 12),
    "p_tau": (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9),
    "features": ("identity", "average", "concat"),
    "encoder": ("attention", "convolution"),
}
AT_INFERENCE = ("k", "p_tau")  # parameters of clustering; the others need a new training
TITLES = {"features": "aggregation"}
_MAP_POINTS, _SHOWN_CLASSES, _IMAGES = 1_500, 8, 24  # drawn, at most


def train_paper_model(pair: Pair, epochs: int = PAPER_EPOCHS, **parameters: Any) -> HiLander:
    """The paper's network on a pair's training set; `parameters` replace its settings."""
    return _train(
        pair, epochs, *({"features": "identity", "encoder": "attention"} | parameters).items()
    )


@cache
def _train(pair: Pair, epochs: int, *parameters: tuple[str, Any]) -> HiLander:
    """Train a model once, for all figures that show it."""
    from hilander.estimator import HiLander
    from hilander.linkage.paper.training import LearningSettings

    learning = LearningSettings(
        epochs=epochs, batch_size=1_024, optimizer="adamw", learning_rate=1e-3
    )
    model = HiLander(method="paper", k=10, centre=False, learning=learning, **dict(parameters))
    return model.fit(pair.train, pair.train_labels)


def train_default(pair: Pair) -> HiLander:
    """The default method on a pair's training set."""
    from hilander.estimator import HiLander

    return HiLander(random_state=0).fit(pair.train, pair.train_labels)


def draw_early_stop(pair: Pair, model: HiLander) -> Figure:
    """Metrics and number of clusters by level, with both stopping points marked."""
    hierarchy = model.cluster(pair.test)
    return draw_levels(
        score_levels(hierarchy, pair.test_labels),
        [level.n_clusters for level in hierarchy.levels],
        hierarchy.early_stop_level,
    )


def measure_sensitivity(
    pair: Pair, train: Callable[..., HiLander] = train_paper_model
) -> Iterator[dict[str, Any]]:
    """Rows of scores for k, p_tau, aggregation and encoder, one varied at a time."""
    for setting, values in SETTINGS.items():
        at_inference = setting in AT_INFERENCE
        for value in values:
            if setting == "k" and int(value) >= len(pair.test):
                continue
            model = train(pair) if at_inference else train(pair, **{setting: value})
            found = model.cluster(pair.test, **({setting: value} if at_inference else {})).labels(
                -1
            )
            scores = score_clustering(pair.test_labels, found)
            yield {
                "setting": setting, "value": value,
                "pairwise_f": scores.pairwise.f, "bcubed_f": scores.bcubed.f,
            }  # fmt: skip


def write_sensitivity(pair: Pair) -> None:
    """Append the rows of a pair."""
    start = {"dataset": pair.name, **describe_circumstances()}
    for row in measure_sensitivity(pair):
        append_row(ROWS, start | row)


def draw_sensitivity(rows: Sequence[dict[str, Any]]) -> Figure:
    """Scores against each setting, from rows of one data set. Of equal rows the last counts."""
    figure = new_figure(11, 3.2)
    row = figure.subplots(1, len(SETTINGS), sharey=True)
    for axes, setting in zip(row, SETTINGS, strict=True):
        scores = {one["value"]: one for one in rows if one["setting"] == setting}
        place = np.arange(len(scores))
        line = "-" if setting in AT_INFERENCE else ""  # no line between names
        for title, column, colour, mark in (
            ("pairwise F", "pairwise_f", BLUE, "o"),
            ("BCubed F", "bcubed_f", VERMILION, "s"),
        ):
            found = [one[column] for one in scores.values()]
            axes.plot(place, found, mark + line, color=colour, label=title)
        axes.set_xticks(place, [str(value) for value in scores])
        axes.set_xlim(-0.5, len(scores) - 0.5)
        dress_axes(axes, "F" if setting == "k" else "", TITLES.get(setting, setting))
    figure.axes[0].legend(frameon=False, labelcolor=INK, fontsize=8)
    figure.subplots_adjust(left=0.06, right=0.99, top=0.95, bottom=0.17, wspace=0.12)
    return figure


def draw_hierarchy(pair: Pair, model: HiLander, images: Any | None = None, seed: int = 0) -> Figure:
    """The peaks of every level on one map of some points, coloured by true class.

    All points are clustered; some classes are drawn, each with all its points. A few classes are
    coloured, the others are grey. If there are images, those of the last level's peaks stand below
    the maps, in frames of the colour of their class.

    Parameters
    ----------
    pair : Pair
    model : HiLander
    images : ndarray of shape (n_test, height, width), optional
    seed : int
        Seed of the drawn classes and of the map.
    """
    rows = _choose_points(pair.test_labels, seed)
    hierarchy = model.cluster(pair.test)
    labels = np.unique(pair.test_labels[rows], return_inverse=True)[1]
    colours, place = _colour_classes(labels), map_points(pair.test[rows], seed)
    n_panels = hierarchy.n_levels + 1
    figure = new_figure(2.6 * n_panels, 3.0 if images is None else 4.0)
    heights = (1,) if images is None else (3, 1)
    grid = figure.add_gridspec(len(heights), n_panels, height_ratios=heights)
    peaks = [np.arange(len(rows)), *_peaks_of_levels(hierarchy, rows)]
    for column, at in enumerate(peaks):
        axes = figure.add_subplot(grid[0, column])
        _draw_peaks(axes, place, labels, at, colours)
        name = "points" if column == 0 else f"level {column - 1}"
        axes.set_title(f"{name}: {len(at):,}", fontsize=9, color=INK)
    if images is not None:
        _draw_images(figure.add_subplot(grid[1, :]), images[rows], labels, peaks[-1], colours)
    figure.subplots_adjust(left=0.01, right=0.99, top=0.9, bottom=0.03, wspace=0.05, hspace=0.2)
    return figure


def _choose_points(labels: Any, seed: int) -> Any:
    """Rows of random classes, each with all its points, up to `_MAP_POINTS`."""
    rng = np.random.default_rng(seed)
    sizes = np.bincount(labels)
    turn = rng.permutation(len(sizes))
    wanted = turn[np.cumsum(sizes[turn]) <= _MAP_POINTS]
    rows = np.flatnonzero(np.isin(labels, wanted))
    return rows if len(rows) else np.arange(min(len(labels), _MAP_POINTS))


def map_points(features: Any, seed: int) -> Any:
    """t-SNE of some points, shape (n, 2)."""
    from sklearn.manifold import TSNE

    spread = min(30, max(2, len(features) // 4))
    return TSNE(perplexity=spread, init="pca", metric="cosine", random_state=seed).fit_transform(
        features
    )


def _peaks_of_levels(hierarchy: Hierarchy, rows: Any) -> list[Any]:
    """The peaks of each level among `rows`, as positions in `rows`."""
    place = np.full(hierarchy.n_points, -1)
    place[rows] = np.arange(len(rows))
    points, found = np.arange(hierarchy.n_points), []
    for level in hierarchy.levels:
        points = points[level.peaks]
        found.append(place[points][place[points] >= 0])
    return found


def _colour_classes(labels: Any) -> dict[int, Any]:
    """A colour for each of the largest classes."""
    from matplotlib import colormaps

    commonest = np.argsort(-np.bincount(labels), kind="stable")[:_SHOWN_CLASSES]
    return dict(zip(commonest.tolist(), colormaps["tab10"].colors, strict=False))


def _draw_peaks(axes: Any, place: Any, labels: Any, peaks: Any, colours: dict[int, Any]) -> None:
    axes.scatter(*place.T, s=2, color=FAINT, linewidths=0)
    other = ~np.isin(labels[peaks], list(colours))
    axes.scatter(*place[peaks[other]].T, s=5, color="#999999", linewidths=0)
    for label, colour in colours.items():
        some = peaks[labels[peaks] == label]
        axes.scatter(*place[some].T, s=14, color=colour, edgecolors=INK, linewidths=0.3)
    axes.set_xticks([])
    axes.set_yticks([])


def _draw_images(axes: Any, images: Any, labels: Any, peaks: Any, colours: dict[int, Any]) -> None:
    """Images of peaks in a row, those of coloured classes first and framed."""
    from matplotlib.patches import Rectangle

    rank = {label: number for number, label in enumerate(colours)}
    turn = sorted(peaks.tolist(), key=lambda at: rank.get(int(labels[at]), len(rank)))[:_IMAGES]
    axes.imshow(np.concatenate(list(images[turn]), axis=1), cmap="gray", interpolation="nearest")
    height, width = images.shape[1:3]
    for number, at in enumerate(turn):
        colour = colours.get(int(labels[at]))
        if colour is not None:
            corner = (number * width - 0.5, -0.5)
            axes.add_patch(Rectangle(corner, width, height, fill=False, color=colour, linewidth=2))
    axes.set_title("peaks of the last level", fontsize=9, color=INK)
    axes.set_axis_off()


def draw_all(
    suite: Suite, names: Sequence[str], dataset: str | None, output: Path, draw_only: bool = False
) -> None:
    """Draw the named figures; with `draw_only`, sensitivity from existing rows."""
    output.mkdir(parents=True, exist_ok=True)
    pairs: dict[str, Pair] = {}
    for name in names:
        chosen = dataset or suite.figures[name.replace("-", "_")]
        pair = pairs.setdefault(chosen, pairs.get(chosen) or load_pair(chosen))
        if name == "sensitivity":
            if not draw_only:
                write_sensitivity(pair)
            rows = [row for row in read_rows(ROWS) if row["dataset"] == pair.name]
            figure, file = draw_sensitivity(rows), "sensitivity.png"
        elif name == "early-stop":
            figure, file = draw_early_stop(pair, train_paper_model(pair)), "early-stop.png"
        elif name == "hierarchy":
            try:
                images = load_images(pair.name)[0]
            except SettingError:
                images = None
            figure, file = draw_hierarchy(pair, train_default(pair), images), "hierarchy-map.png"
        else:
            raise SettingError(f"figure {name!r} is not known; use one of {', '.join(EVERY)}")
        print(save_figure(figure, output / file))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EVERY))
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--dataset")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    parser.add_argument(
        "--draw-only", action="store_true", help="draw sensitivity from existing rows"
    )
    args = parser.parse_args(arguments)
    names = args.names or EVERY
    draw_all(read_suite(args.config), names, args.dataset, args.output, args.draw_only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
