"""Preparation of embeddings before cosines are computed: unit length, centring, a linear map.

Some embedders put all embeddings into a narrow cone, where even two identities have a high cosine.
The affinities then have a small range. Subtracting the mean restores it.

The decision depends on the mean cosine of pairs of *different* identities, which is the squared
length of the direction that all share. Measured on training sets (k-NN purity at k = 10, and area
under the ROC curve for pairs of one identity against pairs of two, by cosine):

================================  ======  ================  ================
embeddings                        cosine  purity            area
================================  ======  ================  ================
faces, dlib                       0.83    0.914 -> 0.913    0.993 -> 0.993
flowers, EfficientNet             0.45    0.816 -> 0.831    0.871 -> 0.930
omniglot, raw pixels              0.23    0.119 -> 0.115    0.721 -> 0.729
omniglot, small CNN               0.03    0.734 -> 0.735    0.993 -> 0.995
random directions, 2 to 100       0.0     within 0.003      within 0.01
================================  ======  ================  ================

Faces keep their neighbours, but the mean cosines of pairs of one identity and of two change from
0.95 and 0.83 to 0.68 and 0.00. The bound of 0.3 separates the sets that gain from those that do
not; see docs/results/preparation.md, centring.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import (
    FloatArray,
    IntArray,
    drop_pages,
    exact_unit_rows,
    map_row_blocks,
    read_rows,
    row_blocks,
)
from hilander.embeddings.dominant_identity import find_dominant_identity
from hilander.embeddings.labels import encode_labels
from hilander.errors import EmbeddingError, SettingError

# Mean cosine of two identities from which on rows are centred: between the sets that gain and the
# sets that do not, see the table above.
NARROW_CONE = 0.3
# The squared length of the mean comes from the shared direction and from identities that did not
# average out because they are few. Centring removes both, so this share must be the direction.
SHARED_PART = 2 / 3
# A unit row in float32 is off by about 1e-7; a remainder below ten times that is rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Preparation:
    """How embeddings are prepared, learnt once from the training set.

    Attributes
    ----------
    mean : ndarray of shape (n_features,), float32, or None
        Mean of the normalised training rows, to be subtracted; None leaves rows uncentred.
    transform : ndarray of shape (n_features, n_features), float32, or None
        A linear map of the prepared rows, such as a whitening. Rows are normalised after it.
    training_transform : ndarray of shape (n_features, n_features), float32, or None
        A weaker map for the training points. `transform` fits them better than new points; after
        this map they are distributed as new points are after `transform`. None if they need no
        other map, and in a model read from a folder, which does not hold it.
    is_metric : bool
        Whether `transform` is a learned metric; else it is a whitening.
    per_set : bool
        Whether it was learnt from the set that it prepares, without labels.
    whitens_each_set : bool
        Whether each set is whitened within its own clusters, if that helps. Used where labels were
        too few to learn a map.
    """

    mean: FloatArray | None
    transform: FloatArray | None = None
    training_transform: FloatArray | None = None
    is_metric: bool = False
    per_set: bool = False
    whitens_each_set: bool = False

    def __post_init__(self) -> None:
        self._check_map("transform")
        self._check_map("training_transform")
        if self.mean is None:
            return
        mean = np.ascontiguousarray(self.mean, dtype=np.float32)
        if mean.ndim != 1 or not len(mean) or not np.isfinite(mean).all():
            raise SettingError(
                f"got a mean of shape {mean.shape}, expected (n_features,) finite numbers; "
                "use learn_preparation"
            )
        object.__setattr__(self, "mean", mean)

    def _check_map(self, name: str) -> None:
        if getattr(self, name) is None:
            return
        transform = np.ascontiguousarray(getattr(self, name), dtype=np.float32)
        n_features = transform.shape[0] if self.mean is None else np.size(self.mean)
        if transform.shape != (n_features, n_features) or not np.isfinite(transform).all():
            raise SettingError(
                f"got {name} of shape {transform.shape}, expected finite numbers of shape "
                "(n_features, n_features); use whiten_within or learn_metric"
            )
        object.__setattr__(self, name, transform)

    def apply(self, X: FloatArray, *, out: npt.NDArray[Any] | None = None) -> FloatArray:
        """Prepare embeddings: normalise, subtract the mean, normalise again.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            As :func:`hilander.embeddings.validation.as_embeddings` returns them, of any number
            type. Read block by block, so a memmap may be larger than memory. Not changed.
        out : ndarray of shape (n_samples, n_features), optional
            Receives the rows: float32, float16 to save memory, or a memmap to save more.

        Returns
        -------
        prepared : ndarray of shape (n_samples, n_features), float32 or as `out`
            New rows of unit length. A row that equals the mean has no direction after centring
            and keeps the uncentred one.

        Raises
        ------
        EmbeddingError
            When a row is all zeros, or the number of features is not the mean's.
        """
        learnt = self.mean if self.mean is not None else self.transform
        if learnt is not None and X.shape[1] != len(learnt):
            raise EmbeddingError(
                f"got {X.shape[1]} features, the model was trained on {len(learnt)}; use the "
                "embedder that made the training set"
            )
        prepared = np.empty(X.shape, dtype=np.float32) if out is None else out
        if prepared.shape != X.shape:
            raise SettingError(
                f"out has shape {prepared.shape}, expected the shape {X.shape} of X; give another"
            )
        refuse_zero_rows(X)
        for rows in row_blocks(*X.shape):
            prepared[rows] = self._prepare(read_rows(X, rows))
            drop_pages(X)
        return prepared

    def apply_to_training_set(self, X: FloatArray) -> FloatArray:
        """Prepare the training embeddings: `apply`, with `training_transform` if there is one."""
        if self.training_transform is None:
            return self.apply(X)
        return replace(self, transform=self.training_transform).apply(X)

    def _prepare(self, raw: FloatArray) -> npt.NDArray[Any]:
        block = exact_unit_rows(raw)
        if self.mean is not None:
            block = _centre(block, self.mean)
        if self.transform is not None:
            block = exact_unit_rows(block.astype(np.float32) @ self.transform)
        return block

    def describe(self) -> str:
        """Describe in words what is done to embeddings."""
        return self._describe_centring() + self._describe_map()

    def _describe_centring(self) -> str:
        if self.mean is None:
            return "L2-normalised"
        whose = "its own" if self.per_set else "the training"
        centring = f"centred on {whose} mean (length {np.linalg.norm(self.mean):.2f})"
        return f"L2-normalised, {centring}, normalised again"

    def _describe_map(self) -> str:
        if self.transform is not None and self.is_metric:
            return ", mapped by a metric learnt from identities"
        within = "its own clusters" if self.per_set or self.whitens_each_set else "identities"
        whitened = f", whitened within {within}"
        if self.transform is not None:
            return whitened
        return f"{whitened} where that helps" if self.whitens_each_set else ""


@dataclass(frozen=True)
class PerSetPreparation:
    """A preparation that is learnt for each set, for a model that belongs to no embedder.

    Attributes
    ----------
    centre : bool or "auto"
        As for `learn_preparation`.
    """

    centre: bool | Literal["auto"] = "auto"

    def apply(self, X: FloatArray, *, out: npt.NDArray[Any] | None = None) -> FloatArray:
        """Learn a preparation from the rows of X, without labels, and apply it to them."""
        return learn_preparation(X, self.centre).apply(X, out=out)

    apply_to_training_set = apply  # there is no training set that needs another map

    def describe(self) -> str:
        """Describe in words what is done to embeddings."""
        return (
            "L2-normalised, centred where they sit in a narrow cone, "
            "whitened within their own clusters where that helps"
        )


def learn_preparation(
    X: FloatArray,
    centre: bool | Literal["auto"] = "auto",
    *,
    labels: IntArray | None = None,
) -> Preparation:
    """Learn from training embeddings how all embeddings are prepared.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32
        Training embeddings.
    centre : bool or "auto"
        Whether the mean of the normalised rows is subtracted. "auto" does so when the embeddings
        lie in a narrow cone: the mean cosine of two identities is at least 0.3 and at least two
        thirds of the squared length of the mean. The second condition excludes a mean of few
        identities, which is mostly those identities.
    labels : ndarray of shape (n_samples,), optional
        Identities, so that "auto" can leave out the pairs of one identity. Without them it takes
        all pairs, and two or three well-separated identities look like a cone. A dominant identity
        counts with few of its points or none, see `hilander.embeddings.dominant_identity`.

    Returns
    -------
    preparation : Preparation
    """
    if centre != "auto" and not isinstance(centre, bool | np.bool_):
        raise SettingError(f'got centre={centre!r}, expected True, False or "auto"; choose one')
    refuse_zero_rows(X)
    codes = None if labels is None else encode_labels(labels, len(X))[0]
    if centre is not False and (dominant := find_dominant_identity(X, codes)) is not None:
        X = np.asarray(X[dominant.background], dtype=np.float32)
        codes = None if codes is None else codes[dominant.background]
    if centre == "auto":
        centre = measure_cone(X, codes).is_narrow
    if not centre:
        return Preparation(None)
    total = np.zeros(X.shape[1])
    for _, part in map_row_blocks(sum_unit_rows, X, X.shape[1]):
        total += part
    return Preparation((total / len(X)).astype(np.float32))


class Cone(NamedTuple):
    """How narrow a cone embeddings lie in.

    Attributes
    ----------
    pair_cosine : float, in [-1, 1]
        Mean cosine of two rows of different identities; 0 when there is no such pair.
    squared_mean : float, in [0, 1]
        Squared length of the mean of the unit rows.
    """

    pair_cosine: float
    squared_mean: float

    @property
    def is_narrow(self) -> bool:
        """Whether the rows share a direction that is worth removing."""
        is_shared = self.pair_cosine >= SHARED_PART * self.squared_mean
        return self.pair_cosine >= NARROW_CONE and is_shared


def measure_cone(X: FloatArray, labels: IntArray | None = None) -> Cone:
    """Measure the mean cosine of two identities without forming pairs.

    With ``s`` the sum of the n unit rows and ``s_c`` the sum of the n_c rows of identity c, the
    mean cosine is ``(|s|^2 - sum_c |s_c|^2) / (n^2 - sum_c n_c^2)``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32
        Embeddings, none of them zero.
    labels : ndarray of shape (n_samples,), optional
        Identities. Without them all pairs of two rows count.
    """
    n = len(X)
    codes = np.arange(0) if labels is None else encode_labels(labels, n)[0]
    sums = np.zeros((int(codes.max(initial=-1)) + 1, X.shape[1]))
    total = np.zeros(X.shape[1])
    if labels is None:
        for _, part in map_row_blocks(sum_unit_rows, X, X.shape[1]):
            total += part
    else:
        for rows in row_blocks(*X.shape):
            block = exact_unit_rows(read_rows(X, rows))
            total += block.sum(axis=0)
            order = np.argsort(codes[rows], kind="stable")
            present, starts = np.unique(codes[rows][order], return_index=True)
            sums[present] += np.add.reduceat(block[order], starts, axis=0)
    squared = float(total @ total)
    same_pairs = n if labels is None else int((np.bincount(codes).astype(np.int64) ** 2).sum())
    same_sum = float(n) if labels is None else float(np.einsum("ij,ij->", sums, sums))
    n_pairs = n * n - same_pairs
    shared = (squared - same_sum) / n_pairs if n_pairs else 0.0
    return Cone(min(1.0, max(-1.0, shared)), squared / (n * n))


def sum_unit_rows(block: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Sum of rows after each has unit length, shape (dim,)."""
    total: npt.NDArray[np.float64] = exact_unit_rows(np.asarray(block, np.float32)).sum(axis=0)
    return total


def check_varied(X: FloatArray) -> None:
    """Refuse embeddings that all point the same way.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32

    Raises
    ------
    EmbeddingError
        When all rows have one direction. A single row passes.
    """
    if len(X) < 2:
        return
    refuse_zero_rows(X)
    first = exact_unit_rows(read_rows(X, slice(0, 1)))
    for rows in row_blocks(*X.shape):
        if np.abs(exact_unit_rows(read_rows(X, rows)) - first).max() > _ROUNDING:
            return
    raise EmbeddingError(
        f"all {len(X)} embeddings of {X.shape[1]} feature(s) point the same way, expected "
        "different directions; check the embedder"
    )


def _centre(block: npt.NDArray[np.float64], mean: FloatArray) -> npt.NDArray[np.float64]:
    """Subtract the mean from unit rows and normalise; a row that equals the mean stays."""
    centred = block - mean
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    vanished = length <= _ROUNDING * np.linalg.norm(block, axis=1, keepdims=True)
    centred /= np.where(vanished, 1.0, length)
    return np.where(vanished, block, centred)


def refuse_zero_rows(X: npt.NDArray[Any]) -> None:
    """Refuse embeddings with a row of zeros; the error names the first.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), of any number type, also a mapped file
    """
    count, first = 0, -1
    for rows, zero in map_row_blocks(_find_zero_rows, X, X.shape[1]):
        if len(zero) and not count:
            first = rows.start + int(zero[0])
        count += len(zero)
    if count:
        raise EmbeddingError(
            f"row {first} is all zeros ({count} such rows), expected a direction; "
            "drop those rows or embed them again"
        )


def _find_zero_rows(block: npt.NDArray[Any]) -> IntArray:
    return np.flatnonzero(~np.asarray(block, dtype=np.float32).any(axis=1))
