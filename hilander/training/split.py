"""Identities that are held out of training, to choose settings on."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from hilander.arrays.rows import BoolArray, IntArray
from hilander.errors import SettingError

# Identities to choose settings on. With fewer, one confused pair decides the choice.
FEWEST_VALIDATION_IDENTITIES = 3


class SplitPlan(Protocol):
    """The part of a plan that decides which identities are held out."""

    @property
    def val_fraction(self) -> float:
        """Share of the identities that are held out."""

    @property
    def tune(self) -> tuple[str, ...]:
        """Names of the settings that are chosen on them."""

    @property
    def seed(self) -> int:
        """Seed of the choice of identities."""

    @property
    def fewest_points(self) -> int:
        """Points needed on either side of the split."""


def check_split(plan: SplitPlan, tunable: Collection[str]) -> None:
    """Refuse a plan with an impossible share or an unknown setting to tune."""
    if not 0 <= plan.val_fraction < 1:
        raise SettingError(f"val_fraction={plan.val_fraction!r} must be in [0, 1)")
    if unknown := set(plan.tune) - set(tunable):
        raise SettingError(
            f"tune={sorted(unknown)} is not known; choose from {tuple(tunable)}, or none"
        )


def as_seed(seed: Any) -> int:
    """A seed as a plain int: a numpy integer cannot be written as JSON."""
    if not isinstance(seed, Integral) or seed < 0:
        raise SettingError(f"seed={seed!r} must be a whole number >= 0")
    return int(seed)


def choose_held_out(labels: IntArray, plan: SplitPlan) -> BoolArray:
    """Mark the points of the validation identities.

    Returns
    -------
    held_out : ndarray of shape (n_points,), bool
        All False if nothing is tuned, or if either side would have too few identities or points
        to build a graph.
    """
    none = np.zeros(len(labels), dtype=bool)
    identities = np.unique(labels)
    n_held = round(plan.val_fraction * len(identities))
    if not plan.tune or n_held < FEWEST_VALIDATION_IDENTITIES:
        return none
    rng = np.random.default_rng([plan.seed, 1])
    held_out = np.isin(labels, rng.permutation(identities)[:n_held])
    if min(held_out.sum(), (~held_out).sum()) < plan.fewest_points:
        return none
    return held_out
