"""Bootstrapped identities: a labelled set of new identities, modelled on real ones.

The real identities show how far apart identities are and how the members of one scatter.
"""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, unit_rows
from hilander.synthetic.episodes import (
    SINGLES_SHARE,
    Episode,
    Sizes,
    neighbour_purity,
    resample_identities,
)
from hilander.synthetic.member_scatter import MemberScatter

# Points of an identity, below which its scatter is not measured.
FEWEST_MEMBERS = 3
# Identities with that many points, below which nothing is bootstrapped.
FEWEST_SOURCES = 8
# Points of the largest new identity; bounds its share of a set.
_LARGEST_IDENTITY = 600
# Weight of a bootstrapped episode in training; real ones, of weight 1, are better examples.
_BOOTSTRAP_WEIGHT = 0.4
# Angle (radians) between the centre of a new identity and that of a real one: 0 is on it, pi / 2
# is anywhere. Half of the sets use this angle, half a smaller one that makes them as hard as the
# real set. With the former alone a model merges too much, with the latter alone it splits large
# identities.
_FARTHEST_ANGLE = 0.4 * np.pi
# Share of the farthest angle, below which no centre is placed.
_NEAREST_SHARE = 0.3
# Groups of small identities that stand close together, at most.
_MOST_GROUPS = 3
# Points of an identity that may stand in such a group, at most.
_SMALL_IDENTITY = 5
# Share of the small identities in one group, at most.
_GROUP_SHARE = 0.15
# Cosine of two centres in a group. At most as close as two members of the loosest tenth of the
# identities, and never above the limit: if all identities are equally tight, closer ones could not
# be told apart. At least this share of that bound.
_LEAST_GROUP_COSINE = 0.4
_LOOSE_QUANTILE = 0.1
_MOST_GROUP_COSINE = 0.75
# Points of the sample whose neighbour purity is matched.
_SAMPLE_POINTS = 3000
# Steps of the bisection that matches it: the angle is then exact to 1/32 of the farthest.
_BISECTIONS = 5
# Sizes of new identities. Log-uniform sizes reach 200, those of large ones 20 to 500; small ones
# have 1 to 7 points; even ones differ by up to 30 %.
_LOG_LARGEST = 200
_LARGE_SIZES = 20, 500
_SMALL_SIZES = 1, 8
_EVEN_RANGE = 0.7, 1.3
# Sizes of those that are no singles: a Pareto distribution of this exponent, scaled, from 2 on.
_TAIL_EXPONENT, _TAIL_SCALE, _TAIL_FROM = 0.9, 2, 2


class IdentityBootstrap:
    """Makes labelled sets of new identities like those of a labelled set.

    The centre of a new identity is that of a real one, moved by a draw from the covariance of the
    centres. Its members scatter as those of a real identity do (`MemberScatter`).

    Parameters
    ----------
    episode : Episode
    """

    groups_small = True  # whether some small identities of a set stand close together

    def __init__(self, episode: Episode) -> None:
        features, labels = episode.features, np.unique(episode.labels, return_inverse=True)[1]
        size = np.bincount(labels)
        centres = np.zeros((len(size), features.shape[1]), dtype=np.float64)
        np.add.at(centres, labels, features)
        centres /= size[:, None]
        by_identity = np.argsort(labels, kind="stable")
        by_identity = by_identity[size[labels[by_identity]] >= FEWEST_MEMBERS]
        source = labels[by_identity]
        # A centre estimated from m points lowers their variance by the factor 1 - 1/m.
        correction = np.sqrt(size[source] / (size[source] - 1.0))
        scatter = (features[by_identity] - centres[source]) * correction[:, None]
        self.scatter = scatter.astype(np.float32)
        _, self.first, self.count = np.unique(source, return_index=True, return_counts=True)
        self.mean = centres.mean(axis=0)
        self.centres = (centres - self.mean).astype(np.float32)
        self.typical_size = int(np.median(size))
        if self.can_draw:
            around = centres[source].astype(np.float32)
            points = unit_rows(around + self.scatter)
            self.members = MemberScatter(points, around, self.first, self.count)
            self.root = self._covariance_root(float(np.median(size)))
            self.as_hard = self._match_hardness(episode)

    @property
    def can_draw(self) -> bool:
        """Whether there are enough identities to model new ones on."""
        return len(self.first) >= FEWEST_SOURCES

    def _covariance_root(self, typical_size: float) -> FloatArray:
        """A root of the covariance of the centres, corrected for the scatter of their members."""
        between = self.centres.T @ self.centres / len(self.centres)
        within = self.scatter.T @ self.scatter / len(self.scatter)
        values, vectors = np.linalg.eigh((between - within / typical_size).astype(np.float64))
        root: FloatArray = (vectors * np.sqrt(np.clip(values, 0, None))).astype(np.float32)
        return root

    def _match_hardness(self, episode: Episode) -> float:
        """The farthest angle with which new identities are as hard to tell apart as the real ones.

        By bisection: a new set of the sizes of a real sample should have its neighbour purity.
        """
        sample = resample_identities(episode, "all", _SAMPLE_POINTS, np.random.default_rng(0))
        counts = np.unique(sample.labels, return_counts=True)[1]
        goal = neighbour_purity(sample)
        low, high = 0.0, _FARTHEST_ANGLE
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            made = self._fill(counts, middle, np.random.default_rng(1))
            low, high = (middle, high) if neighbour_purity(made) < goal else (low, middle)
        return (low + high) / 2

    def make(
        self, sizes: Sizes, n_points: int, rng: np.random.Generator, *, as_hard: bool = False
    ) -> Episode:
        """Make a labelled set of about `n_points` points.

        Parameters
        ----------
        sizes : str
            As for `draw_sizes`.
        n_points : int
        rng : numpy Generator
        as_hard : bool
            Whether identities are as hard to tell apart as the real ones; else they are farther
            apart.
        """
        counts = draw_sizes(sizes, n_points, self.typical_size, rng)
        farthest = self.as_hard if as_hard else _FARTHEST_ANGLE
        return self._fill(counts, farthest, rng, group_small=self.groups_small)

    def _fill(
        self,
        counts: IntArray,
        farthest: float,
        rng: np.random.Generator,
        *,
        group_small: bool = False,
    ) -> Episode:
        """New identities of these sizes, up to this angle from real ones."""
        centres = self._place_centres(len(counts), farthest, rng)
        if group_small:
            centres = self._group_small_identities(centres, counts, rng)
        labels = np.repeat(np.arange(len(counts)), counts)
        points = self._scatter_members(centres, labels, rng)
        return Episode(points.astype(np.float32), labels, _BOOTSTRAP_WEIGHT, is_synthetic=True)

    def _place_centres(
        self, n_identities: int, farthest: float, rng: np.random.Generator
    ) -> FloatArray:
        draw = rng.standard_normal((n_identities, len(self.root))).astype(np.float32) @ self.root.T
        angle = rng.uniform(_NEAREST_SHARE * farthest, farthest, size=(n_identities, 1))
        near = self.centres[rng.integers(len(self.centres), size=n_identities)]
        placed: FloatArray = (self.mean + np.cos(angle) * near + np.sin(angle) * draw).astype(
            np.float32
        )
        return placed

    def _group_small_identities(
        self, centres: FloatArray, counts: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """Directions of the centres, with some of the small identities moved close together.

        Blurred pictures, or pictures unlike the embedder's training set, lie close together
        whatever their identity. A model that has not been trained on such groups takes each for
        one large identity.
        """
        centres = unit_rows(centres)
        loose, typical = np.quantile(self.members.tightness, [_LOOSE_QUANTILE, 0.5]).clip(1e-6)
        closest = min((loose / typical) ** 2, _MOST_GROUP_COSINE)
        small = rng.permutation(np.flatnonzero(counts <= _SMALL_IDENTITY))
        for _ in range(rng.integers(1, _MOST_GROUPS + 1)):
            group, small = np.split(small, [int(rng.uniform(0, _GROUP_SHARE) * len(small))])
            if len(group):
                cosine = rng.uniform(_LEAST_GROUP_COSINE, 1) * closest
                middle = unit_rows(centres[group].sum(axis=0, keepdims=True))
                apart = unit_rows(centres[group] - centres[group] @ middle.T * middle)
                centres[group] = np.sqrt(cosine) * middle + np.sqrt(1 - cosine) * apart
        return centres

    def _scatter_members(
        self, centres: FloatArray, labels: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """A point of unit length for each label, around the centre of that number.

        Members scatter as those of the tighter half of the real identities. A loose identity may
        have a wrong label or two; a large one as loose would be several identities.
        """
        tightness = self.members.tightness
        tighter = np.flatnonzero(tightness >= np.median(tightness))
        sources = rng.choice(tighter, size=len(centres))
        return self.members.draw(sources[labels], unit_rows(centres)[labels], rng)


def draw_sizes(
    sizes: Sizes, n_points: int, typical_size: int, rng: np.random.Generator
) -> IntArray:
    """Sizes of identities that add up to about `n_points`, shape (n_identities,).

    Parameters
    ----------
    sizes : {"singles", "log", "even", "small", "large"}
    n_points : int
    typical_size : int
        Of "even" sizes.
    rng : numpy Generator
    """
    drawn: list[int] = []
    while sum(drawn) < n_points:
        if sizes == "singles":
            tail = rng.random() >= SINGLES_SHARE
            size = rng.pareto(_TAIL_EXPONENT) * _TAIL_SCALE + _TAIL_FROM if tail else 1.0
        elif sizes == "log":
            size = np.exp(rng.uniform(0, np.log(_LOG_LARGEST)))
        elif sizes == "even":
            size = typical_size * rng.uniform(*_EVEN_RANGE)
        elif sizes == "small":
            size = float(rng.integers(*_SMALL_SIZES))
        elif sizes == "large":
            size = np.exp(rng.uniform(*np.log(_LARGE_SIZES)))
        else:
            raise ValueError(
                f"sizes={sizes!r} is not known; use singles, log, even, small or large"
            )
        drawn.append(int(min(max(size, 1), _LARGEST_IDENTITY, max(n_points // 2, 1))))
    return np.array(drawn, dtype=np.int64)
