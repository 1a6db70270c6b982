import numpy as np
import pytest

from hilander.arrays.rows import drop_pages, is_mapped, read_rows
from hilander.embeddings.preparation import Preparation, learn_preparation
from hilander.embeddings.validation import as_embeddings
from hilander.errors import EmbeddingError, SettingError
from hilander.io.memory import format_memory, parse_memory
from hilander.synthetic.identities import make_identities


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [
        ("512MB", 512 * 10**6), ("4GB", 4 * 10**9), ("4GiB", 4 * 2**30), ("1.5 gb", 1_500_000_000),
        ("100kb", 100_000), ("2TiB", 2 * 2**40), (123_456, 123_456), (np.int64(7_000), 7_000),
    ],
)  # fmt: skip
def test_an_amount_is_parsed(text, n_bytes):
    assert parse_memory(text) == n_bytes


@pytest.mark.parametrize("text", ["", "4", "GB", "four GB", "-1GB", "0GB", 0, -5, True, 4.5, None])
def test_other_values_are_refused(text):
    with pytest.raises(SettingError, match="write it like 512MB, 4GB or 4GiB"):
        parse_memory(text)


@pytest.mark.parametrize("n_bytes", [1, 10**6, 640 * 10**6, 999_600_000, 3_100_000_000, 10**13])
def test_a_formatted_amount_can_be_parsed(n_bytes):
    assert parse_memory(format_memory(n_bytes)) == pytest.approx(n_bytes, rel=0.06, abs=10**6)


@pytest.fixture(params=["float16", "float32", "float64", ">f4", "int16"])
def mapped(request, tmp_path):
    """The same points as a file of several number types, mapped."""
    features, _ = make_identities(n_identities=9, size=8, dim=12, seed=4)
    stored = (features * 100).astype(request.param)
    np.save(tmp_path / "x.npy", stored)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def test_stored_embeddings_are_given_back_as_they_are(mapped):
    found = as_embeddings(mapped, as_stored=True)
    assert np.shares_memory(found, mapped)
    assert found.dtype == mapped.dtype
    assert is_mapped(found)
    assert not is_mapped(np.array(mapped))


def test_preparing_stored_embeddings_gives_what_preparing_a_copy_gives(mapped, monkeypatch):
    monkeypatch.setattr("hilander.arrays.rows._BLOCK_VALUES", 60)
    before = np.array(mapped)
    copied = as_embeddings(np.array(mapped))
    preparation = learn_preparation(copied, True)
    stored = as_embeddings(mapped, as_stored=True)
    np.testing.assert_array_equal(preparation.apply(stored), preparation.apply(copied))
    np.testing.assert_array_equal(mapped, before)


def test_rows_can_be_prepared_into_half_precision_and_into_a_file(tmp_path):
    features, _ = make_identities(seed=1)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(features.shape[1],) * 2))[0]
    preparation = Preparation(None, transform=rotation)
    expected = preparation.apply(features)
    for out in (
        np.empty(features.shape, dtype=np.float16),
        np.lib.format.open_memmap(tmp_path / "f.npy", "w+", np.float16, features.shape),
    ):
        assert preparation.apply(features, out=out) is out
        np.testing.assert_allclose(out, expected, atol=1e-3)
    with pytest.raises(SettingError, match="out has shape"):
        preparation.apply(features, out=np.empty((3, 3), dtype=np.float16))


def test_bad_values_of_stored_embeddings_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("hilander.arrays.rows._BLOCK_VALUES", 10)
    rows = np.ones((9, 5), dtype=np.float16)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        rows[6, 2] = value
        np.save(tmp_path / "x.npy", rows)
        with pytest.raises(EmbeddingError, match=f"row 6 holds {word}"):
            as_embeddings(np.load(tmp_path / "x.npy", mmap_mode="r"), as_stored=True)
    with pytest.raises(EmbeddingError, match=r"row 1 holds 1e\+39, a value too large"):
        as_embeddings(np.array([[1.0, 2.0], [1e39, 0.0]]), as_stored=True)


def test_pages_are_dropped_and_changes_are_not_lost(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((50, 40)))
    for mode, kept in (("r+", 7.0), ("c", 9.0)):
        mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
        mapped[3] = kept
        drop_pages(mapped)
        assert (mapped[3] == kept).all()
    drop_pages(np.zeros(3))


def test_rows_are_read_as_float32_without_a_copy_where_possible():
    rows = np.ones((4, 2), dtype=np.float32)
    assert np.shares_memory(read_rows(rows, slice(1, 3)), rows)
    assert read_rows(rows.astype(np.float16), slice(0, 2)).dtype == np.float32
