"""Probabilities of the clusters that a point may belong to."""

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.estimator import HiLander
from hilander.hierarchy.membership import summarise_links
from hilander.synthetic.identities import make_identities

IDS = np.array([10, 20, 30])


def test_probabilities_add_up_to_one_with_that_of_a_new_cluster():
    rng = np.random.default_rng(0)
    found, linkage = rng.integers(3, size=(50, 6)), rng.random((50, 6))
    all_of_them = summarise_links(found, linkage, IDS, 3)
    np.testing.assert_allclose(all_of_them.probability.sum(1) + all_of_them.new, 1, rtol=1e-5)
    assert (np.diff(all_of_them.probability, axis=1) <= 0).all()
    best = summarise_links(found, linkage, IDS, 1)
    np.testing.assert_array_equal(best.clusters[:, 0], all_of_them.clusters[:, 0])


def test_the_cluster_of_most_linkage_is_first_and_missing_places_are_marked():
    found = summarise_links(np.array([[0, 0, 2, 2]]), np.array([[0.9, 0.8, 0.1, 0.2]]), IDS, 3)
    assert found.clusters.tolist() == [[10, 30, -1]]
    assert found.probability[0, 2] == 0


def test_a_row_without_probable_links_is_new():
    found = summarise_links(np.array([[0, 1, 2]]), np.full((1, 3), 1e-3), IDS, 3)
    assert found.new[0] > 0.5
    sure = summarise_links(np.array([[0, 0, 0]]), np.full((1, 3), 0.99), IDS, 3)
    assert sure.new[0] < 0.05


def test_points_of_a_run_are_most_probably_in_their_own_clusters():
    X, _ = make_identities(n_identities=30, size=10, dim=24, spread=0.5, seed=1)
    hierarchy = HiLander.pretrained(device="cpu").cluster(X)
    found = hierarchy.membership(top=2)
    assert found.clusters.shape == (300, 2)
    assert (found.clusters[:, 0] == hierarchy.labels()).mean() > 0.95
    with pytest.raises(SettingError, match="top=0 is not a number"):
        hierarchy.membership(top=0)
