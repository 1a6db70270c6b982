"""Ids that clusters keep."""

import numpy as np

from hilander.collection.cluster_ids import Reviewed, match_clusters


def ids_of(former, labels, next_id=100):
    match = match_clusters(np.array(former), np.array(labels), next_id)
    return match, match.ids[labels].tolist()


def test_renumbered_clusters_keep_their_ids():
    rng = np.random.default_rng(0)
    former = rng.integers(20, size=300) * 7
    codes = np.unique(former, return_inverse=True)[1]
    labels = rng.permutation(codes.max() + 1)[codes]
    match, ids = ids_of(former, labels, 140)
    np.testing.assert_array_equal(ids, former)
    assert match.next_id == 140
    assert len(match.merged) == len(match.split) == 0


def test_the_larger_of_two_that_merge_survives_and_the_other_is_recorded():
    match, ids = ids_of([5, 5, 9, 9, 9, -1], [0, 0, 0, 0, 0, 0])
    assert set(ids) == {9}
    assert match.merged.tolist() == [[9, 5]]


def test_the_larger_part_of_a_split_keeps_the_id_and_the_other_gets_a_new_one():
    match, ids = ids_of([5, 5, 5, 5, 5], [1, 1, 1, 0, 0])
    assert ids == [5, 5, 5, 100, 100]
    assert match.split.tolist() == [[5, 100]]
    assert match.next_id == 101


def test_a_cluster_that_is_scattered_loses_its_id_for_ever():
    match, ids = ids_of([5, 5, 5, 6, 6], [0, 1, 2, 3, 3])
    assert 5 not in ids
    assert len(set(ids)) == 4
    assert match.next_id == 103


def test_a_cluster_of_new_items_gets_a_number_that_was_never_used():
    match, ids = ids_of([3, 3, -1, -1], [0, 0, 1, 1], 50)
    assert ids == [3, 3, 50, 50]
    assert len(match.split) == 0


def test_what_a_review_parted_keeps_the_ids_of_the_review_and_is_recorded_as_a_split():
    before, reviewed, labels = [5, 5, 5, 5, 5, 7], [5, 5, 900, 900, 900, 7], [0, 0, 1, 1, 1, 2]
    match = match_clusters(*map(np.array, (reviewed, labels)), 901, np.array(before))
    assert match.ids[labels].tolist() == reviewed
    assert match.split.tolist() == [[5, 900]]
    assert len(match.merged) == 0
    assert match.next_id == 901


def test_what_a_review_joined_is_recorded_as_merged():
    before, reviewed, labels = [5, 5, 5, 7, 7], [5, 5, 5, 5, 5], [0, 0, 0, 0, 0]
    match = match_clusters(*map(np.array, (reviewed, labels)), 8, np.array(before))
    assert match.ids.tolist() == [5]
    assert match.merged.tolist() == [[5, 7]]


def test_a_review_of_other_clusters_counts_for_nothing():
    ids, before, after = np.array(["a", "b", "c"]), np.array([3, 3, 4]), np.array([3, 9, 4])
    reviewed = Reviewed(ids.tolist(), before, after, 10)
    assert reviewed.correct(ids, before) is after
    assert reviewed.correct(ids[::-1], before) is before
    other = np.array([3, 3, 3])
    assert reviewed.correct(ids, other) is other


def test_ids_are_unique_whatever_happens():
    rng = np.random.default_rng(1)
    for _ in range(50):
        former, labels = rng.integers(-1, 8, size=40), rng.integers(9, size=40)
        labels = np.unique(labels, return_inverse=True)[1]
        match = match_clusters(former, labels, 8)
        assert len(np.unique(match.ids)) == len(match.ids)
        assert match.ids.max() < match.next_id
        assert (match.ids >= 0).all()
