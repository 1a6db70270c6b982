"""Tuning: the same budget and the same objective for every method, on the training split alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival, noise_to_singletons
from hilander.errors import LabelError
from hilander.graph.knn_graph import KnnGraph
from hilander.knn.search import build_knn_graph

BUDGET = 24
SHARED_K = 80
HELD_OUT_SHARE = 0.2
FEWEST_HELD_OUT = 3

Score = Callable[[IntArray, IntArray], float]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Tuned:
    """What tuning chose.

    Parameters
    ----------
    params : dict
    objective : float
        Mean of pairwise and BCubed F there; NaN when there was nothing to tune.
    tried : list of dict
        Every setting with its objective.
    seconds : float
    """

    params: dict[str, Any]
    objective: float
    tried: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def make_graph(features: FloatArray, k: int = SHARED_K) -> KnnGraph:
    """The k-NN graph that all methods share; of fewer neighbours where there are fewer points."""
    return build_knn_graph(features, min(k, len(features) - 1), recall=1.0)


def tune_method(method: Rival, train: Problem, labels: IntArray, tell: Tell | None = None) -> Tuned:
    """Choose a method's settings by the mean of pairwise and BCubed F.

    A method that learns from labels is fitted on 80 % of the identities; then it clusters all
    training points and is judged from the points of the others, which so have as many strangers
    around them as they will have in use. One that does not learn is judged from all points.

    First every combination of the axes is tried, then, around the best, values between those
    tried, until `BUDGET` settings were seen.

    Parameters
    ----------
    method : Method
    train : Problem
    labels : ndarray of shape (n_points,)
        Identities of the training points.
    tell : callable, optional
        Is told of each try.

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
    for number, params in enumerate(method.settings()[:BUDGET], 1):
        trial.attempt(params)
        if tell:
            tell(f"setting {number} of {BUDGET}")
    while len(trial.tried) < BUDGET and (between := next_between(method.axes, trial.scores())):
        trial.attempt(between)
        if tell:
            tell(f"setting {len(trial.tried)} of {BUDGET}")
    best = take_middle(trial.scores())
    return Tuned(
        best,
        trial.score_of(best),
        [{**params, "objective": value} for params, value in trial.tried],
        perf_counter() - started,
    )


def take_middle(scores: list[tuple[dict[str, Any], float]]) -> dict[str, Any]:
    """The setting of the best objective; of equally good ones the middle."""
    highest = max(value for _, value in scores)
    winners = [params for params, value in scores if value == highest]
    return dict(winners[len(winners) // 2])


def next_between(
    axes: tuple[Axis, ...], scores: list[tuple[dict[str, Any], float]]
) -> dict[str, Any] | None:
    """The next setting worth trying: half-way from the best to the values tried beside it.

    Of the gaps beside the best value of each refinable axis the relatively widest is halved; whole
    numbers stay whole. None if no gap is left.
    """
    best = take_middle(scores)
    widest: tuple[float, dict[str, Any]] | None = None
    for axis in axes:
        if not axis.refine:
            continue
        tried = sorted(
            params[axis.name]
            for params, _ in scores
            if all(params[other.name] == best[other.name] for other in axes if other is not axis)
        )
        at, span = tried.index(best[axis.name]), abs(tried[-1] - tried[0]) or 1
        for beside in (at - 1, at + 1):
            if not 0 <= beside < len(tried):
                continue
            value = (tried[at] + tried[beside]) / 2
            if isinstance(axis.values[0], int):
                value = round(value)
            gap = abs(tried[beside] - tried[at]) / span
            if value not in tried and gap > 1e-3 and (widest is None or gap > widest[0]):
                widest = gap, {**best, axis.name: value}
    return None if widest is None else widest[1]


class _Trial:
    """Tries settings, keeping what several settings share."""

    def __init__(self, method: Rival, train: Problem, labels: IntArray) -> None:
        self.method, self.train = method, train
        self.labels: IntArray = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        self.seen_from: BoolArray | None = None
        self.learn: tuple[Problem, IntArray] | None = None
        if method.needs_labels:
            held = hold_out(self.labels, train.seed)
            # With too few identities to hold any out it is judged on what it learnt from.
            self.seen_from = held if held.any() else None
            self.learn = _part(train, self.labels, ~held)
        self.tried: list[tuple[dict[str, Any], float]] = []
        self._fitted: dict[Any, Any] = {}
        self._started: dict[Any, Any] = {}

    def attempt(self, params: dict[str, Any]) -> None:
        state = self._start(params)
        found = noise_to_singletons(self.method.cluster(self.train, state, params))
        self.tried.append((params, mean_f_seen_from(self.labels, found, self.seen_from)))

    def scores(self) -> list[tuple[dict[str, Any], float]]:
        return self.tried

    def score_of(self, params: Params) -> float:
        return next(value for tried, value in self.tried if tried == params)

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
    """Mark the points of a fifth of the identities, shape (n_points,); none if they are too few."""
    identities = np.unique(labels)
    n_held = round(HELD_OUT_SHARE * len(identities))
    if n_held < FEWEST_HELD_OUT:
        return np.zeros(len(labels), dtype=bool)
    rng = np.random.default_rng([seed, 1])
    return np.isin(labels, rng.permutation(identities)[:n_held])


def mean_f_seen_from(true: IntArray, found: IntArray, seen: BoolArray | None = None) -> float:
    """Mean of pairwise and BCubed F, seen from some points with all others around them.

    BCubed averages over those points, and a pair counts once for each end that is among them; from
    all points these are the usual scores.

    Parameters
    ----------
    true, found : ndarray of shape (n_points,), ints from 0
    seen : ndarray of shape (n_points,), bool, optional
        Points to see from; all by default.

    Returns
    -------
    f : float, in [0, 1]
    """
    cell, counts = np.unique(
        true * (found.max() + 1) + found, return_inverse=True, return_counts=True
    )[1:]
    rows = slice(None) if seen is None else seen
    together = counts[cell][rows].astype(np.float64)
    in_identity = np.bincount(true)[true][rows]
    in_cluster = np.bincount(found)[found][rows]
    precision, recall = (together / in_cluster).mean(), (together / in_identity).mean()
    bcubed = 2 * precision * recall / (precision + recall)
    pairs = (in_cluster - 1).sum() + (in_identity - 1).sum()
    pairwise = 2 * (together - 1).sum() / pairs if pairs else 1.0
    return float((bcubed + pairwise) / 2)


def _part(train: Problem, labels: IntArray, rows: BoolArray) -> tuple[Problem, IntArray]:
    features = np.ascontiguousarray(train.features[rows])
    numbers: IntArray = np.unique(labels[rows], return_inverse=True)[1].astype(np.int64)
    return Problem(features, make_graph(features, train.graph.k), train.seed), numbers
