import numpy as np
import pytest

from hilander.knn.nearest_lists import Candidates, NearestLists, best_of_each_row, best_of_matrix


def some_candidates(seed, n_rows=20, n_columns=50, size=2_000):
    """Pairs, many of them repeated with the same value."""
    rng = np.random.default_rng(seed)
    table = rng.uniform(-1, 1, size=(n_rows, n_columns)).astype(np.float32)
    row = rng.integers(n_rows, size=size).astype(np.int32)
    column = rng.integers(n_columns, size=size).astype(np.int32)
    return Candidates(row, column, table[row, column]), table


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_parts", [1, 7, 100])
def test_lists_hold_the_best_candidates_in_whatever_parts_they_come(seed, n_parts):
    found, table = some_candidates(seed)
    lists = NearestLists(len(table), 6)
    for part in np.array_split(np.arange(len(found)), n_parts):
        lists.merge(found.where(part))
    seen = np.full_like(table, -np.inf)
    seen[found.row, found.column] = found.value
    expected = np.argsort(-seen, axis=1)[:, :6]
    np.testing.assert_array_equal(lists.column, expected)
    np.testing.assert_array_equal(lists.value, np.take_along_axis(seen, expected, axis=1))
    np.testing.assert_array_equal(lists.floor, lists.value[:, -1])


def test_empty_places_are_marked():
    lists = NearestLists(3, 4)
    lists.merge(Candidates(np.int32([1, 1]), np.int32([2, 0]), np.float32([-0.5, 0.25])))
    np.testing.assert_array_equal(lists.column[1], [0, 2, -1, -1])
    assert (lists.column[[0, 2]] == -1).all()
    assert (lists.floor == -np.inf).all()


def test_the_best_of_each_row_are_ordered_by_row_and_descending_value_across_zero():
    value = np.float32([0.1, -0.3, 0.0, -0.1, 0.9, -1.0, -np.inf])
    found = Candidates(np.int32([5, 5, 5, 5, 2, 2, 2]), np.arange(7, dtype=np.int32), value)
    np.testing.assert_array_equal(best_of_each_row(found, 3), [4, 5, 6, 0, 2, 3])


@pytest.mark.parametrize("levels", [10**6, 5])
@pytest.mark.parametrize("count", [1, 4, 9])
def test_the_largest_entries_of_a_matrix_are_found_with_ties(levels, count):
    rng = np.random.default_rng(count)
    matrix = (rng.integers(levels, size=(30, 9)) / levels).astype(np.float32)
    columns = best_of_matrix(matrix, count)
    assert columns.shape == (30, count)
    assert all(len(set(row)) == count for row in columns.tolist())
    taken = np.sort(np.take_along_axis(matrix, columns, axis=1), axis=1)
    np.testing.assert_array_equal(taken, np.sort(matrix, axis=1)[:, 9 - count :])
