import numpy as np
import pytest

from hilander.graph.knn_graph import KnnGraph
from hilander.graph.links import cross_links
from hilander.graph.same_identity import estimate_linked, estimate_same
from hilander.knn.search import build_knn_graph

K = 5


def estimate(linkage, count, possible):
    """The estimate of one pair, from the mean linkage of its links."""
    values = (np.array([float(value)]) for value in (linkage * count, count, possible))
    return float(estimate_same(*values)[0])


def test_the_estimate_is_logistic_in_the_log_odds_of_the_linkage_and_the_log_of_the_coverage():
    for linkage, count, possible in ((0.9, 30, 60), (0.2, 4, 5), (0.5, 1, 1000)):
        logit = 0.85 * np.log(linkage / (1 - linkage)) + 1.07 * np.log(count / possible) + 2.65
        assert estimate(linkage, count, possible) == pytest.approx(1 / (1 + np.exp(-logit)))


def test_more_probable_links_and_more_of_them_raise_the_estimate():
    by_linkage = [estimate(linkage, 10, 100) for linkage in (0.0, 0.1, 0.5, 0.9, 1.0)]
    by_count = [estimate(0.7, count, 100) for count in (1, 10, 50, 100, 180)]
    for found in (by_linkage, by_count):
        assert found == sorted(found)
        assert len(set(found)) == 5
        assert found[0] > 0
        assert found[-1] < 1


def test_the_estimate_does_not_depend_on_the_scale_of_the_sizes():
    assert estimate(0.8, 2, 10) == pytest.approx(estimate(0.8, 2000, 10_000))


@pytest.fixture
def linked():
    """Clusters of random points, the links between them, and their graph of super-nodes."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 8)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    labels = rng.permutation(np.concatenate([np.arange(20), rng.integers(20, size=40)]))
    graph = build_knn_graph(points, K)
    linkage = rng.uniform(size=graph.affinity.shape).astype(np.float32)
    links = cross_links(graph, linkage, labels, 20)
    first = np.array([np.flatnonzero(labels == cluster)[0] for cluster in range(20)])
    return links, np.bincount(labels), build_knn_graph(points[first], 7)


def test_edges_of_super_nodes_have_the_estimate_of_their_links_and_0_without(linked):
    links, size, graph = linked
    found = estimate_linked(links, size, graph)
    assert found.shape == graph.neighbours.shape
    assert found.dtype == np.float32
    count, total = links.count.toarray(), links.linkage.toarray()
    for node, row in enumerate(graph.neighbours):
        for place, other in enumerate(row):
            n_links, expected = count[node, other], 0.0
            if n_links:
                possible = K * min(size[node], size[other])  # the k of the points, not of the graph
                expected = estimate(total[node, other] / n_links, n_links, possible)
            assert found[node, place] == pytest.approx(expected, abs=1e-5)
    assert 0 < (found == 0).sum() < found.size


def test_nothing_is_linked_where_no_edge_crosses():
    neighbours = np.array([[1], [0], [3], [2]])
    points = KnnGraph(neighbours, np.ones((4, 1), dtype=np.float32))
    links = cross_links(points, np.ones((4, 1), np.float32), np.array([0, 0, 1, 1]), 2)
    graph = KnnGraph(np.array([[1], [0]]), np.full((2, 1), 0.9, dtype=np.float32))
    np.testing.assert_array_equal(estimate_linked(links, np.array([2, 2]), graph), [[0], [0]])
