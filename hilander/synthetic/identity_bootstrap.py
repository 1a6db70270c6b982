"""Made-up identities: a labelled set of new ones, from what the labelled ones show.

They show how far apart identities are, and how the members of one scatter.
"""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, unit_rows
from hilander.synthetic.episodes import Episode, Sizes, neighbour_purity, resample_identities
from hilander.synthetic.member_scatter import EnsembleLinear

FEWEST_SOURCES = 8  # identities with three points or more, below which nothing is bootstrapped
_LARGEST = 600
_MADE_UP_WEIGHT = 0.4  # real identities are the better teachers
# How far a new identity stands from a real one: 0 is on it, half of pi is anywhere. Sets of
# strangers and sets as hard as the real one take turns: the former alone teach to merge too much,
# the latter to split large identities.
_STRANGERS = 0.4 * np.pi
_NEAREST_SHARE = 0.3  # of the farthest
# Crowds: how many there are at most, which identities may stand in them, which share of those at
# most, and how close they are beside the members of the loosest tenth of the identities; where
# all are as tight, strangers as close as these would be one identity.
_MOST_CROWDS, _SMALL, _CROWD_SHARE = 3, 5, 0.15
_LEAST_CLOSE, _LOOSE, _CLOSEST = 0.4, 0.1, 0.75
_SAMPLE_POINTS = 3000
_HALVINGS = 5


class IdentityBootstrap:
    """Makes labelled sets of new identities like those of a labelled set.

    A new identity stands near a real one, moved by a draw from the covariance of the identities'
    centres; its members scatter as those of a real identity do (`EnsembleLinear`).

    Parameters
    ----------
    episode : Episode
    """

    crowded = True  # whether some of the small identities of a set stand in crowds

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
        if self.can_draw:
            around = centres[source].astype(np.float32)
            points = unit_rows(around + self.scatter)
            self.members = EnsembleLinear(points, around, self.first, self.count)
            self.root = self._covariance_root(float(np.median(size)))
            self.as_hard = self._match_hardness(episode)

    @property
    def can_draw(self) -> bool:
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
        farthest = self.as_hard if as_hard else _STRANGERS
        return self._fill(counts, farthest, rng, crowded=self.crowded)

    def _fill(
        self,
        counts: IntArray,
        farthest: float,
        rng: np.random.Generator,
        *,
        crowded: bool = False,
    ) -> Episode:
        """New identities of these sizes, up to so far from real ones."""
        centres = self._place_centres(len(counts), farthest, rng)
        if crowded:
            centres = self._crowd(centres, counts, rng)
        labels = np.repeat(np.arange(len(counts)), counts)
        points = self._scatter_members(centres, labels, rng)
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

    def _crowd(self, centres: FloatArray, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Directions of the centres, with some of the small identities moved together.

        Blurred pictures, or such as an embedder has seldom seen, lie closer together than others,
        whosoever they are of. Who has not seen such crowds takes them for large identities. Their
        centres come at most so close that points of two of them are as near as those of a loose
        identity.
        """
        centres = unit_rows(centres)
        loose, usual = np.quantile(self.members.tightness, [_LOOSE, 0.5]).clip(1e-6)
        closest = min((loose / usual) ** 2, _CLOSEST)
        small = rng.permutation(np.flatnonzero(counts <= _SMALL))
        for _ in range(rng.integers(1, _MOST_CROWDS + 1)):
            crowd, small = np.split(small, [int(rng.uniform(0, _CROWD_SHARE) * len(small))])
            if len(crowd):
                closeness = rng.uniform(_LEAST_CLOSE, 1) * closest
                middle = unit_rows(centres[crowd].sum(axis=0, keepdims=True))
                apart = unit_rows(centres[crowd] - centres[crowd] @ middle.T * middle)
                centres[crowd] = np.sqrt(closeness) * middle + np.sqrt(1 - closeness) * apart
        return centres

    def _scatter_members(
        self, centres: FloatArray, labels: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """A point of unit length for each label, around the centre of that number.

        They scatter as those of the tighter half of the real identities: a loose one has perhaps a
        wrong label or two, and a hundred points as loose as that would be strangers.
        """
        tightness = self.members.tightness
        tighter = np.flatnonzero(tightness >= np.median(tightness))
        sources = rng.choice(tighter, size=len(centres))
        return self.members.draw(sources[labels], unit_rows(centres)[labels], rng)


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
