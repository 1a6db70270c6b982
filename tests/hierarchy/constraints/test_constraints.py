"""The value that holds constraints."""

import numpy as np
import pytest

from hilander.errors import FileFormatError, LabelError, SettingError
from hilander.hierarchy.constraints.building import Knowledge, build_constraints
from hilander.hierarchy.constraints.constraints import CONSTRAINTS_FILE, Constraints, check_fits
from hilander.io.digests import FileList


@pytest.fixture
def some():
    knowledge = Knowledge(
        must_link=[(0, 1), (1, 2)], apart=[[0, -1, -1, 0, 0, -1]], known_labels=[-1] * 4 + [1, 0]
    )
    return build_constraints(6, knowledge)


def all_pairs(constraints):
    left, right = np.triu_indices(constraints.n_points, 1)
    return constraints.are_apart(left, right)


def test_counts_describe_it(some):
    assert some.describe() == {"must_linked_points": 3, "apart_groups": 1, "known_labels": 2}
    assert not some.is_empty
    assert Constraints.none(4).is_empty


def test_must_links_join_exactly_the_components(some):
    left, right = some.must_links()
    assert sorted(zip(left.tolist(), right.tolist(), strict=True)) == [(0, 1), (1, 2)]


def test_contracting_to_the_components_keeps_what_is_apart(some):
    nodes = some.contract(some.component, some.n_components)
    for a in range(6):
        for b in range(6):
            ends = np.array([a]), np.array([b])
            of_nodes = tuple(some.component[end] for end in ends)
            assert some.are_apart(*ends) == nodes.are_apart(*of_nodes)


def test_clusters_that_share_a_component_are_linked(some):
    clusters = np.array([0, 1, 1, 2, 2, 3])
    nodes = some.contract(clusters, 4)
    assert nodes.component[0] == nodes.component[1]
    assert nodes.n_components == 3
    assert nodes.are_apart(np.array([0, 1, 2]), np.array([2, 2, 3])).all()


def test_renumbered_points_keep_what_is_known_of_them(some):
    new_row = np.array([7, -1, 2, 5, 0, 1])
    moved = some.renumber(new_row, 8)
    assert moved.n_points == 8
    kept = [0, 2, 3, 4, 5]
    for a in kept:
        for b in kept:
            before = some.are_apart(np.array([a]), np.array([b]))
            after = moved.are_apart(new_row[[a]], new_row[[b]])
            assert before == after
            same = some.component[a] == some.component[b]
            assert same == (moved.component[new_row[a]] == moved.component[new_row[b]])


def test_a_broken_partition_is_counted(some):
    assert some.count_broken([0, 0, 0, 1, 2, 3]) == {"together": 0, "apart": 0}
    assert some.count_broken([0, 5, 0, 1, 2, 3]) == {"together": 1, "apart": 0}
    assert some.count_broken([0, 0, 0, 0, 2, 3]) == {"together": 0, "apart": 1}
    assert some.count_broken([0, 0, 0, 1, 3, 3]) == {"together": 0, "apart": 1}


def test_saved_constraints_load_with_equal_bits(some, tmp_path):
    some.save(tmp_path)
    assert Constraints.load(FileList(tmp_path, [])).digest() == some.digest()
    assert Constraints.load(FileList(tmp_path / "elsewhere", [])) is None


def test_a_damaged_file_is_an_error(tmp_path):
    (tmp_path / CONSTRAINTS_FILE).write_bytes(b"PK nothing")
    with pytest.raises(FileFormatError, match="is damaged"):
        Constraints.load(FileList(tmp_path, []))


def test_the_digest_follows_what_is_demanded(some):
    other = build_constraints(6, Knowledge(must_link=[(0, 1), (1, 2)]))
    assert other.digest() != some.digest()


def test_constraints_of_other_points_are_refused(some):
    assert check_fits(None, 3) is None
    assert check_fits(Constraints.none(3), 3) is None
    with pytest.raises(LabelError, match="are of 6 points, X has 7 rows"):
        check_fits(some, 7)
    with pytest.raises(SettingError, match="do not fit together"):
        Constraints(np.arange(3), some.apart, some.known)
