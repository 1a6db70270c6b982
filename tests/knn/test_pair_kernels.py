"""Pairs that are compared in any order and in any parts give the same lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilander.sharded.lists import Lists, Table, search_known


def make_rows(n_rows, dim, seed, steps=3):
    """Unit rows with many equal cosines."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-steps, steps + 1, (n_rows, dim)).astype(np.float32)
    rows[~rows.any(axis=1)] = 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True).astype(np.float32)


def compare_all(rows, count):
    from hilander.knn.pair_kernels import compare_rows

    table = Table.of(rows, np.arange(len(rows)), count)
    everyone = np.arange(len(rows))
    compare_rows(table.arrays, everyone, table.arrays, everyone, True)
    return table.lists


def test_lists_are_those_of_all_cosines():
    rows = make_rows(300, 20, 0, steps=1_000)
    found = compare_all(rows, 9)
    cosine = rows.astype(np.float64) @ rows.T.astype(np.float64)
    np.fill_diagonal(cosine, -np.inf)
    assert np.array_equal(found.column, np.argsort(-cosine, axis=1)[:, :9])
    np.testing.assert_allclose(found.value, -np.sort(-cosine, axis=1)[:, :9], atol=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    n_rows=st.integers(3, 90), dim=st.integers(2, 40), seed=st.integers(0, 99),
    count=st.integers(1, 12), n_parts=st.integers(1, 6),
)  # fmt: skip
def test_parts_in_any_order_give_the_same_lists(n_rows, dim, seed, count, n_parts):
    from hilander.knn.pair_kernels import compare_rows

    rows = make_rows(n_rows, dim, seed)
    expected = compare_all(rows, count)
    rng = np.random.default_rng(seed)
    parts = np.array_split(rng.permutation(n_rows), n_parts)
    merged = Lists.empty(np.arange(n_rows), count)
    pairs = [(a, b) for a in range(n_parts) for b in range(a, n_parts)]
    for a, b in rng.permutation(pairs):
        table = Table.of(rows, np.arange(n_rows), count)
        compare_rows(table.arrays, parts[a], table.arrays, parts[b], bool(a == b))
        compare_rows(table.arrays, parts[b], table.arrays, parts[a], bool(a == b))
        table.settle([])
        merged.merge(table.lists)
    assert np.array_equal(merged.column, expected.column)
    assert np.array_equal(merged.value, expected.value)


@pytest.mark.parametrize("start", [0, 5])
def test_known_rows_are_searched_among_consecutive_rows(start):
    rows = make_rows(40, 8, 3)
    number = np.array([0, 6, 7, 20])
    found = search_known(number, rows[number], rows[start:30], start, 4)
    table = Table.of(rows, np.arange(40), 40)
    expected = compare_all(rows, 39)
    for row, column in zip(number, found.column, strict=True):
        allowed = [one for one in expected.column[row] if start <= one < 30]
        assert column.tolist() == allowed[:4]
    assert len(table.number) == 40


def test_an_entry_goes_along_with_its_exact_cosine():
    rows = make_rows(50, 12, 1)
    table = Table.of(rows, np.arange(50), 5)
    expected = compare_all(rows, 5)
    table.lists.merge(expected)
    other = Lists(expected.row, expected.value, expected.column, expected.value + 1)
    merged = Lists.empty(expected.row, 5)
    merged.merge(other)
    merged.merge(other)
    np.testing.assert_array_equal(merged.exact, expected.value + 1)
