"""The cache: results by content, embedder and version."""

import numpy as np
import pytest

from hilander.embedders.cache import CACHE_FILE, EmbeddingCache, Result, cache_key
from hilander.errors import FileFormatError, OutputError
from tests.embedders.fake_embedders import MeanColours

FACTS = (10, 20, 30)


def result(n=2):
    rows = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
    return Result(rows, [{"score": 0.5 + number} for number in range(n)])


def test_a_result_comes_back_bit_equal(tmp_path):
    with EmbeddingCache(tmp_path, "one") as cache:
        cache.add(b"digest", result())
        found = cache.get(b"digest")
    assert found is not None
    assert (found.features == result().features).all()
    assert list(found.facts) == list(result().facts)
    assert found.reason is None


def test_what_was_committed_survives_and_the_rest_does_not(tmp_path):
    cache = EmbeddingCache(tmp_path, "one")
    cache.add(b"kept", result())
    cache.commit()
    cache.add(b"lost", result())
    cache.close()
    with EmbeddingCache(tmp_path, "one") as again:
        assert again.has(b"kept")
        assert not again.has(b"lost")


def test_another_embedder_or_version_has_results_of_its_own(tmp_path):
    assert cache_key(MeanColours("1")) != cache_key(MeanColours("2"))
    with EmbeddingCache(tmp_path, "one") as cache:
        cache.add(b"digest", result())
        cache.commit()
    with EmbeddingCache(tmp_path, "two") as other:
        assert not other.has(b"digest")


def test_a_file_that_changed_has_no_digest(tmp_path):
    with EmbeddingCache(tmp_path, "one") as cache:
        cache.add_file("a.jpg", FACTS, b"digest")
        assert cache.digest_of("a.jpg", FACTS) == b"digest"
        for place in range(3):
            changed = tuple(value + (number == place) for number, value in enumerate(FACTS))
            assert cache.digest_of("a.jpg", changed) is None


def test_a_refusal_has_no_embeddings_and_a_reason(tmp_path):
    with EmbeddingCache(tmp_path, "one") as cache:
        cache.add(b"digest", Result(np.empty((0, 0), np.float32), (), "is empty"))
        found = cache.get(b"digest")
    assert found is not None
    assert found.reason == "is empty"
    assert not len(found.features)


def test_a_reader_sees_what_the_writer_committed(tmp_path):
    with (
        EmbeddingCache(tmp_path, "one") as writer,
        EmbeddingCache(tmp_path, "one", read_only=True) as reader,
    ):
        writer.add(b"digest", result())
        assert not reader.has(b"digest")
        writer.commit()
        assert reader.has(b"digest")


def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path):
    (tmp_path / CACHE_FILE).write_bytes(b"not a database, but long enough to be looked at" * 40)
    with pytest.raises(FileFormatError, match="delete it"):
        EmbeddingCache(tmp_path, "one")


def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        EmbeddingCache(tmp_path / "file" / "cache", "one")
