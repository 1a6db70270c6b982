"""Labelled sets for the tests of episodes, and what is asked of them."""

import numpy as np

from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities


def labelled(seed=0, **changes):
    settings = {"n_identities": 40, "size": 12, "dim": 16, "spread": 0.9, "seed": seed}
    return Episode(*make_identities(**{**settings, **changes}))


def sizes_of(episode):
    return np.unique(episode.labels, return_counts=True)[1]


def rows_of(episode):
    pairs = zip(episode.features, episode.labels, strict=True)
    return {(row.tobytes(), int(label)) for row, label in pairs}
