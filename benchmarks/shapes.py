"""Generated sets of many shapes, to train the pretrained model on.

Each embedder has its own shape: the number of directions that separate identities, the directions
in which members scatter, regions of different density, the distribution of sizes. A model trained
on three embedders does not generalise to others. Here every set has its own shape, drawn from wide
ranges. Its hardness is drawn too: the scatter is scaled until the drawn share of a point's
neighbours are of its identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, unit_rows

Kind = Literal["even", "even-small", "log-normal", "singles", "log", "tiny"]
KINDS: tuple[Kind, ...] = ("even", "even-small", "log-normal", "singles", "log")
WIDTHS = (64, 128, 256, 512)
PLAIN_WIDTHS = (32, *WIDTHS)
WARPS = ("none", "relu", "tanh")
MOST_MODES = 5  # of an identity
_LARGEST = 600  # points of an identity, at most
_BISECTIONS = 7  # steps of the search for the scatter
_SCALES = 0.05, 6.0  # range of the factor on the scatter
_PLAIN_SCATTER = 0.2, 1.0  # range of the scatter; centres have standard deviation 1
_PURITY_POINTS, _PURITY_K = 1500, 10  # points and neighbours by which hardness is measured

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """The properties that all points of a set share.

    Parameters
    ----------
    kind : Kind
        How sizes vary.
    dim : int
    centre_deviation, scatter_deviation : ndarray of shape (dim,)
        Standard deviation of centres and of members in each direction, before any warp; the squares
        add up to 1.
    warp : {"none", "relu", "tanh"}
        The last layer of the simulated embedder.
    hardness : float, in (0, 1)
        Wanted value of `neighbour_purity`.
    """

    kind: Kind
    dim: int
    centre_deviation: Numbers
    scatter_deviation: Numbers
    warp: str
    hardness: float


def make_shaped(
    rng: np.random.Generator, n_points: int, kind: Kind | None = None, *, easier: float = 1.0
) -> tuple[FloatArray, IntArray]:
    """Make a set of a random shape.

    Parameters
    ----------
    rng : numpy Generator
    n_points : int
        Approximate number of points.
    kind : str, optional
        How sizes vary; random by default.
    easier : float
        Factor on the scatter that gives the drawn hardness; below 1 for easier sets.

    Returns
    -------
    features : ndarray of shape (n, dim), float32, not normalised, in shuffled order
    labels : ndarray of shape (n,)
    """
    shape = draw_shape(rng, kind)
    labels = draw_labels(shape.kind, n_points, rng)
    n_identities = int(labels.max()) + 1
    centres, local_scale = place_centres(n_identities, shape, rng)
    scatter = draw_scatter(labels, n_identities, shape, rng) * local_scale[labels, None]
    embed = make_embedder(shape, rng)

    low, high = _SCALES
    for _ in range(_BISECTIONS):
        scale = np.sqrt(low * high)
        features = embed(centres[labels] + scale * scatter)
        low, high = (
            (scale, high) if neighbour_purity(features, labels) > shape.hardness else (low, scale)
        )
    if easier != 1:
        features = embed(centres[labels] + easier * scale * scatter)
    return features.astype(np.float32), labels


def make_plain(rng: np.random.Generator, n_points: int, kind: Kind) -> tuple[FloatArray, IntArray]:
    """Make a set of spherical clusters with random centres.

    Parameters and returns are those of `make_shaped`.
    """
    dim = int(rng.choice(PLAIN_WIDTHS))
    labels = draw_labels(kind, n_points, rng)
    centres = rng.normal(size=(labels.max() + 1, dim))
    scatter = log_uniform(*_PLAIN_SCATTER, rng) * rng.normal(size=(len(labels), dim))
    return (centres[labels] + scatter).astype(np.float32), labels


def draw_labels(kind: Kind, n_points: int, rng: np.random.Generator) -> IntArray:
    """Draw the identities of about `n_points` points, in shuffled order."""
    counts = draw_counts(kind, n_points, rng)
    return rng.permutation(np.repeat(np.arange(len(counts), dtype=np.int64), counts))


def draw_shape(rng: np.random.Generator, kind: Kind | None = None) -> Shape:
    """Draw the properties that all points of a set share."""
    dim = int(rng.choice(WIDTHS))
    used = int(log_uniform(16, dim, rng))
    scatter = fall_off(dim, rng.uniform(0, 1.3), min(dim, int(used * np.exp(rng.uniform(0, 1)))))
    if rng.random() < 0.25:  # members scatter in other directions than identities
        scatter = rng.permutation(scatter)
    return Shape(
        kind=kind or KINDS[rng.integers(len(KINDS))],
        dim=dim,
        centre_deviation=fall_off(dim, rng.uniform(0.3, 1.6), used),
        scatter_deviation=scatter,
        warp=str(rng.choice(WARPS)),
        hardness=float(rng.uniform(0.55, 0.97)),
    )


def fall_off(dim: int, exponent: float, used: int) -> Numbers:
    """Deviations whose squares follow a power law and add up to 1, shape (dim,)."""
    variance = np.where(np.arange(dim) < used, (np.arange(dim) + 2.0) ** -exponent, 0.0)
    return np.sqrt(variance / variance.sum())


def draw_counts(kind: Kind, n_points: int, rng: np.random.Generator) -> IntArray:
    """Draw the size of each identity, about `n_points` in all, shape (n_identities,)."""
    low, high = {"even": (6, 100), "even-small": (6, 30)}.get(kind, (3, 60))
    typical, is_even = log_uniform(low, high, rng), kind.startswith("even")
    vary = float(rng.choice([0.0, 0.1, 0.3])) if is_even else rng.uniform(0.4, 1.3)
    more = log_uniform(0.2, 4, rng) if kind == "tiny" else 0.0
    counts: list[int] = []
    while sum(counts) < n_points:
        if is_even:
            size = typical * rng.uniform(1 - vary, 1 + vary)
        elif kind == "log-normal":
            size = typical * np.exp(vary * rng.normal())
        elif kind == "tiny":
            size = 1.0 + rng.poisson(more)
        elif kind == "singles":
            size = 1.0 if rng.random() < 0.6 else rng.pareto(0.9) * 2 + 2
        else:
            size = log_uniform(1, 250, rng)
        counts.append(int(np.clip(size, 1, min(_LARGEST, max(n_points // 3, 1)))))
    return np.array(counts, dtype=np.int64)


def place_centres(
    n_identities: int, shape: Shape, rng: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """Draw the centres of the identities, in families and in regions of different density.

    Returns
    -------
    centres : ndarray of shape (n_identities, dim)
    local_scale : ndarray of shape (n_identities,)
        Scale of the region of each identity. In a dense region identities are compact and close
        to each other, and the cosine between two identities is as high as within one elsewhere.
    """
    centres, left = np.zeros((n_identities, shape.dim)), 1.0
    for _ in range(rng.integers(0, 3)):
        family = _group(n_identities, log_uniform(2, 20, rng), rng)
        share = left * rng.uniform(0.1, 0.7)
        centres += np.sqrt(share) * _draw_around(family, shape, rng)
        left -= share
    region = _group(n_identities, log_uniform(3, 40, rng), rng)
    local_scale = np.exp(rng.uniform(0, 0.9) * rng.normal(size=region.max() + 1))[region]
    share = left * rng.uniform(0.2, 0.8)
    centres += np.sqrt(share) * _draw_around(region, shape, rng)
    apart = local_scale * np.exp(rng.uniform(0, 0.8) * rng.normal(size=n_identities))
    own = rng.normal(size=centres.shape) * shape.centre_deviation
    return centres + np.sqrt(left - share) * apart[:, None] * own, local_scale


def draw_scatter(
    labels: IntArray, n_identities: int, shape: Shape, rng: np.random.Generator
) -> Numbers:
    """Draw the offset of each point from its centre, shape (n_points, dim).

    Identities have several modes, their own directions of most scatter, and different amounts of
    scatter. Points have different amounts of scatter too, and a few are outliers.
    """
    n_points, deviation = len(labels), shape.scatter_deviation
    scatter = rng.normal(size=(n_points, shape.dim)) * deviation
    if ways := int(rng.integers(0, 4)):
        stretched = rng.uniform(0.2, 0.8)
        along = rng.normal(size=(n_identities, ways, shape.dim)) * deviation
        how_far = rng.normal(size=(n_points, ways)) * np.sqrt(stretched / ways)
        scatter *= np.sqrt(1 - stretched)
        for way in range(ways):
            scatter += how_far[:, way, None] * along[labels, way]
    amount = np.exp(rng.uniform(0, 0.6) * rng.normal(size=n_identities))[labels]
    amount *= np.exp(rng.uniform(0, 0.4) * rng.normal(size=n_points))
    amount[rng.random(n_points) < rng.uniform(0, 0.1)] *= 2.5
    scatter *= amount[:, None]
    n_modes = rng.integers(1, rng.integers(1, MOST_MODES + 1) + 1, size=n_identities)
    modes = rng.normal(size=(n_identities, MOST_MODES, shape.dim)) * deviation
    scatter += np.sqrt(rng.uniform(0, 0.5)) * modes[labels, rng.integers(n_modes[labels])]
    return scatter


def make_embedder(shape: Shape, rng: np.random.Generator) -> Callable[[Numbers], Numbers]:
    """The last layer of a simulated embedder: a shift, or a linear map and a nonlinearity."""
    if shape.warp == "none":
        shift = rng.normal(size=shape.dim) * rng.uniform(0, 0.15)
        return lambda points: points + shift
    mix, bias = rng.normal(size=(shape.dim, shape.dim)), rng.uniform(-0.5, 0.5)
    if shape.warp == "relu":
        return lambda points: np.maximum(points @ mix + bias, 0)
    return lambda points: np.tanh(1.5 * (points @ mix + bias))


def _draw_around(group: IntArray, shape: Shape, rng: np.random.Generator) -> Numbers:
    """The centre of the group of each entry, shape (len(group), dim)."""
    drawn = rng.normal(size=(group.max() + 1, shape.dim)) * shape.centre_deviation
    of_members: Numbers = drawn[group]
    return of_members


def _group(n_identities: int, size: float, rng: np.random.Generator) -> IntArray:
    """A random group for each identity, of about `size` identities, shape (n_identities,)."""
    return rng.integers(max(1, int(n_identities / size)), size=n_identities)


def log_uniform(low: float, high: float, rng: np.random.Generator) -> float:
    """Draw a number that is uniform in its logarithm."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def neighbour_purity(features: Numbers, labels: IntArray) -> float:
    """Neighbours of the same identity, as a share of the largest possible number, in [0, 1]."""
    points = unit_rows((features - features.mean(axis=0)).astype(np.float32))
    sampled = np.arange(min(len(points), _PURITY_POINTS))
    cosine = points[sampled] @ points.T
    cosine[sampled, sampled] = -np.inf
    k = min(_PURITY_K, len(points) - 1)
    nearest = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
    hits = (labels[nearest] == labels[sampled, None]).sum(axis=1)
    possible = np.minimum(np.bincount(labels)[labels[sampled]] - 1, k)
    counted = possible > 0
    return float((hits[counted] / possible[counted]).mean()) if counted.any() else 0.0
