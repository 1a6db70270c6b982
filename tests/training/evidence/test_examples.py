"""Examples that the edge classifiers are trained on."""

import numpy as np

from hilander.graph.nodes import start_nodes
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.background import measure_background
from hilander.linkage.evidence.edge_features import add_second_stage, compute_edge_features
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.training import make_evidence_network
from hilander.synthetic.episodes import Episode
from hilander.training.evidence.examples import make_point_examples


def test_examples_of_points_say_which_edges_join_one_identity(labelled):
    episode = Episode(*labelled, 0.3)
    found = make_point_examples(episode, 6)
    assert found.examples.weight == 0.3
    assert found.examples.edge_features.shape[:2] == found.examples.same.shape == (160, 6)
    for node in range(160):
        for place, other in enumerate(found.graph.neighbours[node]):
            same = labelled[1][node] == labelled[1][other]
            assert found.examples.same[node, place] == same


def test_examples_have_the_features_that_are_computed_when_clustering(labelled):
    found = make_point_examples(Episode(*labelled), 6)
    points, graph = labelled[0], build_knn_graph(labelled[0], 6)
    np.testing.assert_array_equal(found.graph.neighbours, graph.neighbours)
    expected = compute_edge_features(graph, start_nodes(points), measure_background(points))
    np.testing.assert_allclose(found.examples.edge_features, expected, atol=1e-6)


def test_the_second_stage_has_the_same_edges_with_the_probabilities_of_the_first(labelled):
    one = make_point_examples(Episode(*labelled, 0.3), 6)
    first, _ = make_evidence_network(EvidenceSettings(hidden=8), seed=0).classifiers()
    two = one.second_stage_features(first)
    features = one.examples.edge_features
    expected = add_second_stage(one.graph, features, first.predict(features))
    np.testing.assert_array_equal(two.examples.edge_features, expected)
    np.testing.assert_array_equal(two.examples.same, one.examples.same)
    assert two.graph is one.graph
    assert two.examples.weight == 0.3
