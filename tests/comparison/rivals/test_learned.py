import numpy as np
import pytest

from hilander.comparison.objective import mean_f
from hilander.comparison.protocol import make_graph
from hilander.comparison.rival import Problem
from hilander.comparison.rivals.learned import (
    GCN_V,
    GCN_VE,
    L_GCN,
    Connected,
    follow_confidence,
    propagate_links,
)
from hilander.graph.knn_graph import KnnGraph
from hilander.synthetic.identities import make_identities


def test_links_above_the_threshold_join_and_others_do_not() -> None:
    neighbours = np.array([[1], [0], [3], [2], [3]])
    linkage = np.array([[0.9], [0.9], [0.2], [0.2], [0.7]], dtype=np.float32)
    np.testing.assert_array_equal(propagate_links(neighbours, linkage, 0.6), [0, 0, 1, 2, 2])


def test_the_linkage_of_an_edge_is_the_mean_of_both_directions() -> None:
    neighbours = np.array([[1], [0]])
    linkage = np.array([[0.9], [0.5]], dtype=np.float32)
    assert len(np.unique(propagate_links(neighbours, linkage, 0.69))) == 1
    assert len(np.unique(propagate_links(neighbours, linkage, 0.71))) == 2


def test_a_component_that_is_too_large_is_cut_at_a_higher_threshold() -> None:
    # A chain 0-1-2-3 whose middle link is weaker, and a pair beside it.
    neighbours = np.array([[1], [2], [3], [2], [5], [4]])
    linkage = np.array([[0.95], [0.6], [0.95], [0.95], [0.5], [0.5]], dtype=np.float32)
    whole = propagate_links(neighbours, linkage, 0.4, most=10)
    assert [len(np.unique(whole[:4])), len(np.unique(whole[4:]))] == [1, 1]
    cut = propagate_links(neighbours, linkage, 0.4, most=3)
    np.testing.assert_array_equal(cut[:4] == cut[0], [True, True, False, False])
    assert cut[2] == cut[3]
    assert cut[4] == cut[5]


def test_vertices_follow_the_most_connected_of_the_more_confident() -> None:
    graph = KnnGraph(
        np.array([[1, 2], [0, 2], [0, 1], [2, 0]]),
        np.array([[0.9, 0.8], [0.9, 0.5], [0.8, 0.5], [0.4, 0.3]], dtype=np.float32),
    )
    confidence = np.array([0.5, 0.9, 0.8, 0.1], dtype=np.float32)
    problem = Problem(np.eye(4, dtype=np.float32), graph)
    state = Connected(graph, graph.affinity, confidence)
    # 0 follows 1 (0.9), 2 follows 1 only at 0.5, 3 follows 2 only at 0.4.
    np.testing.assert_array_equal(
        follow_confidence(problem, state, {"linkage": 0.45}), [0, 0, 0, 1]
    )
    np.testing.assert_array_equal(follow_confidence(problem, state, {"linkage": 0.6}), [0, 0, 1, 2])


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (GCN_V, {"k": 8, "linkage": 0.6}),
        (GCN_VE, {"k": 8, "linkage": 0.5}),
        (L_GCN, {"linkage": 0.9}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_network_trained_on_some_identities_groups_others(method, params) -> None:
    features, labels = make_identities(n_identities=40, size=15, dim=24, spread=0.6, seed=0)
    others, truth = make_identities(n_identities=30, size=15, dim=24, spread=0.6, seed=9)
    train = Problem(features, make_graph(features, 20))
    test = Problem(others, make_graph(others, 20))
    fitted = method.fit(train, labels, params)
    found = method.cluster(test, method.start(test, fitted, params), params)
    assert mean_f(truth, found) > 0.8
    again = method.fit(train, labels, params)
    np.testing.assert_array_equal(
        method.cluster(test, method.start(test, again, params), params), found
    )
