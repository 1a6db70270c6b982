"""The episodes to learn from: a labelled set as it is, re-sampled, bootstrapped, and small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from hilander.synthetic.episodes import Episode, Sizes, resample_identities
from hilander.synthetic.identity_bootstrap import IdentityBootstrap

REAL_SIZES: tuple[Sizes, ...] = ("singles", "log", "heavy")
BOOTSTRAP_SIZES: tuple[Sizes, ...] = ("singles", "log", "even", "small", "large")
# Draws of each size distribution: with one, the result depends on the seed.
N_DRAWS = 3
# Points of a small set, at least and at most. In small sets more of a point's neighbours are of
# other identities, and those seem closer.
SMALL_SET_POINTS = 25, 1000
SMALL_REAL_SIZES: tuple[Sizes, ...] = ("singles", "heavy")
SMALL_BOOTSTRAP_SIZES: tuple[Sizes, ...] = ("singles", "small")
# Draws of small sets: more, because each has few edges.
N_SMALL_DRAWS = 6
# Points of a re-sampled set, in units of `most_points`, at most.
_REAL_SHARE = 2
# Points of a bootstrapped set, in units of `most_points`, from and to.
_BOOTSTRAP_SHARE = 0.5, 1.0
# Weight of the set as it is: as much as four re-sampled ones, since its sizes are real.
_WHOLE_SET_WEIGHT = 4.0
# Weight of small sets, relative to larger ones of the same kind.
_SMALL_SET_WEIGHT = 0.5


def make_episodes(episode: Episode, most_points: int, rng: np.random.Generator) -> list[Episode]:
    """The labelled set, and sets made of it with many size distributions, large and small.

    Parameters
    ----------
    episode : Episode
    most_points : int
        Of a bootstrapped set; a re-sampled one may have twice as many.
    rng : numpy Generator
    """
    whole = resample_identities(episode, "all", _REAL_SHARE * most_points, rng)
    made = [replace(whole, weight=_WHOLE_SET_WEIGHT)]
    bootstrap = IdentityBootstrap(episode)
    for draw in range(N_DRAWS):
        for sizes in REAL_SIZES:
            made.append(resample_identities(episode, sizes, _REAL_SHARE * most_points, rng))
        for number, sizes in enumerate(BOOTSTRAP_SIZES if bootstrap.can_draw else ()):
            n_points = int(rng.uniform(*_BOOTSTRAP_SHARE) * most_points)
            as_hard = (draw + number) % 2 == 1
            made.append(bootstrap.make(sizes, n_points, rng, as_hard=as_hard))
    for small in make_small_sets(episode, bootstrap, most_points, rng):
        made.append(replace(small, weight=_SMALL_SET_WEIGHT * small.weight))
    return made


def make_small_sets(
    episode: Episode, bootstrap: IdentityBootstrap, most_points: int, rng: np.random.Generator
) -> Iterator[Episode]:
    """Sets of a few dozen to a thousand points, in which most identities are small.

    A model trained only on sets of thousands of points links too much in a small set.
    """
    fewest, most = SMALL_SET_POINTS
    low, high = np.log(fewest), np.log(max(min(most, most_points), fewest))
    for draw in range(N_SMALL_DRAWS):
        for sizes in SMALL_REAL_SIZES:
            n_points = int(np.exp(rng.uniform(low, high)))
            yield resample_identities(episode, sizes, n_points, rng)
        for number, sizes in enumerate(SMALL_BOOTSTRAP_SIZES if bootstrap.can_draw else ()):
            n_points = int(np.exp(rng.uniform(low, high)))
            yield bootstrap.make(sizes, n_points, rng, as_hard=(draw + number) % 2 == 1)
