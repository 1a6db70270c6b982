"""Generated sets of many shapes, for the model in the box to learn from.

One embedder has one shape: how many directions carry identities, whether members scatter alike in
all of them, whether some regions are dense and others not, how sizes vary. A model that has seen
three embedders takes their shape for the way things are. Here every set has a shape of its own,
drawn from wide ranges, and is as hard as it is drawn to be: the scatter is scaled until so many
of a point's neighbours are of its identity.
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
MOST_MODES = 5
_LARGEST = 600
_HALVINGS = 7
_SCALES = 0.05, 6.0  # of the scatter, between which the hardness is sought
_PLAIN_SCATTER = 0.2, 1.0  # of members, where centres have 1
_JUDGED_POINTS, _JUDGED_K = 1500, 10

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """What is the same for all points of a set.

    Parameters
    ----------
    kind : how sizes vary
    dim : int
    centre_deviation, scatter_deviation : ndarray of shape (dim,)
        Of centres and of members in each direction, before any warp; squares add up to 1.
    warp : {"none", "relu", "tanh"}
        What the last layer of the imagined embedder does.
    hardness : float, in (0, 1)
        Share of the ten nearest neighbours that are of a point's identity, of those that could be.
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
    """Make a set of a shape of its own.

    Parameters
    ----------
    rng : numpy Generator
    n_points : int
        About so many.
    kind : str, optional
        How sizes vary; drawn if it is not given.
    easier : float
        By how much members scatter less than it takes to be as hard as drawn.

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
    embed = imagine_embedder(shape, rng)

    low, high = _SCALES
    for _ in range(_HALVINGS):
        scale = np.sqrt(low * high)
        features = embed(centres[labels] + scale * scatter)
        low, high = (scale, high) if _reach(features, labels) > shape.hardness else (low, scale)
    if easier != 1:
        features = embed(centres[labels] + easier * scale * scatter)
    return features.astype(np.float32), labels


def make_plain(rng: np.random.Generator, n_points: int, kind: Kind) -> tuple[FloatArray, IntArray]:
    """Make a set of round clusters anywhere in space, as one would to try a method out.

    Parameters, Returns
        As of `make_shaped`.
    """
    dim = int(rng.choice(PLAIN_WIDTHS))
    labels = draw_labels(kind, n_points, rng)
    centres = rng.normal(size=(labels.max() + 1, dim))
    scatter = log_uniform(*_PLAIN_SCATTER, rng) * rng.normal(size=(len(labels), dim))
    return (centres[labels] + scatter).astype(np.float32), labels


def draw_labels(kind: Kind, n_points: int, rng: np.random.Generator) -> IntArray:
    """Identities of about `n_points` points in shuffled order."""
    counts = draw_counts(kind, n_points, rng)
    return rng.permutation(np.repeat(np.arange(len(counts), dtype=np.int64), counts))


def draw_shape(rng: np.random.Generator, kind: Kind | None = None) -> Shape:
    """Draw what is the same for all points of a set."""
    dim = int(rng.choice(WIDTHS))
    used = int(log_uniform(16, dim, rng))
    scatter = fall_off(dim, rng.uniform(0, 1.3), min(dim, int(used * np.exp(rng.uniform(0, 1)))))
    if rng.random() < 0.25:  # members scatter in other directions than identities do
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
    """Deviations whose squares fall by a power law and add up to 1, shape (dim,)."""
    variance = np.where(np.arange(dim) < used, (np.arange(dim) + 2.0) ** -exponent, 0.0)
    return np.sqrt(variance / variance.sum())


def draw_counts(kind: Kind, n_points: int, rng: np.random.Generator) -> IntArray:
    """Points of each identity, about `n_points` in all, shape (n_identities,)."""
    low, high = {"even": (6, 100), "even-small": (6, 30)}.get(kind, (3, 60))
    usual, is_even = log_uniform(low, high, rng), kind.startswith("even")
    vary = float(rng.choice([0.0, 0.1, 0.3])) if is_even else rng.uniform(0.4, 1.3)
    more = log_uniform(0.2, 4, rng) if kind == "tiny" else 0.0
    counts: list[int] = []
    while sum(counts) < n_points:
        if is_even:
            size = usual * rng.uniform(1 - vary, 1 + vary)
        elif kind == "log-normal":
            size = usual * np.exp(vary * rng.normal())
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
    """Centres of the identities, in families and in regions of unlike density.

    Returns
    -------
    centres : ndarray of shape (n_identities, dim)
    local_scale : ndarray of shape (n_identities,)
        How wide everything is in the region of each: in a dense region identities are tight and
        near each other, and the cosine of two strangers is as high as of two members elsewhere.
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
    """How members stand off from their centre, shape (n_points, dim).

    Identities come in several modes, are stretched along ways of their own, and differ in how
    much they scatter; so do members, and a few are poor.
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


def imagine_embedder(shape: Shape, rng: np.random.Generator) -> Callable[[Numbers], Numbers]:
    """The last step of an embedder: a shift off the origin, or a mix of all directions, bent."""
    if shape.warp == "none":
        shift = rng.normal(size=shape.dim) * rng.uniform(0, 0.15)
        return lambda points: points + shift
    mix, bias = rng.normal(size=(shape.dim, shape.dim)), rng.uniform(-0.5, 0.5)
    if shape.warp == "relu":
        return lambda points: np.maximum(points @ mix + bias, 0)
    return lambda points: np.tanh(1.5 * (points @ mix + bias))


def _draw_around(group: IntArray, shape: Shape, rng: np.random.Generator) -> Numbers:
    """A centre for each group, given to its members, shape (len(group), dim)."""
    drawn = rng.normal(size=(group.max() + 1, shape.dim)) * shape.centre_deviation
    of_members: Numbers = drawn[group]
    return of_members


def _group(n_identities: int, size: float, rng: np.random.Generator) -> IntArray:
    """A group of about `size` identities for each, shape (n_identities,)."""
    return rng.integers(max(1, int(n_identities / size)), size=n_identities)


def log_uniform(low: float, high: float, rng: np.random.Generator) -> float:
    """A number whose logarithm is as likely to be anywhere between those of the two."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _reach(features: Numbers, labels: IntArray) -> float:
    """Share of the nearest neighbours that are of a point's identity, of those that could be."""
    points = unit_rows((features - features.mean(axis=0)).astype(np.float32))
    asked = np.arange(min(len(points), _JUDGED_POINTS))
    cosine = points[asked] @ points.T
    cosine[asked, asked] = -np.inf
    k = min(_JUDGED_K, len(points) - 1)
    nearest = np.argpartition(-cosine, k - 1, axis=1)[:, :k]
    hits = (labels[nearest] == labels[asked, None]).sum(axis=1)
    possible = np.minimum(np.bincount(labels)[labels[asked]] - 1, k)
    able = possible > 0
    return float((hits[able] / possible[able]).mean()) if able.any() else 0.0
