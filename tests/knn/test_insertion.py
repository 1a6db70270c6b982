"""Rows that are inserted into a k-NN graph."""

import numpy as np
import pytest

from hilander.knn.insertion import insert_rows
from hilander.knn.search import build_knn_graph

K = 7


@pytest.fixture(scope="module")
def points():
    found = np.random.default_rng(0).normal(size=(400, 12)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("n_new", [1, 30, 250])
def test_inserted_rows_give_the_graph_of_a_search_of_all_rows(points, n_new):
    old = build_knn_graph(points[:-n_new], K)
    found = insert_rows(points, old.neighbours, old.affinity)
    whole = build_knn_graph(points, K)
    np.testing.assert_array_equal(found.neighbours, whole.neighbours)
    np.testing.assert_array_equal(found.affinity, whole.affinity)


def test_lists_that_an_inserted_row_does_not_enter_keep_their_bits(points):
    old = build_knn_graph(points[:-5], K)
    found = insert_rows(points, old.neighbours, old.affinity)
    kept = np.setdiff1d(np.arange(395), found.changed)
    assert 200 < len(kept) < 395
    np.testing.assert_array_equal(found.neighbours[kept], old.neighbours[kept])
    assert found.affinity[kept].tobytes() == old.affinity[kept].tobytes()
    lists_new = (found.neighbours >= 395).any(axis=1)
    np.testing.assert_array_equal(found.changed, np.flatnonzero(lists_new | (np.arange(400) > 394)))


def test_empty_places_are_filled_by_the_next_nearest(points):
    whole = build_knn_graph(points, K)
    neighbours, affinity = whole.neighbours.copy(), whole.affinity.copy()
    neighbours[3, [0, 4]] = -1
    neighbours[77] = -1
    found = insert_rows(points, neighbours, affinity)
    np.testing.assert_array_equal(found.neighbours, whole.neighbours)
    np.testing.assert_array_equal(found.changed, [3, 77])
