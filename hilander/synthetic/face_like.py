"""Embeddings that behave like those of a face network, in any number.

The sets of the paper cannot be downloaded. What a clustering method meets in them can be imitated:
sizes that range over orders of magnitude, people who come in several looks, families of people who
are easily confused, pictures of very different quality, and a space that uses few of its
dimensions. ``docs/face-like.md`` compares cosines with those of real faces.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, row_blocks
from hilander.errors import SettingError

Sizes = Literal["log-normal", "heavy-tailed"]

# Of the people's centres and of the pictures around them: variance falls with the dimension as in
# real faces, where about 20 dimensions carry the people and 60 the pictures.
_CENTRE_DECAY = 1.15
_CENTRE_SHIFT = 2.0
_MOST_USED = 84
_POOR_FACTOR = 3.0  # how much further out a poor picture lies
_IDENTITY_SIGMA, _PICTURE_SIGMA = 0.2, 0.25  # of the noise, log-normal
_SIZE_SIGMA = 0.8  # of log-normal sizes
_TAIL_EXPONENT = 1.3  # of heavy-tailed sizes, a Pareto law


@dataclass(frozen=True)
class FaceLikeSettings:
    """What a face-like set is made of.

    Parameters
    ----------
    n_points, n_identities, dim : int
    sizes : {"log-normal", "heavy-tailed"}
        How the number of pictures varies between identities.
    spread : float
        Variance of a picture around its look, beside the variance 1 of centres.
    n_looks : int
        Most sub-modes of one identity; how many it has is drawn evenly from 1 to this.
    look_spread : float
        Variance of a look around its identity's centre.
    family_size : int
        Mean number of identities in a family that is easily confused.
    family_share : float, in [0, 1)
        Share of a centre's variance that its family has in common.
    poor_share : float, in [0, 1]
        Share of the pictures that are so poor that they lie far from their look.
    """

    n_points: int
    n_identities: int
    dim: int = 128
    sizes: Sizes = "log-normal"
    spread: float = 0.40
    n_looks: int = 4
    look_spread: float = 0.10
    family_size: int = 6
    family_share: float = 0.65
    poor_share: float = 0.05

    def __post_init__(self) -> None:
        if self.dim < 4 or not 1 <= self.n_identities <= self.n_points:
            raise SettingError(
                f"got n_points={self.n_points}, n_identities={self.n_identities}, dim={self.dim}, "
                "expected 1 <= n_identities <= n_points and dim >= 4; choose other counts"
            )
        if self.sizes not in ("log-normal", "heavy-tailed"):
            raise SettingError(f"sizes={self.sizes!r} is not known; use log-normal or heavy-tailed")
        if not 0 <= self.family_share < 1 or min(self.n_looks, self.family_size) < 1:
            raise SettingError(
                f"got family_share={self.family_share}, n_looks={self.n_looks}, "
                f"family_size={self.family_size}, expected a share in [0, 1) and counts from 1 on"
            )

    @property
    def mean_size(self) -> float:
        """Pictures of an identity, on average."""
        return self.n_points / self.n_identities

    def scaled(self, factor: float) -> FaceLikeSettings:
        """Give the same set with `factor` times the identities, their sizes kept."""
        if not factor > 0:
            raise SettingError(f"scale={factor!r} must be above 0; 1 is the full set")
        n_identities = max(2, round(self.n_identities * factor))
        n_points = max(n_identities, round(self.n_points * factor))
        return replace(self, n_points=n_points, n_identities=n_identities)


_FILM = FaceLikeSettings(
    201_240, 251, 128, "heavy-tailed", spread=0.85, family_share=0.8, poor_share=0.08
)
_SPECIES = FaceLikeSettings(135_660, 2_452, 512, "heavy-tailed", spread=0.8)

# n, identities and width of the paper's sets; mean sizes follow. The film's pictures and the
# species vary more: with large identities, only that leaves neighbours of others among the ten
# nearest.
PRESETS: dict[str, FaceLikeSettings] = {
    "trillionpairs": FaceLikeSettings(669_560, 18_084, spread=0.45),
    "imdb": FaceLikeSettings(1_265_173, 50_289),
    "imdb-same": FaceLikeSettings(614_002, 18_084, spread=0.45),
    "hannah": _FILM,
    "inat-train": replace(_SPECIES, n_points=324_418, n_identities=5_690),
    "inat-different": replace(
        _SPECIES, n_points=51_696, n_identities=5_690, sizes="log-normal", spread=0.4
    ),
    "inat": _SPECIES,
}


def make_face_like(
    settings: str | FaceLikeSettings, *, scale: float = 1.0, seed: int = 0, embedder: int = 0
) -> tuple[FloatArray, IntArray]:
    """Make embeddings with the statistics of a face set.

    Parameters
    ----------
    settings : str or FaceLikeSettings
        A name of `PRESETS`, or your own.
    scale : float
        Share of the identities to make; the sizes of identities do not change.
    seed : int
        Of identities and pictures: sets of different seeds have disjoint identities.
    embedder : int
        Of the space they lie in: give train and test sets the same, as one network would.

    Returns
    -------
    features : ndarray of shape (n_points, dim), float32
        Unit length, in shuffled order.
    labels : ndarray of shape (n_points,), int64
        Identity of each row, from 0.

    Examples
    --------
    >>> from hilander.synthetic.face_like import make_face_like
    >>> features, labels = make_face_like("imdb", scale=0.001)
    >>> features.shape, int(labels.max()) + 1
    ((1265, 128), 50)
    """
    if isinstance(settings, str):
        if settings not in PRESETS:
            raise SettingError(f"preset {settings!r} is not known; use one of {', '.join(PRESETS)}")
        settings = PRESETS[settings]
    shape = settings.scaled(scale)
    rng = np.random.default_rng([seed, 0])
    counts = draw_sizes(shape, rng)
    labels = rng.permutation(np.repeat(np.arange(shape.n_identities, dtype=np.int64), counts))
    # (n_identities, n_looks, used): every look of every identity
    classifiers = _draw_looks(shape, rng)
    look_of = rng.integers(rng.integers(1, shape.n_looks + 1, shape.n_identities)[labels])
    amount = _draw_noise_amounts(shape, labels, rng)
    rotation = _embedder_axes(shape.dim, embedder)[: classifiers.shape[2]]
    deviation = _picture_deviation(classifiers.shape[2])

    features = np.empty((shape.n_points, shape.dim), dtype=np.float32)
    for rows in row_blocks(shape.n_points, shape.dim):
        block = rng.standard_normal(
            (rows.stop - rows.start, classifiers.shape[2]), dtype=np.float32
        )
        block *= deviation
        block *= amount[rows, None]
        block += classifiers[labels[rows], look_of[rows]]
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        np.matmul(block, rotation, out=features[rows])
    return features, labels


def draw_sizes(settings: FaceLikeSettings, rng: np.random.Generator) -> IntArray:
    """Pictures of each identity, shape (n_identities,), at least 1 each, `n_points` in all."""
    if settings.sizes == "log-normal":
        weight = rng.lognormal(0.0, _SIZE_SIGMA, settings.n_identities)
    else:
        weight = rng.pareto(_TAIL_EXPONENT, settings.n_identities) + 0.25
    spare = settings.n_points - settings.n_identities
    share = np.cumsum(weight) / weight.sum() * spare
    edges = np.round(share).astype(np.int64)
    edges[-1] = spare
    counts: IntArray = 1 + np.diff(edges, prepend=0)
    return counts


def _draw_looks(settings: FaceLikeSettings, rng: np.random.Generator) -> FloatArray:
    """Centres of every look, shape (n_identities, n_looks, used dimensions)."""
    used = min(_MOST_USED, settings.dim)
    deviation = _centre_deviation(used)
    n_families = max(1, round(settings.n_identities / settings.family_size))
    family = rng.integers(n_families, size=settings.n_identities)
    shared = rng.standard_normal((n_families, used), dtype=np.float32) * deviation
    own = rng.standard_normal((settings.n_identities, used), dtype=np.float32) * deviation
    share = np.float32(settings.family_share)
    centres = np.sqrt(share) * shared[family] + np.sqrt(1 - share) * own
    shape = (settings.n_identities, settings.n_looks, used)
    classifiers = rng.standard_normal(shape, dtype=np.float32) * _picture_deviation(used)
    classifiers *= np.float32(np.sqrt(settings.look_spread))
    classifiers += centres[:, None, :]
    return classifiers


def _draw_noise_amounts(
    settings: FaceLikeSettings, labels: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Standard deviation of each picture's noise, shape (n_points,): its identity's and its own."""
    of_identity = rng.lognormal(0.0, _IDENTITY_SIGMA, settings.n_identities)
    amount = of_identity[labels] * rng.lognormal(0.0, _PICTURE_SIGMA, len(labels))
    # A log-normal's mean square is exp(2 sigma^2): taken out, so that spread is the mean.
    amount *= np.sqrt(settings.spread) / np.exp(_IDENTITY_SIGMA**2 + _PICTURE_SIGMA**2)
    amount[rng.random(len(labels)) < settings.poor_share] *= _POOR_FACTOR
    noise: FloatArray = amount.astype(np.float32)
    return noise


def _centre_deviation(used: int) -> FloatArray:
    """Deviation of centres in each dimension, total variance 1."""
    variance = (np.arange(used) + _CENTRE_SHIFT) ** -_CENTRE_DECAY
    deviation: FloatArray = np.sqrt(variance / variance.sum()).astype(np.float32)
    return deviation


def _picture_deviation(used: int) -> FloatArray:
    """Deviation of pictures in each dimension, total variance 1: nearly flat."""
    variance = 1.0 - 0.85 * np.arange(used) / used
    deviation: FloatArray = np.sqrt(variance / variance.sum()).astype(np.float32)
    return deviation


def _embedder_axes(dim: int, embedder: int) -> npt.NDArray[np.float32]:
    """A random rotation, shape (dim, dim), so that no feature is special."""
    rng = np.random.default_rng([embedder, 1])
    axes, triangle = np.linalg.qr(rng.standard_normal((dim, dim)))
    rotation: npt.NDArray[np.float32] = (axes * np.sign(np.diag(triangle))).astype(np.float32)
    return rotation
