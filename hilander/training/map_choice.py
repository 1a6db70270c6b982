"""Whether to map embeddings linearly: tried on identities, or clusters, it was not learnt on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
Rank = Callable[[Episode, int], float]  # (episode, k) -> how good its graph is
Turn = tuple[Episode, Episode]  # identities that teach, and others that judge
RIDGES = (3.0, 1.0, 0.3)
FORCED_RIDGE = 1.0  # where whitening is asked for
# Below which a map is not worth its risk: chance gives .006 with twenty identities.
LEAST_GAIN = 0.007
_LEAST_RANKED = 0.01  # likewise, of what is asked of a whitening by `rank_edges`
MOST_FEATURES = 2048  # beyond which whitening takes minutes
_MOST_JUDGING, _MOST_TEACHING = 3_000, 50_000  # points
_TURNS, _JUDGING = 4, 0.25  # how often identities judge, and which share of them
_BISECTIONS = 6


@dataclass(frozen=True, eq=False)
class ChosenMap:
    """A linear map, and how to see the identities that it was learnt from.

    Parameters
    ----------
    transform : ndarray of shape (dim, dim), float32
    for_taught : ndarray of shape (dim, dim), float32
        A weaker one. A map does more for identities it was learnt from than for others; by this
        they look as others do by `transform`.
    is_metric : bool
        Whether it is a learned metric; else a whitening.
    """

    transform: FloatArray
    training_transform: FloatArray
    is_metric: bool = False


def choose_whitening(
    features: FloatArray,
    labels: IntArray,
    k: int,
    seed: int,
    *,
    ridges: Sequence[float] = RIDGES,
    least_gain: float = _LEAST_RANKED,
) -> float | None:
    """The ridge with which whitening helps clusters it was not learnt on, or None.

    Half of the clusters teach a whitening, the other half judge it: by how well affinity ranks
    the edges that they have, over two halvings.
    """
    turns = list(_halve(features, labels, seed))
    if not all(_can_judge(turn, k) for turn in turns):
        return None
    with open_workers() as workers:
        gains = try_maps(turns, [_whiten_by(ridge) for ridge in ridges], k, rank_edges, workers)
    return ridges[int(gains.argmax())] if gains.max() > least_gain else None


def choose_map(features: FloatArray, labels: IntArray, k: int, seed: int) -> ChosenMap | None:
    """A map that helps identities it was not learnt on.

    It helps if more edges are found within identities, and ranked before the others. A quarter of
    the identities judges what the others teach, over four turns.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), of unit length
    labels : ndarray of shape (n_points,), ints from 0
    k : int
    seed : int

    Returns
    -------
    chosen : ChosenMap, or None where no map helps or too few identities can say so
    """
    turns = take_turns(features, labels, k, seed)
    if not turns:
        return None
    dim = features.shape[1]
    whitenings = [_whiten_by(ridge) for ridge in (RIDGES if dim <= MOST_FEATURES else ())]
    # One thread for each product: what is learnt shall not depend on how many there are.
    with open_workers() as workers, one_thread():
        metric: Learn = partial(learn_metric, seed=seed, basis=find_principal_axes(features))
        maps = [*whitenings, metric]
        gains = try_maps(turns, maps, k, find_edges, workers)
        best = int(gains.argmax())
        if gains[best] <= LEAST_GAIN:
            return None
        transform = _learn_from_all(maps[best], features, labels, seed)
        weaker = weaken(transform, gains[best], [judges for _, judges in turns], k, workers)
    return ChosenMap(transform, weaker, is_metric=maps[best] is metric)


def force_whitening(
    preparation: Preparation, points: FloatArray, labels: IntArray, k: int, seed: int
) -> Preparation:
    """The preparation with a whitening, whether or not it helps.

    Where there are enough identities to measure it, training points get the weaker map of `weaken`.

    Parameters
    ----------
    preparation : Preparation without a map
    points : ndarray of shape (n_points, dim)
        As they came.
    labels : ndarray of shape (n_points,), ints from 0
    k, seed : int
    """
    features = preparation.apply(points)
    whiten = _whiten_by(FORCED_RIDGE)
    turns = take_turns(features, labels, k, seed)
    with open_workers() as workers, one_thread():
        transform = whiten(features, labels)
        chosen = ChosenMap(transform, transform)
        if turns:
            gain = max(float(try_maps(turns, [whiten], k, find_edges, workers)[0]), 0.0)
            weaker = weaken(transform, gain, [judges for _, judges in turns], k, workers)
            chosen = ChosenMap(transform, weaker)
    return replace(preparation, **vars(chosen))


def take_turns(features: FloatArray, labels: IntArray, k: int, seed: int) -> list[Turn]:
    """Some identities that teach and others that judge, each time others; none if too few can.

    Of large identities some points are taken, of many identities some.
    """
    identities = np.unique(labels)
    n_taught = min(int((1 - _JUDGING) * len(identities)), len(identities) - FEWEST_SOURCES)
    if n_taught < FEWEST_SOURCES:
        return []
    turns = []
    for number in range(_TURNS):
        rng = np.random.default_rng([seed, 4, number])
        order = rng.permutation(identities)
        place = _place_within(labels, rng)
        teach = _take(labels, place, order[:n_taught], _MOST_TEACHING)
        judge = _take(labels, place, order[n_taught:], _MOST_JUDGING)
        known, judges = (Episode(features[some], labels[some]) for some in (teach, judge))
        turns.append((known, judges))
    return turns if all(_can_judge(turn, k) for turn in turns) else []


def _place_within(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """The place of each point among those of its identity, by chance, shape (n_points,)."""
    order = rng.permutation(len(labels))
    grouped, starts = sort_by_group(labels[order], int(labels.max()) + 1)
    place = np.empty(len(labels), dtype=np.int64)
    place[order[grouped]] = np.arange(len(labels)) - np.repeat(starts[:-1], np.diff(starts))
    return place


def _take(labels: IntArray, place: IntArray, some: IntArray, most: int) -> BoolArray:
    """At most so many points of these identities: of large ones some, so that enough have a place.

    Parameters
    ----------
    labels, place : ndarray of shape (n_points,)
    some : ndarray of identities; the first of them go first
    most : int
    """
    for_small_sets = place < most // (2 * FEWEST_SOURCES)
    n_of = np.bincount(labels[for_small_sets], minlength=int(labels.max()) + 1)
    return for_small_sets & np.isin(labels, some[np.cumsum(n_of[some]) <= most])


def _halve(features: FloatArray, labels: IntArray, seed: int) -> Iterator[Turn]:
    """Half of the identities, and some points of the other half; twice."""
    identities = np.unique(labels)
    for number in range(2):
        rng = np.random.default_rng([seed, 4, number])
        taught = np.isin(labels, rng.permutation(identities)[: len(identities) // 2])
        others = Episode(features[~taught], labels[~taught])
        judges = resample_identities(others, "all", _MOST_JUDGING, rng)
        yield Episode(features[taught], labels[taught]), judges


def _can_judge(turn: Turn, k: int) -> bool:
    """Whether some identities are enough to teach, others to judge."""
    known, judges = turn
    sizes = np.bincount(known.labels, minlength=1)
    if np.count_nonzero(sizes) < FEWEST_SOURCES or sizes.max() < 3:
        return False
    return len(np.unique(judges.labels)) >= FEWEST_SOURCES and len(judges.labels) > k


def can_judge_maps(labels: IntArray) -> bool:
    """Whether there are enough identities for some to teach a map and others to judge it."""
    return len(np.unique(labels)) >= 2 * FEWEST_SOURCES


def _whiten_by(ridge: float) -> Learn:
    return partial(whiten_within, ridge=ridge)


def _learn_from_all(learn: Learn, features: FloatArray, labels: IntArray, seed: int) -> FloatArray:
    """The map that all identities teach: of many points no more than taught those that judged."""
    rng = np.random.default_rng([seed, 4])
    order = rng.permutation(np.unique(labels))
    chosen = _take(labels, _place_within(labels, rng), order, _MOST_TEACHING)
    return learn(features[chosen], labels[chosen])


def try_maps(
    turns: Sequence[Turn], maps: Sequence[Learn], k: int, rank: Rank, workers: Workers
) -> npt.NDArray[np.float64]:
    """What each map gains for identities that it was not learnt on, the mean, shape (n_maps,)."""

    def judge(turn: Turn) -> list[float]:
        known, judges = turn
        plain = rank(judges, k)
        transforms = (learn(known.features, known.labels) for learn in maps)
        return [rank(move(judges, transform), k) - plain for transform in transforms]

    gains: npt.NDArray[np.float64] = np.array(workers.map(judge, turns))
    return np.asarray(gains.mean(axis=0))


def weaken(
    transform: FloatArray, gain: float, taught: Sequence[Episode], k: int, workers: Workers
) -> FloatArray:
    """The map, drawn towards no change until it does for those who taught it what it should.

    That is half-way from what it does for them to what others gained, for those others had maps
    that fewer had taught. By bisection.

    Parameters
    ----------
    transform : ndarray of shape (dim, dim)
    gain : float
        Of identities that their maps were not learnt on.
    taught : sequence of Episode
        Of identities that this one was learnt on.
    k : int
    workers : Workers

    Returns
    -------
    weaker : ndarray of shape (dim, dim), float32
    """
    moved = [one.features @ transform for one in taught]

    def measure(share: float) -> float:
        def find(number: int) -> float:
            plain = taught[number].features
            drawn = unit_rows(plain + np.float32(share) * (moved[number] - plain))
            return find_edges(replace(taught[number], features=drawn), k)

        return float(np.mean(workers.map(find, range(len(taught)))))

    low, high = 0.0, 1.0
    plain, full = measure(low), measure(high)
    if full - plain <= gain:
        return transform
    goal = (plain + gain + full) / 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if measure(middle) > goal else (middle, high)
    nothing = np.eye(len(transform), dtype=np.float32)
    return nothing + np.float32(low) * (transform - nothing)


def move(episode: Episode, transform: FloatArray) -> Episode:
    """The episode with its points mapped, of unit length again."""
    return replace(episode, features=unit_rows(episode.features @ transform))


def rank_edges(episode: Episode, k: int) -> float:
    """How well affinity ranks edges within identities before others: average precision."""
    return _rank(episode, k)[0]


def find_edges(episode: Episode, k: int) -> float:
    """How well they are found and ranked: edges within identities that are missing count as last.

    Average precision of all that could be found: those of a point are its k nearest at most.
    """
    precision, n_found = _rank(episode, k)
    size = np.bincount(episode.labels)
    n_possible = int((size * np.clip(size - 1, 0, k)).sum())
    return precision * n_found / n_possible if n_possible else precision


def _rank(episode: Episode, k: int) -> tuple[float, int]:
    """Average precision of the edges by affinity, and how many are within identities."""
    graph = build_knn_graph(episode.features, k)
    same = episode.labels[graph.neighbours] == episode.labels[:, None]
    n_same = int(same.sum())
    if n_same in (0, same.size):
        return float(n_same > 0), n_same
    return float(average_precision_score(same.ravel(), graph.affinity.ravel())), n_same
