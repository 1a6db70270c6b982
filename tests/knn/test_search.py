import numpy as np
import pytest

from hilander.errors import GraphError
from hilander.graph import knn_graph as knn_graph_module
from hilander.knn import block_plan as block_plan_module
from hilander.knn.search import build_knn_graph
from hilander.synthetic.identities import make_identities


def nearest_by_brute_force(features, k):
    """By descending cosine, then ascending index, without the row itself; in float64."""
    cosine = np.asarray(features, dtype=np.float64) @ np.asarray(features, dtype=np.float64).T
    found = []
    for row in range(len(features)):
        others = [j for j in range(len(features)) if j != row]
        found.append(sorted(others, key=lambda j: (-cosine[row, j], j))[:k])
    return np.array(found), cosine


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("k", [1, 5, 40, 149])
def test_search_finds_what_brute_force_finds(seed, k):
    features, _ = make_identities(n_identities=15, size=10, dim=12, seed=seed)
    expected, cosine = nearest_by_brute_force(features, k)
    graph = build_knn_graph(features, k)
    np.testing.assert_array_equal(graph.neighbours, expected)
    np.testing.assert_allclose(
        graph.affinity, np.take_along_axis(cosine, expected, axis=1), atol=1e-6
    )


def test_affinity_descends_along_a_row_and_stays_in_its_range():
    features, _ = make_identities(seed=4)
    affinity = build_knn_graph(features, 20).affinity
    assert (np.diff(affinity, axis=1) <= 0).all()
    assert affinity.max() <= 1
    assert affinity.min() >= -1


def test_the_graph_does_not_depend_on_the_block_size(monkeypatch):
    features, _ = make_identities(seed=3)
    whole = build_knn_graph(features, 7)
    monkeypatch.setattr(block_plan_module, "_BLOCK", 37)
    monkeypatch.setattr(knn_graph_module, "_CACHED_NUMBERS", 41 * 7 * features.shape[1])
    parts = build_knn_graph(features, 7)
    np.testing.assert_array_equal(whole.neighbours, parts.neighbours)
    np.testing.assert_array_equal(whole.affinity, parts.affinity)


def axis_vectors(seed=0, n_rows=60):
    """Rows with cosines of exactly 0 and 1, so that every tie is exact."""
    rng = np.random.default_rng(seed)
    return np.eye(4, dtype=np.float32)[rng.integers(4, size=n_rows)]


@pytest.mark.parametrize("k", [1, 4, 9, 59])
def test_ties_are_broken_by_index(k):
    features = axis_vectors()
    expected, _ = nearest_by_brute_force(features, k)
    np.testing.assert_array_equal(build_knn_graph(features, k).neighbours, expected)


@pytest.mark.parametrize("k", [15, 25, 40])
def test_affinities_and_order_are_right_where_k_cuts_a_tie(k):
    features = axis_vectors()
    expected, cosine = nearest_by_brute_force(features, k)
    graph = build_knn_graph(features, k)
    np.testing.assert_array_equal(graph.affinity, np.take_along_axis(cosine, expected, axis=1))
    level = np.diff(graph.affinity, axis=1) == 0
    assert (np.diff(graph.neighbours, axis=1)[level] > 0).all()
    np.testing.assert_array_equal(build_knn_graph(features, k).neighbours, graph.neighbours)


@pytest.mark.parametrize("k", [5, 30])
def test_among_thousands_of_equal_rows_no_node_is_its_own_neighbour(k):
    rng = np.random.default_rng(0)
    distinct, _ = make_identities(n_identities=3, size=1, dim=16, seed=0)
    distinct_of = rng.permutation(np.repeat(np.arange(3), 1_500))
    features = distinct[distinct_of]
    graph = build_knn_graph(features, k)
    assert not (graph.neighbours == np.arange(len(features))[:, None]).any()
    assert (distinct_of[graph.neighbours] == distinct_of[:, None]).all()
    np.testing.assert_allclose(graph.affinity, 1, atol=1e-6)


def test_equal_rows_have_equal_affinities():
    features, _ = make_identities(n_identities=10, size=10, dim=24, seed=1)
    doubled = np.concatenate([features] * 3)
    graph = build_knn_graph(doubled, 12)
    one, two, three = np.split(graph.affinity, 3)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(two, three)


def test_negative_cosines_are_kept():
    features = np.array([[1, 0], [-1, 0], [0, 1]], dtype=np.float32)
    np.testing.assert_array_equal(build_knn_graph(features, 2).affinity[0], [0, -1])


@pytest.mark.parametrize(
    ("k", "n_nodes", "message"),
    [
        (5, 3, "k=5 needs 6 embeddings, got only 3; use k <= 2"),
        (3, 3, "k=3 needs 4 embeddings, got only 3; use k <= 2"),
        (1, 1, "k=1 needs 2 embeddings, got only 1; give more embeddings"),
        (0, 3, "k=0 is not a number of neighbours; use k >= 1"),
        (-1, 3, "k=-1 is not a number of neighbours; use k >= 1"),
    ],
)
def test_a_k_that_is_too_large_or_not_positive_is_refused(k, n_nodes, message):
    with pytest.raises(GraphError, match=message):
        build_knn_graph(np.eye(3, dtype=np.float32)[:n_nodes], k)


@pytest.mark.parametrize("seed", [0, 1])
def test_renumbering_the_rows_renumbers_the_graph(seed):
    features, _ = make_identities(n_identities=60, size=40, dim=24, seed=seed)
    order = np.random.default_rng(seed).permutation(len(features))
    place = np.argsort(order)
    graph, moved = build_knn_graph(features, 9), build_knn_graph(features[order], 9)
    np.testing.assert_array_equal(moved.neighbours, place[graph.neighbours[order]])
    np.testing.assert_array_equal(moved.affinity, graph.affinity[order])


@pytest.mark.parametrize(
    "features", [np.ones((5, 2), dtype=np.int64), np.ones((5, 2, 1), dtype=np.float32)]
)
def test_features_that_are_not_a_matrix_of_floats_are_refused(features):
    with pytest.raises(GraphError, match="must be a floating-point array of shape"):
        build_knn_graph(features, 2)
