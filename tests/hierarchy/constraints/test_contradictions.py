"""A contradiction is an error that names the shortest chain."""

import pytest

from hilander.errors import LabelError
from hilander.hierarchy.constraints.building import Knowledge, build_constraints

IDS = list("ABCDEFGH")


def refuse(knowledge, message, ids=IDS):
    with pytest.raises(LabelError, match=message):
        build_constraints(8, knowledge, ids=ids)


def test_the_chain_is_named():
    refuse(
        Knowledge(must_link=[("A", "B"), ("B", "C")], cannot_link=[("A", "C")]),
        "A = B, B = C, but A ≠ C",
    )


def test_of_several_ways_the_shortest_chain_is_named():
    ring = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "E"), ("E", "A")]
    refuse(Knowledge(must_link=ring, cannot_link=[("A", "D")]), "A = E, E = D, but A ≠ D")


def test_of_several_contradictions_the_shortest_is_named():
    must = [("A", "B"), ("B", "C"), ("C", "D"), ("F", "G")]
    refuse(Knowledge(must_link=must, cannot_link=[("A", "D"), ("F", "G")]), "F = G, but F ≠ G")


def test_a_column_of_groups_is_one_link_of_the_chain():
    track = [0, 0, 0, 0, -1, -1, -1, -1]
    refuse(
        Knowledge(together=[track], must_link=[("D", "E")], cannot_link=[("A", "E")]),
        "A = D, D = E, but A ≠ E",
    )


def test_two_faces_of_one_photo_on_one_track_are_a_contradiction():
    photo, track = [5, -1, 5, -1, -1, -1, -1, -1], [1, 1, 1, -1, -1, -1, -1, -1]
    refuse(Knowledge(together=[track], apart=[photo]), "A = C, but A ≠ C")


def test_two_known_labels_that_must_links_join_are_a_contradiction():
    known = [0, -1, 1, -1, -1, -1, -1, -1]
    refuse(
        Knowledge(must_link=[("A", "B"), ("B", "C")], known_labels=known),
        "A = B, B = C, but A ≠ C by their known labels",
    )


def test_a_point_cannot_be_apart_from_itself():
    refuse(Knowledge(cannot_link=[("B", "B")]), "B ≠ B")


def test_rows_without_ids_are_named_by_number():
    refuse(
        Knowledge(must_link=[(0, 1)], cannot_link=[(1, 0)]), "row 0 = row 1, but row 0 ≠", ids=None
    )


def test_the_same_statement_twice_is_no_contradiction():
    twice = Knowledge(must_link=[("A", "B"), ("B", "A")], cannot_link=[("A", "C"), ("C", "A")])
    assert build_constraints(8, twice, ids=IDS).n_components == 7
