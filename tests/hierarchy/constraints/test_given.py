"""Constraints as arguments of the estimator."""

import numpy as np
import pytest

from hilander import HiLander
from hilander.errors import LabelError
from hilander.hierarchy.constraints.building import Knowledge, build_constraints
from hilander.hierarchy.constraints.given import combine_given, spread_labels


@pytest.fixture(scope="module")
def clustered(labelled):
    model = HiLander.pretrained()
    return model, labelled[0], model.cluster(labelled[0])


def apart_and_together(labels):
    """Two rows of one cluster, and two of different clusters."""
    largest = int(np.bincount(labels).argmax())
    inside = np.flatnonzero(labels == largest)[:2]
    return inside.tolist(), [int(inside[0]), int(np.flatnonzero(labels != largest)[0])]


def test_pairs_against_the_result_hold_by_row_and_by_id(clustered):
    model, X, free = clustered
    inside, across = apart_and_together(free.labels())
    by_row = model.cluster(X, must_link=[across], cannot_link=[inside])
    found = by_row.labels()
    assert found[across[0]] == found[across[1]]
    assert found[inside[0]] != found[inside[1]]
    ids = [f"face {row}" for row in range(len(X))]
    named = [[ids[row] for row in pair] for pair in (across, inside)]
    by_id = model.cluster(X, must_link=[named[0]], cannot_link=[named[1]], ids=ids)
    np.testing.assert_array_equal(found, by_id.labels())
    assert by_row.constraints.describe()["must_linked_points"] == 2


def test_known_labels_of_some_points_hold(clustered):
    model, X, free = clustered
    inside, across = apart_and_together(free.labels())
    known = np.full(len(X), None, dtype=object)
    known[inside[0]], known[inside[1]], known[across[1]] = "a", "b", "a"
    found = model.cluster(X, known_labels=known).labels()
    assert found[inside[0]] == found[across[1]] != found[inside[1]]


def test_constraints_and_pairs_given_together_all_hold(clustered):
    model, X, free = clustered
    inside, across = apart_and_together(free.labels())
    built = build_constraints(len(X), Knowledge(cannot_link=[inside]))
    found = model.cluster(X, constraints=built, must_link=[across]).labels()
    assert found[across[0]] == found[across[1]] != found[inside[1]]


def test_nothing_known_is_no_constraint(clustered):
    assert combine_given(np.zeros((3, 2))) is None
    assert combine_given(np.zeros((3, 2)), known_labels=[-1, -1, -1]) is None
    assert clustered[2].constraints is None


def test_equal_rows_that_must_be_apart_are_not_merged(clustered):
    model, X, _ = clustered
    twice = np.concatenate([X, X[:4]])
    found = model.cluster(twice, cannot_link=[(0, len(X))]).labels()
    assert found[0] != found[len(X)]
    assert (found[1:4] == found[len(X) + 1 :]).all()
    linked = model.cluster(twice, must_link=[(len(X), 50)]).labels()
    assert linked[0] == linked[len(X)] == linked[50]


def test_labels_spread_along_must_links():
    linked = build_constraints(5, Knowledge(must_link=[(0, 1), (3, 4)]))
    assert spread_labels(np.array([2, -1, 5, -1, -1]), linked).tolist() == [2, 2, 5, -1, -1]
    with pytest.raises(LabelError, match="contradicts itself: row 0 = row 1"):
        spread_labels(np.array([2, 5, -1, -1, -1]), linked)
