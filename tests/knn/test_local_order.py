import numpy as np
import pytest

from hilander.arrays.rows import unit_rows
from hilander.knn.local_order import find_local_order
from hilander.synthetic.identities import make_identities


@pytest.mark.parametrize("n_points", [1, 2, 60, 3_000])
def test_every_row_has_one_place(n_points):
    points = np.random.default_rng(0).normal(size=(n_points, 4)).astype(np.float32)
    assert sorted(find_local_order(points)) == list(range(n_points))


def test_rows_of_one_identity_are_near_each_other():
    points, labels = make_identities(n_identities=200, size=20, dim=16, spread=0.3, seed=0)
    shuffled = np.random.default_rng(1).permutation(len(points))
    order = find_local_order(points[shuffled])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    of = labels[shuffled]
    apart = [np.ptp(np.quantile(place[of == one], [0.1, 0.9])) for one in range(200)]
    assert np.median(apart) < 400  # in random order, about 3,200


def test_the_length_and_the_type_of_rows_do_not_matter():
    points = unit_rows(np.random.default_rng(2).normal(size=(500, 8)).astype(np.float32))
    longer = points.astype(np.float64) * 4.0
    np.testing.assert_array_equal(find_local_order(points), find_local_order(longer))


def test_rows_of_any_numbers_have_an_order():
    points = np.random.default_rng(3).integers(-5, 5, size=(400, 3))
    points[:200] = 7  # equal rows
    assert sorted(find_local_order(points)) == list(range(400))
