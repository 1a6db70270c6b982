"""Must-links between clusters join them, or move a misfit."""

import numpy as np
import pytest

from hilander.arrays.rows import unit_rows
from hilander.graph.nodes import start_nodes
from hilander.hierarchy.constraints.building import Knowledge, build_constraints
from hilander.hierarchy.constraints.enforcement import join_components
from hilander.hierarchy.constraints.joining import relocate_misfits


@pytest.fixture
def nodes():
    """Three clusters of five points in two dimensions; point 4 lies in the third."""
    angle = np.repeat([0.0, 1.5, 3.0], 5) + np.tile([-0.1, -0.05, 0.0, 0.05, 0.1], 3)
    angle[4] = 3.0
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    return start_nodes(unit_rows(rows))


LABELS = np.repeat([0, 1, 2], 5)


def relocate(nodes, pairs):
    constraints = build_constraints(15, Knowledge(must_link=pairs))
    moved = relocate_misfits(nodes, LABELS, constraints)
    return moved, join_components(moved, constraints)


def test_two_clusters_whose_points_fit_are_joined_whole(nodes):
    moved, joined = relocate(nodes, [(2, 7)])
    np.testing.assert_array_equal(moved, LABELS)
    assert (joined[:10] == joined[0]).all()
    assert joined[10] != joined[0]


def test_a_point_that_fits_the_other_cluster_better_moves_alone(nodes):
    moved, joined = relocate(nodes, [(4, 12)])
    assert moved[4] == moved[12]
    assert (moved[:4] == moved[0]).all()
    assert moved[0] != moved[12]
    assert len(np.unique(joined)) == 3


def test_must_links_within_a_cluster_change_nothing(nodes):
    moved, joined = relocate(nodes, [(0, 1), (10, 14)])
    np.testing.assert_array_equal(moved, LABELS)
    np.testing.assert_array_equal(joined, LABELS)


def test_a_cluster_that_is_wholly_linked_is_joined_and_not_moved(nodes):
    labels = LABELS.copy()
    labels[4] = 3
    constraints = build_constraints(15, Knowledge(must_link=[(4, 12)]))
    moved = relocate_misfits(nodes, labels, constraints)
    np.testing.assert_array_equal(moved, labels)
    assert join_components(moved, constraints)[4] == join_components(moved, constraints)[12]
