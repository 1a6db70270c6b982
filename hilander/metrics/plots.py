"""Plots of a hierarchy, of cluster sizes and of a training run.

Each ``draw_*`` returns a matplotlib figure, each ``plot_*`` writes one to a file. matplotlib is an
optional dependency: ``pip install 'hilander[plots]'``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.metrics.canvas import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    check_picture_path,
    dress_axes,
    new_figure,
    save_figure,
)
from hilander.metrics.contact_sheet import draw_contact_sheet, plot_contact_sheet
from hilander.metrics.contingency import encode_side
from hilander.metrics.examples import largest_clusters, worst_mistakes
from hilander.metrics.report import Scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "draw_contact_sheet",
    "draw_levels",
    "draw_sizes",
    "draw_training",
    "largest_clusters",
    "plot_contact_sheet",
    "plot_levels",
    "plot_sizes",
    "plot_training",
    "worst_mistakes",
]

_LOSSES = (
    ("loss", "total", INK, "-"),
    ("connectivity_loss", "connectivity", BLUE, "--"),
    ("density_loss", "density", VERMILION, "-."),
)


def plot_levels(
    level_scores: Sequence[Scores] | None,
    n_clusters: Sequence[int],
    path: str | os.PathLike[str],
    early_stop_level: int | None = None,
) -> Path:
    """Write the picture of :func:`draw_levels` to a file.

    Parameters
    ----------
    level_scores, n_clusters, early_stop_level
        As for :func:`draw_levels`.
    path : path-like
        Ends in .png, .svg or .pdf.

    Returns
    -------
    path : Path
        The file written.
    """
    check_picture_path(path)
    return save_figure(draw_levels(level_scores, n_clusters, early_stop_level), path)


def draw_levels(
    level_scores: Sequence[Scores] | None,
    n_clusters: Sequence[int],
    early_stop_level: int | None = None,
) -> Figure:
    """Draw the metrics and the number of clusters by level, and mark both stopping points.

    Parameters
    ----------
    level_scores : sequence of Scores of length n_levels, or None
        None if the identities are unknown: only the number of clusters is drawn.
    n_clusters : sequence of int, of length n_levels
        Clusters at each level; the last is the level of convergence.
    early_stop_level : int, optional
        Level of the early stop. Levels count from 0, as in a ``Hierarchy``.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    _check_levels(level_scores, n_clusters, early_stop_level)
    levels = np.arange(len(n_clusters))
    rows = 1 if level_scores is None else 2
    figure = new_figure(6.4, 2.0 + 2.1 * rows)
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    if level_scores is not None:
        series = (
            ("pairwise F", [s.pairwise.f for s in level_scores], BLUE, "o-"),
            ("BCubed F", [s.bcubed.f for s in level_scores], VERMILION, "s-"),
            ("NMI", [s.nmi for s in level_scores], GREEN, "^-"),
        )
        for name, values, colour, style in series:
            panels[0].plot(levels, values, style, color=colour, label=name, linewidth=2)
        panels[0].set_ylim(-0.03, 1.03)
        dress_axes(panels[0], "score")
    counts = panels[-1]
    counts.plot(levels, n_clusters, "D-", color=PURPLE, label="clusters", linewidth=2)
    if level_scores is not None:
        n_true = level_scores[0].n_identities
        counts.axhline(n_true, color=INK, linewidth=1.2, linestyle="--", label="true identities")
    dress_axes(counts, "clusters", "level")
    shown = [*n_clusters, *(s.n_identities for s in level_scores or ())]
    _use_log_axis(counts, min(shown), max(shown))
    counts.set_xticks(_thin(levels))
    counts.set_xlim(-0.4, len(levels) - 0.6)
    _mark_stops(panels, len(levels), early_stop_level)
    for panel in panels:
        _add_legend(panel)
    figure.subplots_adjust(left=0.18, right=0.74, top=0.90, bottom=0.6 / (2.0 + 2.1 * rows))
    return figure


def plot_sizes(
    labels: ArrayLike, path: str | os.PathLike[str], true: ArrayLike | None = None
) -> Path:
    """Write the picture of :func:`draw_sizes` to a file.

    Parameters
    ----------
    labels, true
        As for :func:`draw_sizes`.
    path : path-like
        Ends in .png, .svg or .pdf.

    Returns
    -------
    path : Path
        The file written.
    """
    check_picture_path(path)
    return save_figure(draw_sizes(labels, true), path)


def draw_sizes(labels: ArrayLike, true: ArrayLike | None = None) -> Figure:
    """Draw the number of clusters of each size, and of true identities if known.

    The bins double in width and the counts have a logarithmic axis, so that singletons and very
    large clusters are visible in one plot.

    Parameters
    ----------
    labels : array-like of shape (n_points,)
        Cluster of each point.
    true : array-like of shape (n_points,), optional
        True identity of each point.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    groups = [("clusters", _sizes(labels, "labels"), BLUE)]
    if true is not None:
        groups.append(("true identities", _sizes(true, "true"), ORANGE))
    n_bins = max(int(_doubling_bins(sizes).max()) for _, sizes, _ in groups) + 1
    figure = new_figure(7.2, 4.0)
    axes = figure.subplots()
    width = 0.8 / len(groups)
    highest = 1
    for position, (name, sizes, colour) in enumerate(groups):
        count = np.bincount(_doubling_bins(sizes), minlength=n_bins)
        centre = np.arange(n_bins) + (position - (len(groups) - 1) / 2) * width
        axes.bar(centre, count, width * 0.94, color=colour, label=f"{name} ({len(sizes):,})")
        highest = max(highest, int(count.max()))
    axes.set_xticks(np.arange(n_bins), [_name_bin(i) for i in range(n_bins)])
    dress_axes(axes, "number", "points in the cluster")
    _use_log_axis(axes, 1, highest)
    # A count of one must be visible as a bar.
    axes.set_ylim(bottom=0.6)
    if n_bins > 9:
        axes.tick_params(axis="x", labelrotation=35)
    axes.legend(frameon=False, labelcolor=INK, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    figure.subplots_adjust(left=0.12, right=0.97, top=0.88, bottom=0.22 if n_bins > 9 else 0.15)
    return figure


def plot_training(history: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> Path:
    """Write the picture of :func:`draw_training` to a file.

    Parameters
    ----------
    history
        As for :func:`draw_training`.
    path : path-like
        Ends in .png, .svg or .pdf.

    Returns
    -------
    path : Path
        The file written.
    """
    check_picture_path(path)
    return save_figure(draw_training(history), path)


def draw_training(history: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the losses by epoch, and the validation score if it was measured.

    Parameters
    ----------
    history : sequence of dict
        One record for each epoch: "epoch", "loss", "connectivity_loss", "density_loss" and, in some
        or all of them, "val_bcubed_f". A value that is missing or not finite leaves a gap.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    epochs = _column(history, "epoch")
    if not np.isfinite(epochs).any():
        raise SettingError(
            f"the history has {len(history)} records with an epoch number in none of them, "
            "expected one for each epoch; give the history of a trained model"
        )
    score = _column(history, "val_bcubed_f")
    rows = 2 if np.isfinite(score).any() else 1
    figure = new_figure(6.4, 1.6 + 2.2 * rows)
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    drawn = []
    for key, name, colour, style in _LOSSES:
        values = _column(history, key)
        known = np.isfinite(values) & np.isfinite(epochs)
        if known.any():
            panels[0].plot(
                epochs[known], values[known], style, color=colour, label=name, linewidth=2
            )
            _show_single(panels[0], int(known.sum()))
            drawn.append(values[known])
    dress_axes(panels[0], "loss")
    # The density loss is often a hundredth of the other, so the axis is logarithmic.
    if drawn and min(values.min() for values in drawn) > 0:
        _use_log_axis(
            panels[0],
            min(float(values.min()) for values in drawn),
            max(float(values.max()) for values in drawn),
        )
    if rows == 2:
        known = np.isfinite(score) & np.isfinite(epochs)
        panels[1].plot(
            epochs[known], score[known], "o-", markersize=4, color=GREEN, label="BCubed F"
        )
        best = int(np.argmax(np.where(known, score, -np.inf)))
        panels[1].plot(
            epochs[best],
            score[best],
            "*",
            markersize=14,
            color=ORANGE,
            label=f"best {score[best]:.3f}",
        )
        dress_axes(panels[1], "validation")
    panels[-1].set_xlabel("epoch", color=INK)
    _use_whole_epochs(panels[-1], epochs[np.isfinite(epochs)])
    for panel in panels:
        _add_legend(panel)
    figure.subplots_adjust(left=0.13, right=0.74, top=0.95, bottom=0.6 / (1.6 + 2.2 * rows))
    return figure


def _check_levels(
    level_scores: Sequence[Scores] | None, n_clusters: Sequence[int], early_stop_level: int | None
) -> None:
    if len(n_clusters) == 0 or min(n_clusters) < 1:
        raise SettingError(
            f"n_clusters={list(n_clusters)}, expected a positive number for each of one or more "
            "levels; give the clusters of each level"
        )
    if level_scores is not None and len(level_scores) != len(n_clusters):
        raise SettingError(
            f"{len(level_scores)} scores for {len(n_clusters)} levels, expected one for each; "
            "score the same hierarchy that gave n_clusters"
        )
    if early_stop_level is not None and not 0 <= early_stop_level < len(n_clusters):
        raise SettingError(
            f"early_stop_level={early_stop_level} of {len(n_clusters)} levels, expected 0 to "
            f"{len(n_clusters) - 1}; count levels from 0, or give None"
        )


def _mark_stops(panels: Any, n_levels: int, early_stop_level: int | None) -> None:
    stops = {"convergence": n_levels - 1}
    if early_stop_level is not None:
        stops["early stop"] = early_stop_level
    for name, level in stops.items():
        early = name == "early stop"
        line_style = (SKY, "-", 5.0, 0.45) if early else (INK, ":", 1.6, 1.0)
        for panel in panels:
            colour, style, width, alpha = line_style
            line = panel.axvline(level, color=colour, linestyle=style, linewidth=width)
            line.set(alpha=alpha, zorder=0.5, gid=name)
        # Names that would overlap: the early one is placed a line higher.
        near = early and (n_levels - 1 - level) < 0.3 * n_levels
        panels[0].annotate(
            name,
            (level, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 17 if near else 4),
            textcoords="offset points",
            ha="center",
            color=INK,
            fontsize=9,
        )


def _add_legend(axes: Any) -> None:
    axes.legend(
        frameon=False, labelcolor=INK, loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0
    )


def _use_log_axis(axes: Any, low: float, high: float) -> None:
    # Ticks at 1 and 3 of each decade, and limits at ticks: the log axis of matplotlib may show one
    # tick or none if the values are close together.
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    ticks = np.array([step * 10.0**decade for decade in decades for step in (1, 3)])
    first = np.flatnonzero(ticks <= low * 1.001)[-1]
    last = max(np.flatnonzero(ticks >= high * 0.999)[0], first + 1)
    axes.set_yscale("log")
    axes.set_ylim(ticks[first] / 1.12, ticks[last] * 1.12)
    shown = ticks[first : last + 1]
    axes.yaxis.set_major_locator(FixedLocator(shown[:: math.ceil(len(shown) / 9)].tolist()))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(_name_tick))


def _name_tick(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.1g}"


def _use_whole_epochs(axes: Any, epochs: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    margin = max(0.4, 0.03 * float(np.ptp(epochs)))
    axes.set_xlim(epochs.min() - margin, epochs.max() + margin)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def _show_single(axes: Any, n_values: int) -> None:
    # A line through one point is invisible.
    if n_values == 1:
        axes.lines[-1].set_marker("o")


def _thin(levels: IntArray) -> IntArray:
    return levels[:: math.ceil(len(levels) / 12)]


def _sizes(labels: ArrayLike, name: str) -> IntArray:
    codes, n_groups = encode_side(labels, name)
    return np.bincount(codes, minlength=n_groups)


def _doubling_bins(sizes: IntArray) -> IntArray:
    # frexp is exact where log2 may round 8 down into the bin of 4 to 7.
    return np.frexp(sizes.astype(np.float64))[1].astype(np.int64) - 1


def _name_bin(index: int) -> str:
    low, high = 2**index, 2 ** (index + 1) - 1
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _column(history: Sequence[Mapping[str, Any]], key: str) -> Any:
    values = [record.get(key) for record in history]
    return np.array([math.nan if value is None else float(value) for value in values], dtype=float)
