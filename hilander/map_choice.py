"""Whether to map embeddings linearly: tried on identities, or clusters, it was not learnt on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score

from hilander.data.arrays import FloatArray, IntArray, unit_rows
from hilander.data.episodes import Episode, resample_identities
from hilander.data.made_up import FEWEST_SOURCES
from hilander.data.whitening import whiten_within
from hilander.graph import build_knn_graph
from hilander.graph.workers import hire_workers
from hilander.model.device import choose_device, one_thread
from hilander.model.metric import learn_metric

Learn = Callable[[FloatArray, IntArray], FloatArray]  # (features, labels) -> transform
Rank = Callable[[Episode, int], float]  # (episode, k) -> how good its graph is
RIDGES = (3.0, 1.0, 0.3)
LEAST_GAIN = 0.01  # below which a map is not worth its risk
_MOST_POINTS = 3000  # that judge
_MOST_TEACHING = 50_000  # points, about
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
    for_taught: FloatArray
    is_metric: bool


def choose_whitening(
    features: FloatArray,
    labels: IntArray,
    k: int,
    seed: int,
    *,
    ridges: Sequence[float] = RIDGES,
    least_gain: float = LEAST_GAIN,
) -> float | None:
    """The ridge with which whitening helps identities it was not learnt on, or None.

    It helps if affinity ranks the edges that they have better; half of the identities judge.
    """
    turns = list(split_identities(features, labels, seed, n_turns=2, judging=0.5))
    if not all(can_judge(*turn, k) for turn in turns):
        return None
    maps: list[Learn] = [partial(whiten_within, ridge=ridge) for ridge in ridges]
    gains = try_maps(turns, maps, k, rank_edges)
    return ridges[int(gains.argmax())] if gains.max() > least_gain else None


def choose_map(
    features: FloatArray, labels: IntArray, k: int, seed: int, device: str = "auto"
) -> ChosenMap | None:
    """A map that helps identities it was not learnt on, or None.

    It helps if more edges are found within identities, and ranked before the others.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), of unit length
    labels : ndarray of shape (n_points,), ints from 0
    k : int
    seed : int
    device : str
    """
    turns = list(split_identities(features, labels, seed, n_turns=_TURNS, judging=_JUDGING))
    if not all(can_judge(*turn, k) for turn in turns):
        return None
    maps: list[Learn] = [partial(whiten_within, ridge=ridge) for ridge in RIDGES]
    maps.append(partial(learn_metric, seed=seed, device=device))
    gains = try_maps(turns, maps, k, find_edges, alone=choose_device(device).type != "cpu")
    best = int(gains.argmax())
    if gains[best] <= LEAST_GAIN:
        return None
    transform = maps[best](features, labels)
    weaker = weaken(transform, gains[best], [unseen for _, unseen in turns], k, find_edges)
    return ChosenMap(transform, weaker, is_metric=best == len(RIDGES))


def split_identities(
    features: FloatArray, labels: IntArray, seed: int, *, n_turns: int, judging: float
) -> Iterator[tuple[Episode, Episode]]:
    """Identities that teach and some points of the others, which judge; each turn others.

    At least as many judge as identities can be bootstrapped from.
    """
    size = np.bincount(labels)
    identities = np.flatnonzero(size)
    n_taught = max(min(int((1 - judging) * len(identities)), len(identities) - FEWEST_SOURCES), 0)

    def take(some: IntArray) -> Episode:
        """All points of these identities, but of the first ones if that is many points."""
        before = np.cumsum(size[some]) - size[some]
        chosen = np.isin(labels, some[before < _MOST_TEACHING])
        return Episode(features[chosen], labels[chosen])

    for turn in range(n_turns):
        rng = np.random.default_rng([seed, 4, turn])
        order = rng.permutation(identities)
        unseen = resample_identities(take(order[n_taught:]), "all", _MOST_POINTS, rng)
        yield take(order[:n_taught]), unseen


def can_judge(known: Episode, unseen: Episode, k: int) -> bool:
    """Whether some identities are enough to teach, others to judge."""
    sizes = np.bincount(known.labels)
    if np.count_nonzero(sizes) < FEWEST_SOURCES or sizes.max() < 3:
        return False
    return len(np.unique(unseen.labels)) >= FEWEST_SOURCES and len(unseen.labels) > k


def can_judge_whitening(labels: IntArray) -> bool:
    """Whether there are enough identities for one half to teach a whitening and one to judge."""
    return len(np.unique(labels)) >= 2 * FEWEST_SOURCES


def try_maps(
    turns: Sequence[tuple[Episode, Episode]],
    maps: Sequence[Learn],
    k: int,
    rank: Rank,
    *,
    alone: bool = False,
) -> npt.NDArray[np.float64]:
    """What each map gains for identities that it was not learnt on, shape (n_maps,).

    The mean over turns, which are taken side by side unless it is to be done `alone`.
    """

    def judge(turn: tuple[Episode, Episode]) -> list[float]:
        known, unseen = turn
        plain = rank(unseen, k)
        transforms = (learn(known.features, known.labels) for learn in maps)
        return [rank(move(unseen, transform), k) - plain for transform in transforms]

    with hire_workers(alone=alone) as workers, one_thread():
        gains: npt.NDArray[np.float64] = np.array(workers.map(judge, turns))
    return np.asarray(gains.mean(axis=0))


def weaken(
    transform: FloatArray, gain: float, sets: Sequence[Episode], k: int, rank: Rank
) -> FloatArray:
    """The map, drawn towards no change until it gains no more than it should, by bisection.

    Parameters
    ----------
    transform : ndarray of shape (dim, dim)
    gain : float
        What it gains for identities it was not learnt on.
    sets : sequence of Episode
        Of identities it was learnt on.
    k : int
    rank : callable

    Returns
    -------
    weaker : ndarray of shape (dim, dim), float32
    """
    nothing = np.eye(len(transform), dtype=np.float32)
    goal = float(np.mean([rank(one, k) for one in sets])) + gain

    def draw(share: float) -> FloatArray:
        return nothing + np.float32(share) * (transform - nothing)

    def is_too_much(share: float) -> bool:
        return float(np.mean([rank(move(one, draw(share)), k) for one in sets])) > goal

    low, high = 0.0, 1.0
    if not is_too_much(high):
        return transform
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_too_much(middle) else (middle, high)
    return draw(low)


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
