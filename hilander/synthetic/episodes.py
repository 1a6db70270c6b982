"""Episodes: labelled sets to learn from, and re-sampling to other size distributions.

A model trained on identities of even sizes expects even sizes. So it is trained on episodes of many
size distributions. `hilander.synthetic.identity_bootstrap` makes episodes of new identities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray

Sizes = Literal["all", "singles", "log", "heavy", "even", "small", "large"]

# Neighbours of a point that purity is measured on.
_PURITY_K = 10
# Share of the identities that have one point in "singles".
SINGLES_SHARE = 0.7
# Exponent of the Pareto distribution of "heavy": the mean size is infinite.
_HEAVY_EXPONENT = 1.0


@dataclass(frozen=True, eq=False)
class Episode:
    """A labelled set.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), of unit length
    labels : ndarray of shape (n_points,)
    weight : float
        How much it counts in training and validation.
    k : int, optional
        Neighbours of each point; None for the model's k.
    is_synthetic : bool
        Whether the identities are synthetic. They have one mode each, real ones may have several.
    """

    features: FloatArray
    labels: IntArray
    weight: float = 1.0
    k: int | None = None
    is_synthetic: bool = False


def resample_identities(
    episode: Episode, sizes: Sizes, most_points: int, rng: np.random.Generator
) -> Episode:
    """Keep some points of each identity, so that sizes follow another distribution.

    Parameters
    ----------
    episode : Episode
    sizes : str
        "all" keeps everything, "singles" one point of 70 % of the identities, "log" sizes
        log-uniform up to the identity's own, "heavy" sizes of a heavy-tailed distribution.
    most_points : int
        Identities are left out at random beyond this. No identity has more than half of it.
    rng : numpy Generator
    """
    order = rng.permutation(len(episode.labels))
    order = order[np.argsort(episode.labels[order], kind="stable")]
    own = np.bincount(episode.labels)
    identities = np.flatnonzero(own)
    wanted = np.array([_draw_size(sizes, int(own[c]), rng) for c in identities])
    rank = np.arange(len(order)) - np.repeat(np.cumsum(own) - own, own)
    limit = np.zeros(len(own), dtype=np.int64)
    most_of_one = max(most_points // 2, 1)
    limit[identities] = np.clip(wanted, 1, np.minimum(own[identities], most_of_one))
    shuffled = rng.permutation(identities)
    limit[shuffled[np.cumsum(limit[shuffled]) > most_points]] = 0
    kept = order[rank < limit[episode.labels[order]]]
    return Episode(episode.features[kept], episode.labels[kept])


def _draw_size(sizes: Sizes, own: int, rng: np.random.Generator) -> int:
    if sizes == "all":
        return own
    if sizes == "singles":
        return 1 if rng.random() < SINGLES_SHARE else own
    if sizes == "log":
        return int(np.exp(rng.uniform(0, np.log(own + 0.999))))
    if sizes == "heavy":
        return int(rng.pareto(_HEAVY_EXPONENT) + 1)
    raise ValueError(f"sizes={sizes!r} is not known; use all, singles, log or heavy")


def neighbour_purity(episode: Episode) -> float:
    """Mean share of a point's ten nearest neighbours that are of its identity, in [0, 1]."""
    cosine = episode.features @ episode.features.T
    np.fill_diagonal(cosine, -np.inf)
    k = min(_PURITY_K, len(cosine) - 1)
    nearest = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
    return float((episode.labels[nearest] == episode.labels[:, None]).mean())
