"""Constraints from pairs, columns and labels."""

import numpy as np
import pytest

from hilander.errors import LabelError
from hilander.hierarchy.constraints.building import (
    Knowledge,
    build_constraints,
    join_constraints,
)


def test_must_links_join_through_others():
    built = build_constraints(6, Knowledge(must_link=[(0, 3), (3, 5)]))
    np.testing.assert_array_equal(built.component, [0, 1, 2, 0, 3, 0])


def test_rows_that_share_a_value_of_a_together_column_are_one_component():
    track = [4, -1, 4, 9, 9, -1]
    built = build_constraints(6, Knowledge(together=[track], must_link=[(0, 3)]))
    np.testing.assert_array_equal(built.component, [0, 1, 0, 0, 0, 2])


def test_what_is_apart_from_a_point_is_apart_from_its_component():
    built = build_constraints(4, Knowledge(must_link=[(0, 1)], cannot_link=[(1, 2)]))
    left, right = np.array([0, 1, 0, 2]), np.array([2, 2, 1, 3])
    np.testing.assert_array_equal(built.are_apart(left, right), [True, True, False, False])


def test_rows_of_an_apart_column_are_apart_and_minus_one_says_nothing():
    built = build_constraints(5, Knowledge(apart=[[7, 7, -1, -1, 7]]))
    left, right = np.array([0, 1, 2, 2]), np.array([1, 4, 3, 0])
    np.testing.assert_array_equal(built.are_apart(left, right), [True, True, False, False])


def test_a_column_is_held_as_groups_and_not_as_pairs():
    n_points = 5_000
    built = build_constraints(n_points, Knowledge(apart=[np.zeros(n_points, dtype=int)]))
    assert built.apart.nnz == n_points


def test_points_of_one_known_label_are_together_and_of_two_are_apart():
    built = build_constraints(5, Knowledge(known_labels=[3, -1, 3, 0, -1]))
    assert built.component[0] == built.component[2]
    assert built.are_apart(np.array([0, 0]), np.array([3, 1])).tolist() == [True, False]


def test_pairs_of_ids_are_pairs_of_the_rows_that_have_them():
    by_id = build_constraints(3, Knowledge(must_link=[("b", "c")]), ids=["a", "b", "c"])
    by_row = build_constraints(3, Knowledge(must_link=[(1, 2)]))
    assert by_id.digest() == by_row.digest()
    numbers = build_constraints(3, Knowledge(must_link=[(20, "30")]), ids=[10, 20, 30])
    assert numbers.digest() == by_row.digest()


@pytest.mark.parametrize(
    ("pairs", "ids", "message"),
    [
        ([(0, 9)], None, "holds 9, expected a row number from 0 to 3"),
        ([("a", "b")], None, "to name points by id, give their ids"),
        ([("a", "x")], list("abcd"), "names the id 'x', which no point has"),
        ([("a", "b")], list("aabc"), "names the id 'a', which several points have"),
        ([(0, 1, 2)], None, "expected pairs"),
        ([(True, 1)], None, "holds True"),
    ],
)
def test_a_pair_that_names_no_point_is_an_error(pairs, ids, message):
    with pytest.raises(LabelError, match=message):
        build_constraints(4, Knowledge(must_link=pairs), ids=ids)


def test_a_column_of_another_length_is_an_error():
    with pytest.raises(LabelError, match=r"expected ints of shape \(4,\)"):
        build_constraints(4, Knowledge(apart=[[1, 2]]))


def test_joined_constraints_demand_what_each_demands():
    one = build_constraints(6, Knowledge(must_link=[(0, 1)], cannot_link=[(1, 2)]))
    other = build_constraints(6, Knowledge(must_link=[(1, 3)], apart=[[-1, -1, -1, -1, 5, 5]]))
    both = join_constraints([one, other])
    whole = build_constraints(
        6, Knowledge(must_link=[(0, 1), (1, 3)], cannot_link=[(1, 2), (4, 5)])
    )
    left, right = np.triu_indices(6, 1)
    np.testing.assert_array_equal(both.component, whole.component)
    np.testing.assert_array_equal(both.are_apart(left, right), whole.are_apart(left, right))


def test_joined_labels_join_points_of_all_parts_and_groups_count_once():
    one = build_constraints(4, Knowledge(known_labels=[0, -1, 1, -1], cannot_link=[(0, 2)]))
    other = build_constraints(4, Knowledge(known_labels=[-1, 0, -1, -1], cannot_link=[(2, 0)]))
    both = join_constraints([one, other, one])
    np.testing.assert_array_equal(both.component, [0, 0, 1, 2])
    assert both.apart.shape[1] == 1
    third = build_constraints(4, Knowledge(known_labels=[1, -1, -1, -1]))
    with pytest.raises(LabelError, match="b has two known labels"):
        join_constraints([one, third], ["b", "c", "d", "e"])


def test_constraints_that_contradict_each_other_cannot_be_joined():
    one = build_constraints(3, Knowledge(must_link=[(0, 1)]))
    other = build_constraints(3, Knowledge(cannot_link=[(0, 1)]))
    with pytest.raises(LabelError, match="row 0 = row 1, but row 0 ≠ row 1"):
        join_constraints([one, other])
