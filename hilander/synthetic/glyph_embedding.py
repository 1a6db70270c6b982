"""An embedding of glyphs: oriented gradients, projected to directions that separate characters.

No weights are shipped. The projection is fitted in a second or two on characters that are neither
trained on nor clustered later.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilander.errors import EmbeddingError
from hilander.synthetic.glyphs import GlyphSet, make_glyphs, split_characters

EMBEDDING_DIM = 64
N_ORIENTATIONS = 8
CELL_PX = 4
_CHUNK = 1024  # pictures at a time; their votes take about 50 MB
# Share of the mean eigenvalue added before whitening: with few views of few characters the
# smallest within-character variances are noise, and dividing by them would blow it up.
_SHRINKAGE = 0.5


@dataclass(frozen=True)
class GlyphEmbedder:
    """A linear map of oriented gradients, fitted by `fit_glyph_embedder`.

    Attributes
    ----------
    mean : ndarray of shape (n_gradients,), float64
    projection : ndarray of shape (n_gradients, dim), float64
    """

    mean: NDArray[np.float64]
    projection: NDArray[np.float64]

    def embed(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Embed pictures.

        Parameters
        ----------
        images : ndarray of shape (n, size, size), uint8
            Of the size that the embedder was fitted on.

        Returns
        -------
        features : ndarray of shape (n, dim), float32
            Of length 1.
        """
        gradients = describe_gradients(images)
        if gradients.shape[1] != len(self.mean):
            raise EmbeddingError(
                f"pictures of shape {images.shape[1:]} have {gradients.shape[1]} gradient values, "
                f"the embedder was fitted on {len(self.mean)}; draw them in the same size"
            )
        features = (gradients - self.mean) @ self.projection  # (n, dim)
        features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
        return features.astype(np.float32)


@dataclass(frozen=True)
class GlyphData:
    """Embedded glyphs to train on and, of other characters, to cluster.

    Attributes
    ----------
    train_features, test_features : ndarray of shape (n, dim), float32
        Of length 1.
    train_labels, test_labels : ndarray of shape (n,), str
        Characters; no character is in both.
    train_ids, test_ids : ndarray of shape (n,), str
        Such as ``U+0416-Manrope-Bold``.
    test_thumbs : ndarray of shape (n_test, size, size), uint8
    """

    train_features: NDArray[np.float32]
    train_labels: NDArray[np.str_]
    train_ids: NDArray[np.str_]
    test_features: NDArray[np.float32]
    test_labels: NDArray[np.str_]
    test_ids: NDArray[np.str_]
    test_thumbs: NDArray[np.uint8]


def make_glyph_data(seed: int = 0, max_characters: int | None = None) -> GlyphData:
    """Draw glyphs, fit the embedding on some characters, embed the others.

    Parameters
    ----------
    seed : int
        The same seed and the same fonts give the same data.
    max_characters : int, optional
        Use only so many characters, for a smaller and quicker set.

    Returns
    -------
    data : GlyphData
        Rows in shuffled order.
    """
    glyphs = make_glyphs(seed=seed, max_characters=max_characters)
    split = split_characters(glyphs.characters.tolist(), seed=seed)
    rng = np.random.default_rng(seed)
    embedder = fit_glyph_embedder(glyphs.of(split.embedding))
    train = _shuffle(glyphs.of(split.train), rng)
    test = _shuffle(glyphs.of(split.test), rng)
    return GlyphData(
        train_features=embedder.embed(train.images),
        train_labels=train.characters,
        train_ids=train.ids,
        test_features=embedder.embed(test.images),
        test_labels=test.characters,
        test_ids=test.ids,
        test_thumbs=test.images,
    )


def _shuffle(glyphs: GlyphSet, rng: np.random.Generator) -> GlyphSet:
    order = rng.permutation(len(glyphs))
    return GlyphSet(glyphs.images[order], glyphs.characters[order], glyphs.fonts[order])


def fit_glyph_embedder(glyphs: GlyphSet, dim: int = EMBEDDING_DIM) -> GlyphEmbedder:
    """Fit the projection: whiten the variation within characters, keep the widest between them.

    With ``W`` the covariance of views around the mean of their character and ``T`` that of all
    views, the projection is ``P = W^(-1/2) V``, where ``V`` are the leading eigenvectors of
    ``W^(-1/2) T W^(-1/2)``: differences between fonts become small, and the directions
    are ordered by how well they separate characters.

    Parameters
    ----------
    glyphs : GlyphSet
    dim : int
        Width of the embedding.

    Returns
    -------
    embedder : GlyphEmbedder
    """
    gradients = describe_gradients(glyphs.images)
    names, character_of = np.unique(glyphs.characters, return_inverse=True)
    n_views, n_values = gradients.shape
    if len(names) < 2 or n_views <= len(names) or not 1 <= dim <= n_values:
        raise EmbeddingError(
            f"got {n_views} views of {len(names)} characters for dim={dim}, expected several views "
            f"of 2 or more characters and 1 <= dim <= {n_values}; draw more characters"
        )
    mean = gradients.mean(axis=0)
    centred = gradients - mean
    sums = np.zeros((len(names), n_values))
    np.add.at(sums, character_of, centred)
    centres = sums / np.bincount(character_of)[:, None]
    within = centred - centres[character_of]

    values, vectors = np.linalg.eigh(within.T @ within / n_views)
    whitening = (vectors / np.sqrt(values + _SHRINKAGE * values.mean())) @ vectors.T
    white = centred @ whitening
    _, directions = np.linalg.eigh(white.T @ white / n_views)  # ascending
    return GlyphEmbedder(mean, whitening @ directions[:, ::-1][:, :dim])


def describe_gradients(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Histograms of oriented gradients, after Dalal and Triggs (2005).

    Every pixel votes with the length of its gradient, for the two nearest of `N_ORIENTATIONS`
    directions over the full circle. Votes are summed in cells of `CELL_PX` pixels, and a cell's
    histogram is taken once in each 2 x 2 block of cells it belongs to, the block scaled to length
    1, clipped at 0.2 and scaled again.

    Parameters
    ----------
    images : ndarray of shape (n, size, size), uint8
        `size` a multiple of `CELL_PX`, at least two cells.

    Returns
    -------
    gradients : ndarray of shape (n, (size / CELL_PX - 1)**2 * 4 * N_ORIENTATIONS), float64
    """
    if images.ndim != 3 or images.shape[1] != images.shape[2]:
        raise EmbeddingError(
            f"got pictures of shape {images.shape}, expected (n, size, size); "
            "pass grey square pictures"
        )
    size = images.shape[1]
    if size % CELL_PX or size < 2 * CELL_PX:
        raise EmbeddingError(
            f"got pictures of {size} x {size}, expected a multiple of {CELL_PX} from "
            f"{2 * CELL_PX} on; draw them with size=28"
        )
    chunks = [
        _describe_chunk(images[start : start + _CHUNK].astype(np.float64) / 255)
        for start in range(0, max(len(images), 1), _CHUNK)
    ]
    return np.concatenate(chunks)


def _describe_chunk(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    n, size, _ = pixels.shape
    n_cells = size // CELL_PX
    down, right = np.gradient(pixels, axis=(1, 2))
    length = np.hypot(right, down)
    turn = np.arctan2(down, right) / (2 * np.pi) * N_ORIENTATIONS  # in bins, of any sign
    below = np.floor(turn)
    share_above = turn - below
    bins = below.astype(np.int64) % N_ORIENTATIONS

    votes = np.zeros((n, size, size, N_ORIENTATIONS))
    np.put_along_axis(votes, bins[..., None], (length * (1 - share_above))[..., None], axis=3)
    above = (bins + 1) % N_ORIENTATIONS  # never the same bin, so nothing is overwritten
    np.put_along_axis(votes, above[..., None], (length * share_above)[..., None], axis=3)

    # (n, cell row, pixel row, cell column, pixel column, orientation) -> sum over a cell's pixels
    cells = votes.reshape(n, n_cells, CELL_PX, n_cells, CELL_PX, N_ORIENTATIONS).sum(axis=(2, 4))
    blocks = np.concatenate(
        [cells[:, :-1, :-1], cells[:, :-1, 1:], cells[:, 1:, :-1], cells[:, 1:, 1:]], axis=3
    )  # (n, n_cells - 1, n_cells - 1, 4 * N_ORIENTATIONS)
    blocks = np.minimum(_scale_to_length_1(blocks), 0.2)
    n_values = (n_cells - 1) ** 2 * 4 * N_ORIENTATIONS
    return _scale_to_length_1(blocks).reshape(n, n_values)


def _scale_to_length_1(blocks: NDArray[np.float64]) -> NDArray[np.float64]:
    # The constant keeps empty and nearly empty blocks near 0.
    scaled: NDArray[np.float64] = blocks / np.sqrt((blocks**2).sum(axis=3, keepdims=True) + 1e-2)
    return scaled
