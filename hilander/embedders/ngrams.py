"""The embedder ``ngrams``: texts without a model. It sees letters, not meaning, and is weak.

Texts that share words or parts of words are near each other; texts that say the same in other words
are not. Character n-grams are hashed, weighted by TF-IDF and reduced by a truncated singular value
decomposition, all by scikit-learn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray
from hilander.embedders.protocol import EmbedderSettings, Kind
from hilander.errors import EmbeddingError

DIM = 256
_NGRAMS = (2, 5)
_N_HASHES = 1 << 18
# Texts that the decomposition is fitted on; more change it little and take memory.
_MOST_FITTED = 100_000
_VERSION = "1"


class NgramEmbedder:
    """Embeds texts by the letters that they have in common with others.

    Attributes
    ----------
    dim : int
        256, or less for few texts. Set by `fit`.
    """

    name = "ngrams"
    kind: Kind = "text"

    def __init__(self) -> None:
        self.dim = DIM
        self.version = _VERSION
        self._steps: tuple[Any, Any, Any] | None = None

    def fit(self, texts: Sequence[str]) -> None:
        """Learn which n-grams are common and which go together.

        Parameters
        ----------
        texts : sequence of str
            Two or more different ones.
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

        known = sorted(set(texts))
        digest = hashlib.sha256("\0".join(known).encode("utf-8", "surrogatepass")).hexdigest()
        self.version = f"{_VERSION} fitted on {digest[:12]}"
        if len(known) > _MOST_FITTED:
            rng = np.random.default_rng(0)
            chosen = np.sort(rng.choice(len(known), _MOST_FITTED, replace=False))
            known = [known[number] for number in chosen]
        counts = HashingVectorizer(
            analyzer="char_wb", ngram_range=_NGRAMS, n_features=_N_HASHES, alternate_sign=False,
            norm=None,
        )  # fmt: skip
        weights = TfidfTransformer(sublinear_tf=True)
        table = weights.fit_transform(counts.transform(known))
        self.dim = min(DIM, len(known) - 1)
        if self.dim < 1:
            raise EmbeddingError(
                f"got {len(known)} different texts, expected 2 or more; the embedder 'ngrams' "
                "compares texts with each other"
            )
        reduction = TruncatedSVD(self.dim, random_state=0)
        reduction.fit(table)
        self._steps = (counts, weights, reduction)

    def embed(self, batch: Sequence[str]) -> FloatArray:
        """Embed texts.

        Parameters
        ----------
        batch : sequence of str

        Returns
        -------
        features : ndarray of shape (n, dim), float32
        """
        if self._steps is None:
            raise EmbeddingError("the embedder 'ngrams' has not learnt from texts; call fit first")
        counts, weights, reduction = self._steps
        reduced = reduction.transform(weights.transform(counts.transform(batch)))
        return np.asarray(reduced, dtype=np.float32)


def make_embedder(_: str | None, __: EmbedderSettings) -> NgramEmbedder:
    """Make the embedder; it learns from the texts when it gets them."""
    return NgramEmbedder()
