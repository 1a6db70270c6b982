"""Levels of parts that are cut out and joined again."""

import numpy as np
import pytest

from hilander.collection.splice import Part, join_levels, select_levels
from hilander.embeddings.canonical_order import find_canonical_order
from hilander.estimator import HiLander
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.rules import Rules
from hilander.synthetic.identities import make_identities


@pytest.fixture(scope="module")
def hierarchy():
    X, _ = make_identities(n_identities=60, size=12, dim=8, spread=0.6, seed=2)
    # In canonical order clusters are numbered by first appearance, as those of joined levels are.
    found = HiLander.pretrained(device="cpu").cluster(X[find_canonical_order(X)])
    assert found.n_levels > 1, found
    return found


def test_parts_of_whole_clusters_joined_are_the_hierarchy_again(hierarchy):
    chosen = hierarchy.labels() % 3 == 0
    parts = [
        Part(np.flatnonzero(side), select_levels(hierarchy.levels, side))
        for side in (chosen, ~chosen)
    ]
    for order in (parts, parts[::-1]):
        levels = join_levels(order, hierarchy.n_points, Rules())
        assert len(levels) == hierarchy.n_levels
        for found, expected in zip(levels, hierarchy.levels, strict=True):
            for name in ("parent", "labels", "peaks"):
                np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
            assert found.linkage.tobytes() == expected.linkage.tobytes()
            assert found.density.tobytes() == expected.density.tobytes()


def test_a_part_with_fewer_levels_keeps_its_clusters(hierarchy):
    chosen = hierarchy.labels() % 2 == 0
    short = select_levels(hierarchy.levels, chosen)[:1]
    parts = [
        Part(np.flatnonzero(chosen), short),
        Part(np.flatnonzero(~chosen), select_levels(hierarchy.levels, ~chosen)),
    ]
    found = Hierarchy(join_levels(parts, hierarchy.n_points, Rules()))
    np.testing.assert_array_equal(
        np.unique(found.labels()[chosen], return_inverse=True)[1],
        np.unique(hierarchy.labels(0)[chosen], return_inverse=True)[1],
    )
    assert len(np.unique(found.labels()[~chosen])) == len(np.unique(hierarchy.labels()[~chosen]))
