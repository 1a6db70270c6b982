"""The episodes to learn from: a labelled set, re-sampled, bootstrapped, and in small draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hilander.synthetic.episodes import Episode, Sizes, resample_identities
from hilander.synthetic.identity_bootstrap import IdentityBootstrap

REAL_SIZES: tuple[Sizes, ...] = ("singles", "log", "heavy")
BOOTSTRAP_SIZES: tuple[Sizes, ...] = ("singles", "log", "even", "small", "large")
TURNS = 3  # how often each size distribution is drawn
# Sets of few points: in these a point's nearest are strangers more often, and look nearer.
FEW_POINTS = 25, 1000
FEW_REAL_SIZES: tuple[Sizes, ...] = ("singles", "heavy")
FEW_BOOTSTRAP_SIZES: tuple[Sizes, ...] = ("singles", "small")
FEW_TURNS = 6
_AS_IT_IS_WEIGHT = 4.0
_FEW_WEIGHT = 0.5  # beside sets of many points


def make_episodes(episode: Episode, most_points: int, rng: np.random.Generator) -> list[Episode]:
    """The set itself, and re-sampled and bootstrapped to many size distributions, large and small.

    One draw of a size distribution is one chance: what is learned from a few of them varies with
    the seed. So each is drawn several times.
    """
    whole = resample_identities(episode, "all", 2 * most_points, rng)
    made = [replace(whole, weight=_AS_IT_IS_WEIGHT)]
    bootstrap = IdentityBootstrap(episode)
    for turn in range(TURNS):
        for sizes in REAL_SIZES:
            made.append(resample_identities(episode, sizes, 2 * most_points, rng))
        for number, sizes in enumerate(BOOTSTRAP_SIZES if bootstrap.can_draw else ()):
            n_points = int(rng.uniform(0.5, 1) * most_points)
            as_hard = (turn + number) % 2 == 1
            made.append(bootstrap.make(sizes, n_points, rng, as_hard=as_hard))
    for few in make_few_points(episode, bootstrap, most_points, rng):
        made.append(replace(few, weight=_FEW_WEIGHT * few.weight))
    return made


def make_few_points(
    episode: Episode, bootstrap: IdentityBootstrap, most_points: int, rng: np.random.Generator
) -> Iterator[Episode]:
    """Sets of a few dozen to a thousand points, in which most identities are small.

    Who has seen only sets of thousands joins whatever is nearest in a small one.
    """
    low, high = np.log(FEW_POINTS[0]), np.log(max(min(FEW_POINTS[1], most_points), FEW_POINTS[0]))
    for turn in range(FEW_TURNS):
        for sizes in FEW_REAL_SIZES:
            n_points = int(np.exp(rng.uniform(low, high)))
            yield resample_identities(episode, sizes, n_points, rng)
        for number, sizes in enumerate(FEW_BOOTSTRAP_SIZES if bootstrap.can_draw else ()):
            n_points = int(np.exp(rng.uniform(low, high)))
            yield bootstrap.make(sizes, n_points, rng, as_hard=(turn + number) % 2 == 1)
