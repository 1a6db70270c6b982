import numpy as np
import pytest

from hilander.errors import GraphError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.graph.scores import EdgeScores, edge_density, score_by_labels


def triangle():
    """Three nodes, all neighbours of each other; 0 and 1 are one identity."""
    neighbours = np.array([[1, 2], [0, 2], [1, 0]])
    affinity = np.array([[0.9, -0.2], [0.9, 0.4], [0.4, -0.2]], dtype=np.float32)
    return KnnGraph(neighbours, affinity), np.array([0, 0, 1])


def test_density_is_the_mean_signed_affinity_by_hand():
    affinity = np.array([[0.8, 0.4]], dtype=np.float32)
    linkage = np.array([[0.75, 0.1]], dtype=np.float32)
    # (0.8 * 0.5 + 0.4 * -0.8) / 2
    np.testing.assert_allclose(edge_density(affinity, linkage), [0.04], atol=1e-7)


def test_scores_by_labels_by_hand():
    graph, labels = triangle()
    scores = score_by_labels(graph, labels)
    np.testing.assert_array_equal(scores.linkage, [[1, 0], [1, 0], [0, 0]])
    # (0.9 + 0.2) / 2, (0.9 - 0.4) / 2, (-0.4 + 0.2) / 2.
    # A negative affinity to another identity adds density.
    np.testing.assert_allclose(scores.density, [0.55, 0.25, -0.1], atol=1e-7)


def test_density_stays_between_minus_one_and_one():
    rng = np.random.default_rng(0)
    affinity = rng.uniform(-1, 1, size=(500, 7)).astype(np.float32)
    linkage = rng.integers(0, 2, size=(500, 7)).astype(np.float32)
    assert np.abs(edge_density(affinity, linkage)).max() <= 1


def test_densities_that_differ_by_rounding_tie_after_settling():
    density = np.array([0.3, 0.3 + 3e-8, 0.31], dtype=np.float32)
    assert density[0] != density[1]
    settled = EdgeScores(np.zeros((3, 2), np.float32), density).settle_ties().density
    assert settled[0] == settled[1]
    assert settled[2] > settled[1]
    np.testing.assert_allclose(settled, density, atol=1e-6)


@pytest.mark.parametrize(("linkage", "density"), [((3, 2), (4,)), ((3,), (3,)), ((3, 2), (3, 1))])
def test_scores_of_other_shapes_are_refused(linkage, density):
    with pytest.raises(GraphError, match="linkage must be"):
        EdgeScores(np.zeros(linkage, np.float32), np.zeros(density, np.float32))


def test_start_nodes_has_one_node_for_each_point():
    features = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    nodes = start_nodes(features)
    assert len(nodes) == 5
    np.testing.assert_array_equal(nodes.identity, features)
    np.testing.assert_array_equal(nodes.average, features)
    np.testing.assert_array_equal(nodes.size, np.ones(5))
    np.testing.assert_array_equal(nodes.point, np.arange(5))
