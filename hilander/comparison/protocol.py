"""Tuning: the same number of tries and the same objective for every method.

Settings are chosen on the training set alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.comparison.objective import mean_f
from hilander.comparison.rival import Axis, Params, Problem, Rival, noise_to_singletons
from hilander.errors import LabelError
from hilander.graph.knn_graph import KnnGraph
from hilander.knn.search import build_knn_graph

BUDGET = 24  # settings tried for each method; the largest grid, that of DBSCAN, has so many
SHARED_K = 80  # neighbours in the shared graph; a ball of DBSCAN reaches no further
HELD_OUT_SHARE = 0.2  # share of the identities; the same as the default of `HiLander.val_fraction`
MIN_HELD_OUT = 3  # identities; the score of fewer depends on chance
MIN_GAP = 1e-3  # share of the range of an axis; smaller gaps are not halved

Tried = list[tuple[dict[str, Any], float]]


@dataclass(frozen=True)
class Tuned:
    """The settings that tuning chose.

    Parameters
    ----------
    params : dict
    objective : float
        Mean of pairwise and BCubed F with these settings; NaN for a method without settings.
    tried : list of dict
        Every setting with its objective.
    seconds : float
    """

    params: dict[str, Any]
    objective: float
    tried: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def make_graph(features: FloatArray, k: int = SHARED_K) -> KnnGraph:
    """The k-NN graph that all methods share; k is lower for a set of k points or fewer."""
    return build_knn_graph(features, min(k, len(features) - 1), recall=1.0)


def tune_method(
    method: Rival,
    train: Problem,
    labels: IntArray,
    report: Callable[[str], None] = lambda text: None,
) -> Tuned:
    """Choose the settings of a method by the mean of pairwise and BCubed F.

    A method that learns from labels is trained on 80 % of the identities. It then clusters all
    training points, and the score is taken over the points of the other identities. So these points
    have as many points of other identities around them as in use. A method that does not learn is
    scored over all points.

    First every combination of the axes is tried. Then values between those tried are added next to
    the best one, until `BUDGET` settings were tried.

    Parameters
    ----------
    method : Rival
    train : Problem
    labels : ndarray of shape (n_points,)
        Identities of the training points.
    report : callable
        Called with a short text after each try.

    Returns
    -------
    tuned : Tuned
    """
    if len(labels) != len(train.features):
        raise LabelError(
            f"got {len(labels)} labels for {len(train.features)} training points, expected one each"
        )
    if not method.axes:
        return Tuned({}, float("nan"))
    started = perf_counter()
    trial = _Trial(method, train, labels)
    for params in method.settings()[:BUDGET]:
        trial.attempt(params)
        report(f"setting {len(trial.tried)} of {BUDGET}")
    while len(trial.tried) < BUDGET and (between := next_between(method.axes, trial.tried)):
        trial.attempt(between)
        report(f"setting {len(trial.tried)} of {BUDGET}")
    best = take_middle(trial.tried)
    return Tuned(
        best,
        next(value for params, value in trial.tried if params == best),
        [{**params, "objective": value} for params, value in trial.tried],
        perf_counter() - started,
    )


def take_middle(tried: Tried) -> dict[str, Any]:
    """The setting with the best objective; of several equally good ones, the middle one."""
    highest = max(value for _, value in tried)
    winners = [params for params, value in tried if value == highest]
    return dict(winners[len(winners) // 2])


def next_between(axes: tuple[Axis, ...], tried: Tried) -> dict[str, Any] | None:
    """The next setting to try: halfway between the best value of an axis and one tried next to it.

    Of the gaps next to the best values of all refinable axes, the relatively widest is halved.
    Whole numbers stay whole. None if no gap is left.
    """
    best = take_middle(tried)
    widest: tuple[float, dict[str, Any]] | None = None
    for axis in axes:
        if not axis.refine:
            continue
        others = [other.name for other in axes if other is not axis]
        values = sorted(
            params[axis.name]
            for params, _ in tried
            if all(params[name] == best[name] for name in others)
        )
        for gap, value in _halve_gaps(axis, values, best[axis.name]):
            if widest is None or gap > widest[0]:
                widest = gap, {**best, axis.name: value}
    return None if widest is None else widest[1]


def _halve_gaps(axis: Axis, values: list[Any], best: Any) -> list[tuple[float, Any]]:
    """Width and midpoint of the gaps on both sides of the best value, if they can be halved."""
    at, span = values.index(best), abs(values[-1] - values[0]) or 1
    halved = []
    for neighbour in (at - 1, at + 1):
        if not 0 <= neighbour < len(values):
            continue
        middle = (values[at] + values[neighbour]) / 2
        if isinstance(axis.values[0], int):
            middle = round(middle)
        gap = abs(values[neighbour] - values[at]) / span
        if middle not in values and gap > MIN_GAP:
            halved.append((gap, middle))
    return halved


class _Trial:
    """Tries settings, and keeps what several settings share."""

    def __init__(self, method: Rival, train: Problem, labels: IntArray) -> None:
        self.method, self.train = method, train
        self.labels: IntArray = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        self.scored: BoolArray | None = None  # rows to score; None for all
        self.learn: tuple[Problem, IntArray] | None = None
        if method.needs_labels:
            held = hold_out(self.labels, train.seed)
            # With too few identities to hold any out, the score is over the training points.
            self.scored = held if held.any() else None
            self.learn = _part(train, self.labels, ~held)
        self.tried: Tried = []
        self._fitted: dict[Any, Any] = {}
        self._started: dict[Any, Any] = {}

    def attempt(self, params: dict[str, Any]) -> None:
        state = self._start(params)
        found = noise_to_singletons(self.method.cluster(self.train, state, params))
        self.tried.append((params, mean_f(self.labels, found, self.scored)))

    def _fit(self, params: Params) -> Any:
        if self.learn is None:
            return None
        key = tuple(params[name] for name in self.method.fitted_by)
        if key not in self._fitted:
            self._fitted[key] = self.method.fit(*self.learn, params)
        return self._fitted[key]

    def _start(self, params: Params) -> Any:
        names = (*self.method.fitted_by, *self.method.started_by)
        key = tuple(params[name] for name in names)
        if key not in self._started:
            self._started = {key: self.method.start(self.train, self._fit(params), params)}
        return self._started[key]


def hold_out(labels: IntArray, seed: int = 0) -> BoolArray:
    """Mark the points of a fifth of the identities, shape (n_points,); none if that is too few."""
    identities = np.unique(labels)
    n_held = round(HELD_OUT_SHARE * len(identities))
    if n_held < MIN_HELD_OUT:
        return np.zeros(len(labels), dtype=bool)
    rng = np.random.default_rng([seed, 1])
    return np.isin(labels, rng.permutation(identities)[:n_held])


def _part(train: Problem, labels: IntArray, rows: BoolArray) -> tuple[Problem, IntArray]:
    """Some rows of the training set, with a graph of their own and identities from 0."""
    features = np.ascontiguousarray(train.features[rows])
    numbers: IntArray = np.unique(labels[rows], return_inverse=True)[1].astype(np.int64)
    return Problem(features, make_graph(features, train.graph.k), train.seed), numbers
