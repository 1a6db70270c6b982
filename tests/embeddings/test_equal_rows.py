import numpy as np
import pytest

from hilander.embeddings.equal_rows import (
    FEWEST_DISTINCT,
    are_equal,
    drop_equal_rows,
    find_equal_rows,
    merge_equal_rows,
)
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities


def repeat_rows(seed, dtype=np.float32):
    """Rows of which some occur twice or more, and the number of the distinct row of each."""
    rng = np.random.default_rng(seed)
    distinct, _ = make_identities(n_identities=8, size=5, dim=12, seed=seed)
    distinct_of = rng.permutation(np.concatenate([np.arange(40), rng.integers(40, size=25)]))
    return distinct.astype(dtype)[distinct_of], distinct_of


@pytest.fixture(scope="module")
def once():
    """250 distinct points of 25 identities, and their labels."""
    return make_identities(n_identities=25, size=10, dim=24, spread=0.8, seed=3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_group_has_all_equal_rows_and_no_others(dtype):
    features, distinct_of = repeat_rows(0, dtype)
    equal = find_equal_rows(features)
    np.testing.assert_array_equal(
        equal.group[:, None] == equal.group, distinct_of[:, None] == distinct_of
    )
    assert equal.sizes.sum() == len(features)
    for group, first in enumerate(equal.first):
        members = equal.members[equal.starts[group] : equal.starts[group + 1]]
        np.testing.assert_array_equal(members, np.flatnonzero(equal.group == group))
        assert members[0] == first
        np.testing.assert_array_equal(equal.first_of_row[members], first)
        np.testing.assert_array_equal(equal.is_repeated[members], members != first)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.longdouble])
def test_equal_rows_of_any_type_of_number_are_found(dtype):
    distinct = np.random.default_rng(0).integers(100, size=(40, 12)).astype(dtype)
    equal = find_equal_rows(np.concatenate([distinct, distinct[:5]]))
    np.testing.assert_array_equal(equal.group[40:], np.arange(5))
    assert len(equal.first) == 40


def test_equal_rows_of_booleans_are_found():
    equal = find_equal_rows(np.array([[True, False], [False, True], [True, False]]))
    np.testing.assert_array_equal(equal.group, [0, 1, 0])


def test_distinct_rows_give_none():
    assert find_equal_rows(make_identities(seed=1)[0]) is None


def test_zero_equals_negative_zero():
    assert find_equal_rows(np.array([[0.0, 1], [-0.0, 1]], dtype=np.float32)) is not None


def test_different_rows_with_one_hash_are_not_equal(monkeypatch):
    monkeypatch.setattr(
        "hilander.embeddings.equal_rows._hash_rows", lambda rows: np.zeros(len(rows), np.uint64)
    )
    assert find_equal_rows(np.eye(4, dtype=np.float32)) is None
    equal = find_equal_rows(np.eye(3, dtype=np.float32)[[0, 1, 0, 2]])
    np.testing.assert_array_equal(equal.first, [0, 1, 3])


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("k", [1, 3, 12, 64])
def test_equal_rows_get_the_neighbours_that_brute_force_gives(seed, k):
    features, _ = repeat_rows(seed)
    cosine = np.einsum("id,jd->ij", features, features).clip(-1, 1)
    np.fill_diagonal(cosine, -np.inf)
    graph = build_knn_graph(features, k)
    expected = np.argsort(-cosine, axis=1, kind="stable")[:, :k]
    np.testing.assert_allclose(
        graph.affinity, np.take_along_axis(cosine, expected, axis=1), atol=1e-6
    )
    # Among equal affinities the lower index comes first.
    level = np.diff(graph.affinity, axis=1) == 0
    assert (np.diff(graph.neighbours, axis=1)[level] > 0).all()


def test_if_all_rows_are_equal_the_first_are_the_neighbours():
    graph = build_knn_graph(np.tile(np.float32([[0.6, 0.8]]), (7, 1)), 3)
    np.testing.assert_array_equal(graph.neighbours[0], [1, 2, 3])
    np.testing.assert_array_equal(graph.neighbours[6], [0, 1, 2])


def test_equal_unit_rows_are_recognised_by_their_cosine():
    points, _ = make_identities(seed=2)
    assert are_equal(np.einsum("id,id->i", points, points)).all()
    assert not are_equal(build_knn_graph(points, 5).affinity).any()


def test_merged_rows_are_the_distinct_ones_in_order(once):
    points, _ = once
    twice = np.concatenate([points, points])
    distinct, equal = merge_equal_rows(twice)
    np.testing.assert_array_equal(distinct, points)
    np.testing.assert_array_equal(distinct[equal.group], twice)


def test_all_rows_are_kept_if_few_are_repeated_few_are_distinct_or_the_table_is_large(once):
    points, _ = once
    twice = np.concatenate([points, points])
    few_distinct = np.repeat(points[: FEWEST_DISTINCT - 1], 2, axis=0)
    for kept in (points, np.concatenate([points, points[:1]]), few_distinct):
        found, equal = merge_equal_rows(kept)
        assert found is kept
        assert equal is None
    assert merge_equal_rows(twice, most_bytes=points.nbytes)[1] is not None
    assert merge_equal_rows(twice, most_bytes=points.nbytes - 1)[1] is None


def test_a_training_point_that_is_repeated_in_its_identity_is_kept_once(once):
    points, labels = once
    order = np.random.default_rng(0).permutation(np.tile(np.arange(len(points)), 2))
    repeated, names = points[order], labels[order]
    kept, kept_names = drop_equal_rows(repeated, names)
    assert len(kept) == len(points)
    np.testing.assert_array_equal(np.bincount(kept_names), np.bincount(labels))
    # Equal rows of two identities are both kept: which label is wrong is not known.
    other = np.where(np.arange(len(names)) == 0, (names[0] + 1) % 25, names)
    assert len(drop_equal_rows(np.repeat(repeated, 2, axis=0), np.r_[names, other])[0]) > 250


def test_no_training_point_is_dropped_if_an_identity_would_be_left_with_one(once):
    points, labels = once
    points = points.copy()
    points[labels == 0] = points[0]
    assert drop_equal_rows(points, labels)[0] is points
