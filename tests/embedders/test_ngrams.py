"""The embedder without a model."""

import numpy as np
import pytest

from hilander.embedders.ngrams import DIM, NgramEmbedder
from hilander.errors import EmbeddingError

TEXTS = [f"{word} {number}" for word in ("alpha", "beta", "gamma") for number in range(5)]


def fitted(texts):
    embedder = NgramEmbedder()
    embedder.fit(texts)
    return embedder


def test_the_same_texts_give_the_same_embeddings_in_any_order():
    forward, backward = fitted(TEXTS), fitted(TEXTS[::-1])
    assert forward.version == backward.version
    assert np.array_equal(forward.embed(TEXTS), backward.embed(TEXTS))


def test_other_texts_are_another_version():
    assert fitted(TEXTS).version != fitted(TEXTS[1:]).version


def test_few_texts_have_fewer_dimensions():
    assert fitted(TEXTS).dim == len(TEXTS) - 1 < DIM
    assert fitted(TEXTS).embed(["alpha 3", "other"]).shape == (2, len(TEXTS) - 1)


def test_one_text_cannot_be_compared():
    with pytest.raises(EmbeddingError, match="got 1 different texts, expected 2 or more"):
        fitted(["a", "a"])


def test_it_must_learn_first():
    with pytest.raises(EmbeddingError, match="call fit first"):
        NgramEmbedder().embed(["a"])
