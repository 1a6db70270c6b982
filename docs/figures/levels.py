"""Draw docs/images/levels.png: a small set in the plane, grouped level by level.

Run it from the repository: ``python docs/figures/levels.py``. The linkage here is the
ground truth's, as in the hierarchies that a network is trained on.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from hilander.hierarchy.levels import LevelStep, walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.metrics.canvas import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    new_figure,
    save_figure,
)

TARGET = Path(__file__).resolve().parents[1] / "images" / "levels.png"
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
CENTRES = ((0.16, 0.30), (0.36, 0.74), (0.52, 0.26), (0.80, 0.66), (0.86, 0.22))
SIZES = (16, 14, 18, 16, 10)
N_SHOWN = 3


def make_points(seed: int = 4) -> tuple[Any, Any, Any]:
    """Points in the unit square, the same as unit vectors, and their identities."""
    rng = np.random.default_rng(seed)
    pairs = zip(CENTRES, SIZES, strict=True)
    flat = np.concatenate([rng.normal(c, (0.055, 0.06), size=(n, 2)) for c, n in pairs])
    # Up on a sphere of radius 1 the plane's distances become angles.
    angles = (flat - 0.5) * 1.6
    up = np.cos(angles[:, 0]) * np.cos(angles[:, 1])
    side = np.sin(angles[:, 0]) * np.cos(angles[:, 1])
    points = np.stack([side, np.sin(angles[:, 1]), up], axis=1).astype(np.float32)
    return flat, points, np.repeat(np.arange(len(SIZES)), SIZES)


def draw() -> Any:
    """The figure: one panel a level."""
    flat, points, identity = make_points()
    steps = list(walk_levels(points, LabelScorer(identity), Rules(k=2, p_tau=0.5)))
    shown = [step for step in steps if step.parents.n_edges][:N_SHOWN]
    final = np.arange(len(points))
    for step in steps:
        final = step.labels[final]
    figure = new_figure(3.4 * len(shown), 3.7)
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for number, (panel, step) in enumerate(zip(panels, shown, strict=True)):
        _draw_level(panel, flat, step, final)
        panel.set_title(
            f"level {number}: {len(step.labels)} nodes, {len(step.peaks)} peaks",
            color=INK,
            fontsize=10,
        )
    figure.subplots_adjust(left=0.01, right=0.99, top=0.91, bottom=0.02, wspace=0.04)
    return figure


def _draw_level(panel: Any, flat: Any, step: LevelStep, final: Any) -> None:
    colour = [COLOURS[label % len(COLOURS)] for label in final]
    panel.scatter(*flat.T, s=9, color=FAINT, zorder=1)
    nodes = step.nodes.point
    for node, parent in enumerate(step.parents.index):
        if node != parent:
            ends = flat[[nodes[node], nodes[parent]]]
            panel.annotate(
                "",
                ends[1],
                ends[0],
                arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 0.8, "mutation_scale": 7},
                zorder=2,
            )
    size = 14 + 9 * np.sqrt(step.nodes.size)
    panel.scatter(*flat[nodes].T, s=size, color=[colour[n] for n in nodes], zorder=3)
    peaks = nodes[step.peaks]
    panel.scatter(
        *flat[peaks].T, s=size[step.peaks] + 90, facecolors="none", edgecolors=INK, lw=1.4, zorder=4
    )
    panel.set(xticks=[], yticks=[], xlim=(-0.02, 1.02), ylim=(0.02, 0.96))
    for spine in panel.spines.values():
        spine.set_color(FAINT)


if __name__ == "__main__":
    save_figure(draw(), Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
