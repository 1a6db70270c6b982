"""Calibration of probabilities: of the links with linkage 0.8, do 80 % join one identity?

A reliability curve bins the predicted linkage and compares the mean of each bin with the observed
share. The mean distance of the two, weighted by the links of each bin, is the expected calibration
error (ECE).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import SettingError
from hilander.metrics.canvas import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    VERMILION,
    check_picture_path,
    dress_axes,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_BINS = 10  # bins of equal width over [0, 1], as is common for the ECE
_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE)


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predicted probability and observed share of each bin.

    Parameters
    ----------
    predicted, observed : ndarray of shape (n_bins,), float64, in [0, 1]
        Mean prediction and share of positive outcomes of each bin; NaN for an empty bin. Bins have
        equal widths and cover [0, 1].
    count : ndarray of shape (n_bins,), int64
        Predictions of each bin.
    brier : float, in [0, 1]
        Mean squared difference of predictions and outcomes.
    """

    predicted: npt.NDArray[np.float64]
    observed: npt.NDArray[np.float64]
    count: IntArray
    brier: float

    @property
    def ece(self) -> float:
        """Expected calibration error, in [0, 1]."""
        share = self.count / self.count.sum()
        return float(np.nansum(share * np.abs(self.predicted - self.observed)))

    @property
    def bias(self) -> float:
        """Mean prediction minus the observed share; above 0 the predictions are too high."""
        share = self.count / self.count.sum()
        return float(np.nansum(share * (self.predicted - self.observed)))

    def to_dict(self) -> dict[str, Any]:
        """All values as plain numbers for JSON; null for an empty bin."""

        def plain(values: npt.NDArray[np.float64]) -> list[float | None]:
            return [None if np.isnan(one) else round(float(one), 5) for one in values]

        return {
            "predicted": plain(self.predicted),
            "observed": plain(self.observed),
            "count": self.count.tolist(),
            "ece": round(self.ece, 5),
            "bias": round(self.bias, 5),
            "brier": round(self.brier, 5),
        }


def measure_reliability(
    probability: npt.ArrayLike, outcome: npt.ArrayLike, n_bins: int = N_BINS
) -> Reliability:
    """Compare probabilities with outcomes.

    Parameters
    ----------
    probability : array-like, in [0, 1]
        For example the linkage of edges, shape (n_nodes, k).
    outcome : array-like of the same shape, bool
        For example whether both ends of an edge have one identity.
    n_bins : int

    Returns
    -------
    reliability : Reliability
    """
    predicted = np.asarray(probability, dtype=np.float64).ravel()
    happened = np.asarray(outcome).astype(np.float64).ravel()
    if len(predicted) != len(happened) or not len(predicted):
        raise SettingError(
            f"got {len(predicted)} probabilities and {len(happened)} outcomes, expected one "
            "outcome for each probability"
        )
    if not (predicted.min() >= 0 and predicted.max() <= 1):
        raise SettingError(
            f"probabilities reach from {predicted.min():g} to {predicted.max():g}, expected 0 to 1"
        )
    if n_bins < 1:
        raise SettingError(f"n_bins={n_bins!r} must be a whole number >= 1")
    bins = np.minimum((predicted * n_bins).astype(np.int64), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    some = np.where(count > 0, count, np.nan)
    return Reliability(
        np.bincount(bins, predicted, n_bins) / some,
        np.bincount(bins, happened, n_bins) / some,
        count,
        float(((predicted - happened) ** 2).mean()),
    )


def same_identity(neighbours: IntArray, labels: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether both ends of each edge have one label, shape (n_points, k)."""
    codes = np.unique(np.asarray(labels), return_inverse=True)[1]
    same: npt.NDArray[np.bool_] = codes[neighbours] == codes[:, None]
    return same


@dataclass(frozen=True)
class Scaling:
    """A correction of probabilities: ``sigmoid(slope * logit(p) + offset)`` (Platt scaling).

    Parameters
    ----------
    slope : float, above 0
        Below 1 it moves probabilities towards 0.5. The temperature is 1 / slope.
    offset : float
        Above 0 it raises all probabilities.
    """

    slope: float = 1.0
    offset: float = 0.0

    def apply(self, probability: FloatArray, least: float = 1e-6) -> FloatArray:
        """The corrected probabilities, of the same shape."""
        kept = np.clip(np.asarray(probability, dtype=np.float64), least, 1 - least)
        logit = self.slope * np.log(kept / (1 - kept)) + self.offset
        corrected: FloatArray = (1 / (1 + np.exp(-logit))).astype(np.float32)
        return corrected


def learn_scaling(probability: npt.ArrayLike, outcome: npt.ArrayLike) -> Scaling:
    """The correction that maximises the likelihood of the outcomes.

    Parameters
    ----------
    probability, outcome
        As for `measure_reliability`, of identities that the model was not trained on.

    Returns
    -------
    scaling : Scaling
        Without effect if all outcomes are the same.
    """
    from scipy.optimize import minimize

    kept = np.clip(np.asarray(probability, dtype=np.float64).ravel(), 1e-6, 1 - 1e-6)
    happened = np.asarray(outcome).astype(np.float64).ravel()
    if len(kept) != len(happened):
        raise SettingError(
            f"got {len(kept)} probabilities and {len(happened)} outcomes, expected equal numbers"
        )
    if not 0 < happened.mean() < 1:
        return Scaling()
    logit = np.log(kept / (1 - kept))

    def loss(values: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        slope = np.exp(values[0])
        score = slope * logit + values[1]
        error = 1 / (1 + np.exp(-score)) - happened
        cost = np.logaddexp(0, score) - happened * score
        return float(cost.mean()), np.array([(error * logit).mean() * slope, error.mean()])

    found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-3, 3), (-10, 10)])
    return Scaling(float(np.exp(found.x[0])), float(found.x[1]))


def plot_reliability(curves: Mapping[str, Reliability], path: str | os.PathLike[str]) -> Path:
    """Write the picture of :func:`draw_reliability` to a file.

    Parameters
    ----------
    curves : mapping of str to Reliability
    path : path-like
        Ends in .png, .svg or .pdf.

    Returns
    -------
    path : Path
        The file written.
    """
    check_picture_path(path)
    return save_figure(draw_reliability(curves), path)


def draw_reliability(curves: Mapping[str, Reliability]) -> Figure:
    """Draw observed shares against predictions, and how many predictions each bin holds.

    Parameters
    ----------
    curves : mapping of str to Reliability
        One curve for each name.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    if not curves:
        raise SettingError(
            "got no curves, expected at least one; make one with measure_reliability"
        )
    figure = new_figure(6.0, 6.4)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    upper.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=":", label="perfectly calibrated")
    for number, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        filled = curve.count > 0
        upper.plot(
            curve.predicted[filled], curve.observed[filled], "o-", color=colour, linewidth=2,
            label=f"{name} (ECE {curve.ece:.3f})",
        )  # fmt: skip
        share = curve.count / curve.count.sum()
        lower.plot(curve.predicted[filled], share[filled], "o-", color=colour, linewidth=1.5)
    upper.set_ylim(-0.03, 1.03)
    dress_axes(upper, "share of one identity")
    dress_axes(lower, "share of links")
    lower.set_xlabel("predicted linkage")
    upper.legend(frameon=False)
    return figure
