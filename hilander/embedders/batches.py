"""Collect pieces until a batch is full, embed it, and store the result of each content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray
from hilander.embedders.cache import EmbeddingCache, Result
from hilander.embedders.protocol import Embedder, Piece
from hilander.errors import EmbeddingError

NO_FACE = "has no face that was found"
NO_PIECE = "has nothing that the embedder embeds"
NOT_FINITE = "has an embedding with NaN or infinite values"


class Batches:
    """Embeds the pieces of contents in batches, and stores the results.

    Parameters
    ----------
    embedder : Embedder
    cache : EmbeddingCache
    size : int
        Pieces that the embedder gets at a time.
    """

    def __init__(self, embedder: Embedder, cache: EmbeddingCache, size: int) -> None:
        self.embedder = embedder
        self.cache = cache
        self.size = size
        self._waiting: list[tuple[bytes, list[Piece]]] = []
        self._n_pieces = 0

    def add(self, digest: bytes, pieces: list[Piece]) -> None:
        """Add the pieces of one content."""
        self._waiting.append((digest, pieces))
        self._n_pieces += len(pieces)
        if max(self._n_pieces, len(self._waiting)) >= self.size:
            self.finish()

    def finish(self) -> None:
        """Embed what waits, and commit."""
        pixels = [piece.pixels for _, pieces in self._waiting for piece in pieces]
        features = embed_all(self.embedder, pixels, self.size)
        start = 0
        for digest, pieces in self._waiting:
            rows = features[start : start + len(pieces)]
            start += len(pieces)
            if not pieces:
                reason = NO_FACE if self.embedder.kind == "face" else NO_PIECE
                self.cache.add(digest, refusal(reason))
            else:
                self.cache.add(digest, make_result(rows, pieces))
        self.cache.commit()
        self._waiting, self._n_pieces = [], 0


def make_result(features: FloatArray, pieces: Sequence[Piece] = ()) -> Result:
    """A result, or a refusal if an embedding is not finite."""
    if not np.isfinite(features).all():
        return refusal(NOT_FINITE)
    return Result(features, [piece.facts for piece in pieces])


def refusal(reason: str) -> Result:
    """A result without embeddings."""
    return Result(np.empty((0, 0), np.float32), (), reason)


def embed_all(embedder: Embedder, items: Sequence[Any], size: int) -> FloatArray:
    """Embed items in batches.

    Parameters
    ----------
    embedder : Embedder
    items : sequence
        What `Embedder.embed` takes.
    size : int
        Of a batch.

    Returns
    -------
    features : ndarray of shape (len(items), dim), float32

    Raises
    ------
    EmbeddingError
        When the embedder gives another shape.
    """
    features = np.empty((len(items), embedder.dim), np.float32)
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        given = np.asarray(embedder.embed(batch))
        if given.shape != (len(batch), embedder.dim):
            raise EmbeddingError(
                f"embedder {embedder.name!r} gave shape {given.shape} for a batch of {len(batch)}, "
                f"expected ({len(batch)}, {embedder.dim}); tell its author"
            )
        features[start : start + len(batch)] = given
    return features
