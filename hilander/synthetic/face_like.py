"""Synthetic embeddings with the statistics of a face network's, in any number.

The data sets of the paper cannot be downloaded. A face-like set has their main properties: sizes
that range over orders of magnitude, identities with several modes, families of identities that are
easily confused, pictures of very different quality, and few dimensions that carry most of the
variance. The documentation compares its cosines with those of real faces.
"""

from __future__ import annotations

import warnings
from dataclasses import InitVar, dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, row_blocks
from hilander.errors import SettingError

Sizes = Literal["log-normal", "heavy-tailed"]

# Variance of the centres in dimension i: (i + shift) ** -decay. As in real faces, where about 20
# dimensions carry the identities.
_CENTRE_DECAY = 1.15
_CENTRE_SHIFT = 2.0
# Variance of the pictures falls along a line, by this share from the first dimension to the last.
# As in real faces, where about 60 dimensions carry the pictures.
_PICTURE_DECAY = 0.85
# Dimensions with any variance, at most.
_MOST_USED = 84
# Deviation of a poor picture, in units of that of others.
_POOR_FACTOR = 3.0
# Standard deviations of the logarithm of the noise: between identities, and between pictures.
_IDENTITY_SIGMA, _PICTURE_SIGMA = 0.2, 0.25
# Standard deviation of the logarithm of log-normal sizes.
_SIZE_SIGMA = 0.8
# Heavy-tailed sizes: exponent of the Pareto distribution, and the weight of the smallest identity.
_TAIL_EXPONENT = 1.3
_TAIL_FROM = 0.25


@dataclass(frozen=True)
class FaceLikeSettings:
    """Settings of a face-like set.

    Parameters
    ----------
    n_points, n_identities, dim : int
    sizes : {"log-normal", "heavy-tailed"}
        Distribution of the number of pictures of an identity.
    spread : float
        Variance of a picture around its mode; the variance of centres is 1.
    n_modes : int
        Most modes of one identity; their number is drawn uniformly from 1 to this.
    mode_spread : float
        Variance of a mode around its identity's centre.
    family_size : int
        Mean number of identities in a family. Identities of one family are easily confused.
    family_share : float, in [0, 1)
        Share of a centre's variance that its family has in common.
    poor_share : float, in [0, 1]
        Share of the pictures of poor quality, which lie far from their mode.
    n_looks, look_spread : optional
        Names of `n_modes` and `mode_spread` in version 0.1; to be removed in version 0.3.
    """

    n_points: int
    n_identities: int
    dim: int = 128
    sizes: Sizes = "log-normal"
    spread: float = 0.40
    n_modes: int = 4
    mode_spread: float = 0.10
    family_size: int = 6
    family_share: float = 0.65
    poor_share: float = 0.05
    n_looks: InitVar[int | None] = None
    look_spread: InitVar[float | None] = None

    def __post_init__(self, n_looks: int | None, look_spread: float | None) -> None:
        self._take_old_name("n_looks", n_looks, "n_modes")
        self._take_old_name("look_spread", look_spread, "mode_spread")
        if self.dim < 4 or not 1 <= self.n_identities <= self.n_points:
            raise SettingError(
                f"got n_points={self.n_points}, n_identities={self.n_identities}, dim={self.dim}, "
                "expected 1 <= n_identities <= n_points and dim >= 4; choose other counts"
            )
        if self.sizes not in ("log-normal", "heavy-tailed"):
            raise SettingError(f"sizes={self.sizes!r} is not known; use log-normal or heavy-tailed")
        if not 0 <= self.family_share < 1 or min(self.n_modes, self.family_size) < 1:
            raise SettingError(
                f"got family_share={self.family_share}, n_modes={self.n_modes}, "
                f"family_size={self.family_size}, expected a share in [0, 1) and counts from 1 on"
            )

    def _take_old_name(self, old: str, value: float | None, new: str) -> None:
        if value is not None:
            warnings.warn(
                f"the parameter `{old}` is now called `{new}`, and will be removed in version 0.3; "
                f"use {new}={value!r}",
                FutureWarning,
                stacklevel=4,
            )
            object.__setattr__(self, new, value)

    @property
    def mean_size(self) -> float:
        """Mean number of pictures of an identity."""
        return self.n_points / self.n_identities

    def scaled(self, factor: float) -> FaceLikeSettings:
        """The same settings with `factor` times the identities and the same sizes of these."""
        if not factor > 0:
            raise SettingError(f"scale={factor!r} must be above 0; 1 is the full set")
        n_identities = max(2, round(self.n_identities * factor))
        n_points = max(n_identities, round(self.n_points * factor))
        return replace(self, n_points=n_points, n_identities=n_identities)


_FILM = FaceLikeSettings(
    201_240, 251, 128, "heavy-tailed", spread=0.85, family_share=0.8, poor_share=0.08
)
_SPECIES = FaceLikeSettings(135_660, 2_452, 512, "heavy-tailed", spread=0.8)

# Points, identities and width of the paper's data sets. The pictures of the film and of the species
# vary more: their identities are large, and with less variance all ten nearest neighbours of a
# point would be of its identity.
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
        A name of `PRESETS`, or your own settings.
    scale : float
        Share of the identities to make; the sizes of identities do not change.
    seed : int
        Of identities and pictures. Sets of different seeds have disjoint identities.
    embedder : int
        Seed of the space. Use the same for a training and a test set, as if of one network.

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
    modes = _draw_modes(shape, rng)  # (n_identities, n_modes, used)
    mode_of = rng.integers(rng.integers(1, shape.n_modes + 1, shape.n_identities)[labels])
    amount = _draw_noise_amounts(shape, labels, rng)
    used = modes.shape[2]
    rotation = _embedder_axes(shape.dim, embedder)[:used]
    deviation = _picture_deviation(used)

    features = np.empty((shape.n_points, shape.dim), dtype=np.float32)
    for rows in row_blocks(shape.n_points, shape.dim):
        block = rng.standard_normal((rows.stop - rows.start, used), dtype=np.float32)
        block *= deviation
        block *= amount[rows, None]
        block += modes[labels[rows], mode_of[rows]]
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        np.matmul(block, rotation, out=features[rows])
    return features, labels


def draw_sizes(settings: FaceLikeSettings, rng: np.random.Generator) -> IntArray:
    """Pictures of each identity, shape (n_identities,), at least 1 each, `n_points` in all."""
    if settings.sizes == "log-normal":
        weight = rng.lognormal(0.0, _SIZE_SIGMA, settings.n_identities)
    else:
        weight = rng.pareto(_TAIL_EXPONENT, settings.n_identities) + _TAIL_FROM
    spare = settings.n_points - settings.n_identities
    share = np.cumsum(weight) / weight.sum() * spare
    edges = np.round(share).astype(np.int64)
    edges[-1] = spare
    counts: IntArray = 1 + np.diff(edges, prepend=0)
    return counts


def _draw_modes(settings: FaceLikeSettings, rng: np.random.Generator) -> FloatArray:
    """Centres of every mode, shape (n_identities, n_modes, used dimensions)."""
    used = min(_MOST_USED, settings.dim)
    deviation = _centre_deviation(used)
    n_families = max(1, round(settings.n_identities / settings.family_size))
    family = rng.integers(n_families, size=settings.n_identities)
    shared = rng.standard_normal((n_families, used), dtype=np.float32) * deviation
    own = rng.standard_normal((settings.n_identities, used), dtype=np.float32) * deviation
    share = np.float32(settings.family_share)
    centres = np.sqrt(share) * shared[family] + np.sqrt(1 - share) * own
    shape = (settings.n_identities, settings.n_modes, used)
    modes = rng.standard_normal(shape, dtype=np.float32) * _picture_deviation(used)
    modes *= np.float32(np.sqrt(settings.mode_spread))
    modes += centres[:, None, :]
    return modes


def _draw_noise_amounts(
    settings: FaceLikeSettings, labels: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Standard deviation of each picture's noise, shape (n_points,)."""
    of_identity = rng.lognormal(0.0, _IDENTITY_SIGMA, settings.n_identities)
    amount = of_identity[labels] * rng.lognormal(0.0, _PICTURE_SIGMA, len(labels))
    # The mean square of a log-normal is exp(2 sigma^2). Divided by it, the mean variance is spread.
    amount *= np.sqrt(settings.spread) / np.exp(_IDENTITY_SIGMA**2 + _PICTURE_SIGMA**2)
    amount[rng.random(len(labels)) < settings.poor_share] *= _POOR_FACTOR
    noise: FloatArray = amount.astype(np.float32)
    return noise


def _centre_deviation(used: int) -> FloatArray:
    """Standard deviation of centres in each dimension, with a total variance of 1."""
    variance = (np.arange(used) + _CENTRE_SHIFT) ** -_CENTRE_DECAY
    deviation: FloatArray = np.sqrt(variance / variance.sum()).astype(np.float32)
    return deviation


def _picture_deviation(used: int) -> FloatArray:
    """Standard deviation of pictures in each dimension, with a total variance of 1."""
    variance = 1.0 - _PICTURE_DECAY * np.arange(used) / used
    deviation: FloatArray = np.sqrt(variance / variance.sum()).astype(np.float32)
    return deviation


def _embedder_axes(dim: int, embedder: int) -> npt.NDArray[np.float32]:
    """A random rotation, shape (dim, dim), so that all features are alike."""
    rng = np.random.default_rng([embedder, 1])
    axes, triangle = np.linalg.qr(rng.standard_normal((dim, dim)))
    rotation: npt.NDArray[np.float32] = (axes * np.sign(np.diag(triangle))).astype(np.float32)
    return rotation
