import numpy as np
import pytest

from hilander.embeddings.equal_rows import find_equal_rows
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities


def with_copies(seed, dtype=np.float32):
    """Rows of which some come twice or more, and the number of the distinct row of each."""
    rng = np.random.default_rng(seed)
    distinct, _ = make_identities(n_identities=8, size=5, dim=12, seed=seed)
    copy_of = rng.permutation(np.concatenate([np.arange(40), rng.integers(40, size=25)]))
    return distinct.astype(dtype)[copy_of], copy_of


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_rows_and_only_they_are_copies(dtype):
    features, copy_of = with_copies(0, dtype)
    copies = find_equal_rows(features)
    np.testing.assert_array_equal(
        copies.group[:, None] == copies.group, copy_of[:, None] == copy_of
    )
    assert copies.sizes.sum() == len(features)
    for group, first in enumerate(copies.first):
        members = copies.members[copies.starts[group] : copies.starts[group + 1]]
        np.testing.assert_array_equal(members, np.flatnonzero(copies.group == group))
        assert members[0] == first


def test_rows_that_all_differ_have_no_copies():
    assert find_equal_rows(make_identities(seed=1)[0]) is None


def test_a_zero_equals_a_negative_zero():
    assert find_equal_rows(np.array([[0.0, 1], [-0.0, 1]], dtype=np.float32)) is not None


def test_rows_of_one_code_that_differ_are_no_copies(monkeypatch):
    monkeypatch.setattr(
        "hilander.embeddings.equal_rows._hash_rows", lambda rows: np.zeros(len(rows), np.uint64)
    )
    assert find_equal_rows(np.eye(4, dtype=np.float32)) is None
    copies = find_equal_rows(np.eye(3, dtype=np.float32)[[0, 1, 0, 2]])
    np.testing.assert_array_equal(copies.first, [0, 1, 3])


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("k", [1, 3, 12, 64])
def test_rows_with_copies_get_the_neighbours_that_brute_force_gives(seed, k):
    features, _ = with_copies(seed)
    cosine = np.einsum("id,jd->ij", features, features).clip(-1, 1)
    np.fill_diagonal(cosine, -np.inf)
    graph = build_knn_graph(features, k)
    expected = np.argsort(-cosine, axis=1, kind="stable")[:, :k]
    np.testing.assert_allclose(
        graph.affinity, np.take_along_axis(cosine, expected, axis=1), atol=1e-6
    )
    # Between equal affinities the lower index stands first.
    level = np.diff(graph.affinity, axis=1) == 0
    assert (np.diff(graph.neighbours, axis=1)[level] > 0).all()


def test_where_all_rows_are_equal_the_first_are_the_neighbours():
    graph = build_knn_graph(np.tile(np.float32([[0.6, 0.8]]), (7, 1)), 3)
    np.testing.assert_array_equal(graph.neighbours[0], [1, 2, 3])
    np.testing.assert_array_equal(graph.neighbours[6], [0, 1, 2])
