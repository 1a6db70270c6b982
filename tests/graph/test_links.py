from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hilander.errors import GraphError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.links import cross_links
from hilander.knn.search import build_knn_graph

N_POINTS, K = 40, 5
NAMES = ("count", "linkage")


@pytest.fixture(params=range(3))
def scored(request):
    """A graph of 40 points with random linkages."""
    rng = np.random.default_rng(request.param)
    points = rng.normal(size=(N_POINTS, 12)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    graph = build_knn_graph(points, K)
    linkage = rng.uniform(size=graph.affinity.shape).astype(np.float32)
    return graph, linkage


def collect_slowly(graph, linkage, labels, n_clusters):
    """Dense matrices by a loop over the edges, each counted at both ends."""
    dense = {name: np.zeros((n_clusters, n_clusters)) for name in NAMES}
    for node in range(graph.n_nodes):
        for place, other in enumerate(graph.neighbours[node]):
            here, there = labels[node], labels[other]
            if here == there:
                continue
            for a, b in ((here, there), (there, here)):
                dense["count"][a, b] += 1
                dense["linkage"][a, b] += linkage[node, place]
    return dense


def assert_links(links, dense):
    assert links.k == K
    for name in NAMES:
        matrix = getattr(links, name).toarray()
        np.testing.assert_allclose(matrix, dense[name], atol=1e-4, err_msg=name)
        np.testing.assert_array_equal(matrix.diagonal(), 0)
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-4, err_msg=name)


def clusters_of(rng, n_nodes, n_clusters):
    free = rng.integers(n_clusters, size=n_nodes - n_clusters)
    return rng.permutation(np.concatenate([np.arange(n_clusters), free]))


def test_links_sum_the_edges_that_cross_between_clusters(scored):
    labels = clusters_of(np.random.default_rng(7), N_POINTS, 9)
    assert_links(cross_links(*scored, labels, 9), collect_slowly(*scored, labels, 9))


def test_merged_links_equal_links_computed_from_the_points(scored):
    rng = np.random.default_rng(8)
    labels, n_clusters = clusters_of(rng, N_POINTS, 15), 15
    links = cross_links(*scored, labels, n_clusters)
    for fewer in (7, 3, 1):
        merged = clusters_of(rng, n_clusters, fewer)
        labels, n_clusters = merged[labels], fewer
        links = links.merge(merged, fewer)
        assert_links(links, collect_slowly(*scored, labels, fewer))


def test_one_cluster_has_no_links(scored):
    links = cross_links(*scored, np.zeros(N_POINTS, dtype=np.int64), 1)
    assert all(getattr(links, name).nnz == 0 for name in NAMES)


def test_links_without_linkage_are_counted_and_stored():
    neighbours = np.array([[2, 3], [3, 2], [0, 1], [1, 0]])
    graph = KnnGraph(neighbours, np.full((4, 2), 0.5, dtype=np.float32))
    links = cross_links(graph, np.zeros((4, 2), np.float32), np.array([0, 0, 1, 1]), 2)
    np.testing.assert_array_equal(links.count.toarray(), [[0, 8], [8, 0]])
    assert links.linkage.nnz == links.count.nnz == 2  # a sum of 0 is stored as an entry too


def test_the_links_of_the_first_nodes_are_those_between_them(scored):
    labels = clusters_of(np.random.default_rng(10), N_POINTS, 9)
    links = cross_links(*scored, labels, 9)
    dense = {name: getattr(links, name).toarray()[:4, :4] for name in NAMES}
    assert_links(links.first(4), dense)
    assert links.first(4).count.nnz


def test_links_with_different_entries_are_refused(scored):
    labels = clusters_of(np.random.default_rng(9), N_POINTS, 9)
    links = cross_links(*scored, labels, 9)
    with pytest.raises(GraphError, match="entries at different places"):
        replace(links, linkage=csr_matrix((9, 9)))
