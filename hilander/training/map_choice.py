"""The choice of a linear map of the embeddings, validated on identities it was not learned from.

A map is a whitening or a learned metric. It is used only if it improves the k-NN graph of
validation identities. Where there are no labels, clusters take the place of identities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score

from hilander.arrays.rows import BoolArray, FloatArray, IntArray, sort_by_group, unit_rows
from hilander.embeddings.preparation import Preparation
from hilander.embeddings.whitening import whiten_within
from hilander.engines.threads import Workers, open_workers
from hilander.knn.search import build_knn_graph
from hilander.learning.device import one_thread
from hilander.synthetic.episodes import Episode, resample_identities
from hilander.synthetic.identity_bootstrap import FEWEST_SOURCES
from hilander.training.metric import find_principal_axes, learn_metric

Learn = Callable[[FloatArray, IntArray], FloatArray]  # (features, labels) -> transform
Measure = Callable[[Episode, int], float]  # (episode, k) -> score of its k-NN graph

# Multiples of the mean variance within identities, added to each direction's variance: from
# cautious to strong.
RIDGES = (3.0, 1.0, 0.3)
# The ridge for whiten=True: the middle one, since nothing is measured.
FORCED_RIDGE = 1.0
# Average precision that a map has to gain: chance gains .006 with twenty identities.
LEAST_GAIN = 0.007
# Likewise, for a whitening that is scored by `rank_found_edges`.
_LEAST_RANKING_GAIN = 0.01
# Most features of an embedding that is whitened: with more, the eigenvectors take minutes.
MOST_FEATURES = 2048
# Points of the validation identities; bounds the time of their k-NN graphs.
_MOST_VALIDATION_POINTS = 3_000
# Points that a map is learned from; bounds the time.
_MOST_TRAINING_POINTS = 50_000
# Splits of identities into training and validation; the gain of a map is the mean over them.
_N_SPLITS = 4
# Share of the identities that maps are validated on.
_VALIDATION_SHARE = 0.25
# Halvings of the identities for `choose_whitening`; the gain is the mean over them. The first few
# are enough where their mean gain is far from the least gain: below half of it or above twice.
_N_HALVINGS, _FEW_HALVINGS = 8, 2
# Fewest points of the largest training identity: the scatter within it has to be measured.
_FEWEST_MEMBERS = 3
# Steps of the bisection in `weaken_map`: the share is then exact to 1/64.
_BISECTIONS = 6


@dataclass(frozen=True, eq=False)
class ChosenMap:
    """A linear map, and a weaker one for the points that it was learned from.

    Parameters
    ----------
    transform : ndarray of shape (dim, dim), float32
    training_transform : ndarray of shape (dim, dim), float32
        A map fits its training identities better than new ones. With this weaker map the training
        identities are about as hard to separate as new identities are with `transform`.
    is_metric : bool
        Whether it is a learned metric; else a whitening.
    """

    transform: FloatArray
    training_transform: FloatArray
    is_metric: bool = False


@dataclass(frozen=True, eq=False)
class IdentitySplit:
    """Some identities to learn a map from, and others to validate it on.

    Parameters
    ----------
    training, validation : Episode
    """

    training: Episode
    validation: Episode

    def is_usable(self, k: int) -> bool:
        """Whether both sides have enough identities and points."""
        sizes = np.bincount(self.training.labels, minlength=1)
        if np.count_nonzero(sizes) < FEWEST_SOURCES or sizes.max() < _FEWEST_MEMBERS:
            return False
        labels = self.validation.labels
        return len(np.unique(labels)) >= FEWEST_SOURCES and len(labels) > k


def choose_whitening(
    features: FloatArray,
    labels: IntArray,
    k: int,
    seed: int,
    *,
    ridges: Sequence[float] = RIDGES,
    least_gain: float = _LEAST_RANKING_GAIN,
) -> float | None:
    """The ridge with which whitening helps clusters that it was not learned from, or None.

    One half of the clusters trains the whitening, the other half validates it, for two halvings,
    and for more where these are not clear. The score is `rank_found_edges`.
    """
    whitenings = [_whiten_by(ridge) for ridge in ridges]
    gains = np.zeros((0, len(ridges)))
    with open_workers() as workers:
        for numbers in (range(_FEW_HALVINGS), range(_FEW_HALVINGS, _N_HALVINGS)):
            splits = [_halve_identities(features, labels, seed, number) for number in numbers]
            if not all(split.is_usable(k) for split in splits):
                return None
            found = list_gains(splits, whitenings, k, rank_found_edges, workers)
            gains = np.concatenate([gains, found])
            if not least_gain / 2 <= gains.mean(axis=0).max() <= 2 * least_gain:
                break
    mean = gains.mean(axis=0)
    return ridges[int(mean.argmax())] if mean.max() > least_gain else None


def choose_map(features: FloatArray, labels: IntArray, k: int, seed: int) -> ChosenMap | None:
    """The map that helps identities it was not learned from most.

    Three quarters of the identities train each map, the others validate it by `rank_all_edges`,
    for four splits.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), of unit length
    labels : ndarray of shape (n_points,), ints from 0
    k : int
    seed : int

    Returns
    -------
    chosen : ChosenMap, or None if no map helps or there are too few identities to validate one
    """
    splits = split_identities(features, labels, k, seed)
    if not splits:
        return None
    dim = features.shape[1]
    whitenings = [_whiten_by(ridge) for ridge in (RIDGES if dim <= MOST_FEATURES else ())]
    # One thread for each product: the result must not depend on the number of threads.
    with open_workers() as workers, one_thread():
        metric: Learn = partial(learn_metric, seed=seed, basis=find_principal_axes(features))
        maps = [*whitenings, metric]
        gains = measure_gains(splits, maps, k, rank_all_edges, workers)
        best = int(gains.argmax())
        if gains[best] <= LEAST_GAIN:
            return None
        transform = _learn_from_all(maps[best], features, labels, seed)
        weaker = weaken_map(transform, gains[best], _validation_sets(splits), k, workers)
    return ChosenMap(transform, weaker, is_metric=maps[best] is metric)


def force_whitening(
    preparation: Preparation, points: FloatArray, labels: IntArray, k: int, seed: int
) -> Preparation:
    """The preparation with a whitening, whether or not it helps.

    With enough identities to measure its gain, training points get the weaker map of `weaken_map`.

    Parameters
    ----------
    preparation : Preparation without a map
    points : ndarray of shape (n_points, dim)
        Embeddings before preparation.
    labels : ndarray of shape (n_points,), ints from 0
    k, seed : int
    """
    features = preparation.apply(points)
    whiten = _whiten_by(FORCED_RIDGE)
    splits = split_identities(features, labels, k, seed)
    with open_workers() as workers, one_thread():
        transform = weaker = whiten(features, labels)
        if splits:
            gain = max(float(measure_gains(splits, [whiten], k, rank_all_edges, workers)[0]), 0.0)
            weaker = weaken_map(transform, gain, _validation_sets(splits), k, workers)
    return replace(preparation, **vars(ChosenMap(transform, weaker)))


def can_validate_maps(labels: IntArray) -> bool:
    """Whether there are enough identities to learn a map from some and validate it on others."""
    return len(np.unique(labels)) >= 2 * FEWEST_SOURCES


def split_identities(
    features: FloatArray, labels: IntArray, k: int, seed: int
) -> list[IdentitySplit]:
    """Random splits of the identities; an empty list if there are too few.

    Large identities are sub-sampled. If there are too many identities, only some are used.
    """
    identities = np.unique(labels)
    by_share = int((1 - _VALIDATION_SHARE) * len(identities))
    n_training = min(by_share, len(identities) - FEWEST_SOURCES)
    if n_training < FEWEST_SOURCES:
        return []
    splits = []
    for number in range(_N_SPLITS):
        rng = np.random.default_rng([seed, 4, number])
        order = rng.permutation(identities)
        place = _place_within(labels, rng)
        sides = (
            _sample_identities(labels, place, order[:n_training], _MOST_TRAINING_POINTS),
            _sample_identities(labels, place, order[n_training:], _MOST_VALIDATION_POINTS),
        )
        splits.append(IdentitySplit(*(Episode(features[one], labels[one]) for one in sides)))
    return splits if all(split.is_usable(k) for split in splits) else []


def _halve_identities(
    features: FloatArray, labels: IntArray, seed: int, number: int
) -> IdentitySplit:
    """A random halving of the identities; the validation half is sub-sampled."""
    identities = np.unique(labels)
    rng = np.random.default_rng([seed, 4, number])
    first = np.isin(labels, rng.permutation(identities)[: len(identities) // 2])
    others = Episode(features[~first], labels[~first])
    validation = resample_identities(others, "all", _MOST_VALIDATION_POINTS, rng)
    return IdentitySplit(Episode(features[first], labels[first]), validation)


def _place_within(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """A random rank of each point among those of its identity, shape (n_points,), from 0."""
    order = rng.permutation(len(labels))
    grouped, starts = sort_by_group(labels[order], int(labels.max()) + 1)
    place = np.empty(len(labels), dtype=np.int64)
    place[order[grouped]] = np.arange(len(labels)) - np.repeat(starts[:-1], np.diff(starts))
    return place


def _sample_identities(
    labels: IntArray, place: IntArray, identities: IntArray, most_points: int
) -> BoolArray:
    """Mark at most `most_points` points of these identities, shape (n_points,).

    Large identities are cut, so that at least `2 * FEWEST_SOURCES` of them fit.

    Parameters
    ----------
    labels, place : ndarray of shape (n_points,)
    identities : ndarray
        Earlier ones are taken first.
    most_points : int
    """
    allowed = place < most_points // (2 * FEWEST_SOURCES)
    n_of = np.bincount(labels[allowed], minlength=int(labels.max()) + 1)
    taken = identities[np.cumsum(n_of[identities]) <= most_points]
    return allowed & np.isin(labels, taken)


def _validation_sets(splits: Sequence[IdentitySplit]) -> list[Episode]:
    return [split.validation for split in splits]


def _whiten_by(ridge: float) -> Learn:
    return partial(whiten_within, ridge=ridge)


def _learn_from_all(learn: Learn, features: FloatArray, labels: IntArray, seed: int) -> FloatArray:
    """The map of all identities, from as many points as the maps that were validated."""
    rng = np.random.default_rng([seed, 4])
    order = rng.permutation(np.unique(labels))
    chosen = _sample_identities(labels, _place_within(labels, rng), order, _MOST_TRAINING_POINTS)
    return learn(features[chosen], labels[chosen])


def measure_gains(
    splits: Sequence[IdentitySplit],
    maps: Sequence[Learn],
    k: int,
    measure: Measure,
    workers: Workers,
) -> npt.NDArray[np.float64]:
    """Mean gain of each map on the validation identities, shape (n_maps,)."""
    return np.asarray(list_gains(splits, maps, k, measure, workers).mean(axis=0))


def list_gains(
    splits: Sequence[IdentitySplit],
    maps: Sequence[Learn],
    k: int,
    measure: Measure,
    workers: Workers,
) -> npt.NDArray[np.float64]:
    """Gain of each map on the validation identities of each split, shape (n_splits, n_maps)."""

    def validate(split: IdentitySplit) -> list[float]:
        plain = measure(split.validation, k)
        known = split.training
        transforms = (learn(known.features, known.labels) for learn in maps)
        mapped = (apply_map(split.validation, transform) for transform in transforms)
        return [measure(one, k) - plain for one in mapped]

    gains: npt.NDArray[np.float64] = np.array(workers.map(validate, splits))
    return gains


def weaken_map(
    transform: FloatArray, gain: float, training: Sequence[Episode], k: int, workers: Workers
) -> FloatArray:
    """The map, interpolated towards the identity matrix to lower its gain on its own training set.

    The goal is half-way between the map's gain on its training identities and `gain`. It is not
    `gain` itself, because the maps that were validated had fewer training identities.

    Parameters
    ----------
    transform : ndarray of shape (dim, dim)
    gain : float
        Gain on validation identities.
    training : sequence of Episode
        Points of identities that the map was learned from.
    k : int
    workers : Workers

    Returns
    -------
    weaker : ndarray of shape (dim, dim), float32
    """
    mapped = [one.features @ transform for one in training]

    def measure(share: float) -> float:
        def measure_one(number: int) -> float:
            plain = training[number].features
            moved = unit_rows(plain + np.float32(share) * (mapped[number] - plain))
            return rank_all_edges(replace(training[number], features=moved), k)

        return float(np.mean(workers.map(measure_one, range(len(training)))))

    low, high = 0.0, 1.0
    plain, full = measure(low), measure(high)
    if full - plain <= gain:
        return transform
    goal = (plain + gain + full) / 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if measure(middle) > goal else (middle, high)
    no_change = np.eye(len(transform), dtype=np.float32)
    return no_change + np.float32(low) * (transform - no_change)


def apply_map(episode: Episode, transform: FloatArray) -> Episode:
    """The episode with its points mapped and brought to unit length."""
    return replace(episode, features=unit_rows(episode.features @ transform))


def rank_found_edges(episode: Episode, k: int) -> float:
    """Average precision of the k-NN edges ranked by affinity, in [0, 1].

    An edge within an identity is a positive.
    """
    return _rank_edges(episode, k)[0]


def rank_all_edges(episode: Episode, k: int) -> float:
    """Average precision as in `rank_found_edges`, with missing edges ranked last.

    A point of an identity of m points could have min(m - 1, k) edges within it.
    """
    precision, n_found = _rank_edges(episode, k)
    size = np.bincount(episode.labels)
    n_possible = int((size * np.clip(size - 1, 0, k)).sum())
    return precision * n_found / n_possible if n_possible else precision


def _rank_edges(episode: Episode, k: int) -> tuple[float, int]:
    """Average precision of the edges by affinity, and the number of edges within identities."""
    graph = build_knn_graph(episode.features, k)
    same = episode.labels[graph.neighbours] == episode.labels[:, None]
    n_same = int(same.sum())
    if n_same in (0, same.size):
        return float(n_same > 0), n_same
    return float(average_precision_score(same.ravel(), graph.affinity.ravel())), n_same
