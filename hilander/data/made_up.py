"""Made-up identities: a labelled set of new ones, from what the labelled ones show.

They show how far apart identities are, and how the members of one scatter.
"""

from __future__ import annotations

import numpy as np

from hilander.data.arrays import FloatArray, IntArray
from hilander.data.episodes import Episode, Sizes, neighbour_purity, resample_identities

FEWEST_SOURCES = 8  # identities with three points or more, below which nothing is bootstrapped
_LARGEST = 600
_MADE_UP_WEIGHT = 0.4  # real identities are the better teachers
# How far a new identity stands from a real one: 0 is on it, half of pi is anywhere. Sets of
# strangers and sets as hard as the real one take turns: the former alone teach to merge too much,
# the latter to split large identities.
_STRANGERS = 0.4 * np.pi
_NEAREST_SHARE = 0.3  # of the farthest
_SAMPLE_POINTS = 3000
_HALVINGS = 5


class IdentityBootstrap:
    """Makes labelled sets of new identities like those of a labelled set.

    A new identity stands near a real one, moved by a draw from the covariance of the identities'
    centres; its members scatter as members of a few real identities do.

    Parameters
    ----------
    episode : Episode
    """

    def __init__(self, episode: Episode) -> None:
        features, labels = episode.features, np.unique(episode.labels, return_inverse=True)[1]
        size = np.bincount(labels)
        centres = np.zeros((len(size), features.shape[1]), dtype=np.float64)
        np.add.at(centres, labels, features)
        centres /= size[:, None]
        by_identity = np.argsort(labels, kind="stable")
        by_identity = by_identity[size[labels[by_identity]] >= 3]
        source = labels[by_identity]
        # A centre estimated from m points takes a share 1/m of their scatter away.
        regain = np.sqrt(size[source] / (size[source] - 1.0))
        self.scatter = ((features[by_identity] - centres[source]) * regain[:, None]).astype(
            np.float32
        )
        _, self.first, self.count = np.unique(source, return_index=True, return_counts=True)
        self.mean = centres.mean(axis=0)
        self.centres = (centres - self.mean).astype(np.float32)
        self.usual_size = int(np.median(size))
        if self.is_able:
            self.root = self._covariance_root(float(np.median(size)))
            self.as_hard = self._match_hardness(episode)

    @property
    def is_able(self) -> bool:
        """Whether there are enough identities to learn from."""
        return len(self.first) >= FEWEST_SOURCES

    def _covariance_root(self, usual_size: float) -> FloatArray:
        """A root of the centres' covariance, less what their own members' scatter put into it."""
        between = self.centres.T @ self.centres / len(self.centres)
        within = self.scatter.T @ self.scatter / len(self.scatter)
        values, vectors = np.linalg.eigh((between - within / usual_size).astype(np.float64))
        root: FloatArray = (vectors * np.sqrt(np.clip(values, 0, None))).astype(np.float32)
        return root

    def _match_hardness(self, episode: Episode) -> float:
        """How far new identities may stand from real ones, to be as hard to tell apart as those.

        Found by bisection: a set of the same sizes as a sample of the real one should have as
        many neighbours of one identity.
        """
        sample = resample_identities(episode, "all", _SAMPLE_POINTS, np.random.default_rng(0))
        counts = np.unique(sample.labels, return_counts=True)[1]
        goal = neighbour_purity(sample)
        low, high = 0.0, _STRANGERS
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            made = self._fill(counts, middle, np.random.default_rng(1))
            low, high = (middle, high) if neighbour_purity(made) < goal else (low, middle)
        return (low + high) / 2

    def make(
        self, sizes: Sizes, n_points: int, rng: np.random.Generator, *, as_hard: bool = False
    ) -> Episode:
        """Make a labelled set of about `n_points` points, of strangers or as hard as the real."""
        counts = draw_sizes(sizes, n_points, self.usual_size, rng)
        return self._fill(counts, self.as_hard if as_hard else _STRANGERS, rng)

    def _fill(self, counts: IntArray, farthest: float, rng: np.random.Generator) -> Episode:
        """New identities of these sizes, up to so far from real ones."""
        labels = np.repeat(np.arange(len(counts)), counts)
        points = self._place_centres(len(counts), farthest, rng)[labels]
        sources = rng.integers(len(self.first), size=(len(counts), 3))
        turn = rng.uniform(0, np.pi / 6, size=(len(labels), 1)).astype(np.float32)
        # Two blended members, so that a large identity is not made of repeats.
        points += np.cos(turn) * self._draw_scatter(sources[labels], rng)
        points += np.sin(turn) * self._draw_scatter(sources[labels], rng)
        points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9)
        return Episode(points.astype(np.float32), labels, _MADE_UP_WEIGHT)

    def _place_centres(
        self, n_identities: int, farthest: float, rng: np.random.Generator
    ) -> FloatArray:
        draw = rng.standard_normal((n_identities, len(self.root))).astype(np.float32) @ self.root.T
        away = rng.uniform(_NEAREST_SHARE * farthest, farthest, size=(n_identities, 1))
        near = self.centres[rng.integers(len(self.centres), size=n_identities)]
        placed: FloatArray = (self.mean + np.cos(away) * near + np.sin(away) * draw).astype(
            np.float32
        )
        return placed

    def _draw_scatter(self, sources: IntArray, rng: np.random.Generator) -> FloatArray:
        chosen = sources[np.arange(len(sources)), rng.integers(sources.shape[1], size=len(sources))]
        member = (rng.random(len(chosen)) * self.count[chosen]).astype(np.int64)
        drawn: FloatArray = self.scatter[self.first[chosen] + member]
        return drawn


def draw_sizes(sizes: Sizes, n_points: int, usual_size: int, rng: np.random.Generator) -> IntArray:
    """Sizes of identities that add up to about `n_points`, shape (n_identities,)."""
    drawn: list[int] = []
    while sum(drawn) < n_points:
        if sizes == "singles":
            size = 1.0 if rng.random() < 0.7 else rng.pareto(0.9) * 2 + 2
        elif sizes == "log":
            size = np.exp(rng.uniform(0, np.log(200)))
        elif sizes == "even":
            size = usual_size * rng.uniform(0.7, 1.3)
        elif sizes == "small":
            size = float(rng.integers(1, 8))
        elif sizes == "large":
            size = np.exp(rng.uniform(np.log(20), np.log(500)))
        else:
            raise ValueError(f"unknown sizes {sizes!r}")
        drawn.append(int(min(max(size, 1), _LARGEST, max(n_points // 2, 1))))
    return np.array(drawn, dtype=np.int64)
