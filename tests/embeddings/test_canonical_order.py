"""The canonical order follows from the content of the rows."""

import numpy as np
import pytest

from hilander.arrays import rows as row_module
from hilander.arrays.reordered import reorder_rows
from hilander.embeddings.canonical_order import find_canonical_order, invert_order


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(500, 24)).astype(np.float32)


def test_permuted_rows_have_the_same_canonical_rows(points):
    wanted = points[find_canonical_order(points)]
    for seed in range(5):
        permuted = np.random.default_rng(seed).permutation(points)
        np.testing.assert_array_equal(permuted[find_canonical_order(permuted)], wanted)


def test_blocks_do_not_matter(points, monkeypatch):
    whole = find_canonical_order(points)
    monkeypatch.setattr(row_module, "_BLOCK_VALUES", 700)
    np.testing.assert_array_equal(find_canonical_order(points), whole)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_the_number_type_does_not_matter(points, dtype):
    coarse = points.astype(np.float16)
    expected = find_canonical_order(coarse)
    np.testing.assert_array_equal(find_canonical_order(coarse.astype(dtype)), expected)


@pytest.mark.parametrize("factor", [2.0**-140, 0.5, 1024.0, 1e-3, 3.0, 1e30])
def test_a_common_factor_does_not_matter_beyond_rounding(points, factor):
    doubled = points.astype(np.float64)
    expected = find_canonical_order(doubled)
    np.testing.assert_array_equal(find_canonical_order(doubled * factor), expected)


def test_a_rotation_keeps_nearly_all_places(points):
    points = points + np.float32(0.1)
    rotation, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(24, 24)))
    rotated = (points.astype(np.float64) @ rotation).astype(np.float32)
    assert (find_canonical_order(rotated) == find_canonical_order(points)).mean() > 0.98


def test_rows_of_zeros_come_first(points):
    points[[7, 300]] = 0
    np.testing.assert_array_equal(find_canonical_order(points)[:2], [7, 300])


def test_squares_that_overflow_or_underflow_do_not_matter(points):
    expected = find_canonical_order(points)
    for exponent in (-900, 900):
        scaled = np.ldexp(points.astype(np.float64), exponent)
        np.testing.assert_array_equal(find_canonical_order(scaled), expected)


def test_ties_are_broken_by_content_and_equal_rows_keep_their_order(points):
    rows = np.concatenate([points[:50], 2 * points[:50], points[:50]])
    order = find_canonical_order(rows)
    for place, row in enumerate(order):
        if row < 50:  # the row, its copy, then twice the row
            assert order[place + 1] == row + 100
            assert order[place + 2] == row + 50
    permutation = np.random.default_rng(1).permutation(len(rows))
    again = rows[permutation]
    np.testing.assert_array_equal(again[find_canonical_order(again)], rows[order])


def test_rows_with_one_cosine_are_told_apart_by_the_second(monkeypatch):
    # Whole numbers in two dimensions beside the first direction: many exact ties of the first key.
    rng = np.random.default_rng(3)
    rows = rng.integers(-2, 3, size=(400, 3)).astype(np.float64)
    rows = rows[rows.any(axis=1)]
    for seed in range(5):
        permuted = np.random.default_rng(seed).permutation(rows)
        expected = rows[find_canonical_order(rows)]
        np.testing.assert_array_equal(permuted[find_canonical_order(permuted)], expected)


def test_an_order_is_inverted(points):
    order = find_canonical_order(points)
    rank = invert_order(order)
    np.testing.assert_array_equal(order[rank], np.arange(len(points)))
    np.testing.assert_array_equal(points[order][rank], points)


def test_reordered_rows_read_like_an_array(points, tmp_path):
    np.save(tmp_path / "a.npy", points)
    order = find_canonical_order(points)
    for base in (points, np.load(tmp_path / "a.npy", mmap_mode="r")):
        view, copy = reorder_rows(base, order), points[order]
        assert (view.shape, view.dtype, len(view)) == (copy.shape, copy.dtype, len(copy))
        for chosen in (slice(7, 30), np.array([3, 3, 499]), copy[:, 0] > 0):
            np.testing.assert_array_equal(view[chosen], copy[chosen])
        np.testing.assert_array_equal(np.asarray(view), copy)
        row_module.drop_pages(view)
        np.testing.assert_array_equal(view[:5], copy[:5])
