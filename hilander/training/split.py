"""Identities that are held out of training, to choose settings on."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hilander.arrays.rows import BoolArray, IntArray

FEWEST_VALIDATION_IDENTITIES = 3


class SplitPlan(Protocol):
    """What setting identities aside depends on."""

    @property
    def val_fraction(self) -> float:
        """Share of the identities set aside."""

    @property
    def tune(self) -> tuple[str, ...]:
        """What is chosen on them."""

    @property
    def seed(self) -> int:
        """Which identities."""

    @property
    def fewest_points(self) -> int:
        """Points needed on either side."""


def choose_held_out(labels: IntArray, plan: SplitPlan) -> BoolArray:
    """Mark the points of the validation identities, shape (n_points,).

    None are marked when nothing is tuned, or when too few identities or points would be left on
    either side to build a graph.
    """
    nobody = np.zeros(len(labels), dtype=bool)
    identities = np.unique(labels)
    n_held = round(plan.val_fraction * len(identities))
    if not plan.tune or n_held < FEWEST_VALIDATION_IDENTITIES:
        return nobody
    rng = np.random.default_rng([plan.seed, 1])
    held_out = np.isin(labels, rng.permutation(identities)[:n_held])
    if min(held_out.sum(), (~held_out).sum()) < plan.fewest_points:
        return nobody
    return held_out
