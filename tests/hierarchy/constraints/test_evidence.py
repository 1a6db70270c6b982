"""Scores of a graph, given what is known."""

import numpy as np
import pytest

from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores, edge_density
from hilander.hierarchy.constraints.building import Knowledge, build_constraints
from hilander.hierarchy.constraints.evidence import condition_scores


@pytest.fixture
def scored():
    """Node 0 lists 1 and 2; 1 and 2 list 3 and 4."""
    neighbours = np.array([[1, 2], [3, 4], [3, 4], [4, 1], [3, 2]])
    affinity = np.full((5, 2), 0.5, dtype=np.float32)
    linkage = np.array([[0.9, 0.6], [0.3, 0.3], [0.2, 0.4], [0.5, 0.5], [0.5, 0.5]], np.float32)
    return KnnGraph(neighbours, affinity), EdgeScores(linkage, edge_density(affinity, linkage))


def condition(scored, **knowledge):
    return condition_scores(*scored, build_constraints(5, Knowledge(**knowledge)))


def test_an_edge_between_points_that_are_apart_gets_linkage_zero(scored):
    found = condition(scored, cannot_link=[(1, 3)])
    assert found.linkage[1, 0] == 0
    assert found.linkage[3, 1] == 0
    assert found.linkage[1, 1] < 0.3  # 4 is likely 3, which 1 is not


def test_the_less_probable_of_two_rivals_is_lowered(scored):
    found = condition(scored, cannot_link=[(1, 2)])
    odds, rival = 0.6 / 0.4, 0.9 / 0.1
    expected = odds / (1 + rival)
    assert found.linkage[0, 0] == scored[1].linkage[0, 0]
    np.testing.assert_allclose(found.linkage[0, 1], expected / (1 + expected), rtol=1e-5)


def test_a_point_that_is_known_to_be_apart_is_no_rival(scored):
    found = condition(scored, cannot_link=[(1, 2), (0, 1)])
    assert found.linkage[0].tolist() == [0, scored[1].linkage[0, 1]]


def test_rivals_of_an_apart_column_and_of_known_labels_count_alike(scored):
    by_pair = condition(scored, cannot_link=[(1, 2)])
    by_column = condition(scored, apart=[[-1, 0, 0, -1, -1]])
    by_label = condition(scored, known_labels=[-1, 0, 1, -1, -1])
    np.testing.assert_array_equal(by_pair.linkage, by_column.linkage)
    np.testing.assert_allclose(by_pair.linkage, by_label.linkage, rtol=1e-6)


def test_a_rival_that_shares_several_groups_counts_once(scored):
    once = condition(scored, apart=[[-1, 0, 0, -1, -1]])
    twice = condition(scored, apart=[[-1, 0, 0, -1, -1], [-1, 3, 3, -1, -1]])
    np.testing.assert_array_equal(once.linkage, twice.linkage)


def test_density_follows_where_linkage_changed(scored):
    graph, scores = scored
    found = condition(scored, cannot_link=[(1, 2)])
    np.testing.assert_allclose(found.density, edge_density(graph.affinity, found.linkage))
    unchanged = (found.linkage == scores.linkage).all(axis=1)
    np.testing.assert_array_equal(found.density[unchanged], scores.density[unchanged])


def test_must_links_alone_change_no_score(scored):
    found = condition(scored, must_link=[(0, 4)])
    np.testing.assert_array_equal(found.linkage, scored[1].linkage)
