"""An order of the points in which every cluster of every level is a contiguous range."""

import numpy as np
import pytest

from hilander.explorer.run.nested_order import build_nested_order, order_by_density
from hilander.explorer.run.run_folder import open_run


@pytest.fixture
def run(run_folder):
    return open_run(run_folder)


def test_the_members_of_every_cluster_are_a_range_of_the_order(run):
    nested = build_nested_order(run.hierarchy)
    assert sorted(nested.order) == list(range(run.n_points))
    for level in range(run.n_levels):
        labels = run.hierarchy.labels(level)
        for cluster in range(run.hierarchy.n_clusters(level)):
            members = nested.members(level, cluster)
            assert set(members) == set(np.flatnonzero(labels == cluster))


def test_within_a_first_level_cluster_density_falls(run):
    density = run.hierarchy.density
    assert (density < 0).any()
    assert (density > 0).any()
    for cluster in range(run.hierarchy.n_clusters(0)):
        assert (np.diff(density[run.nested.members(0, cluster)]) <= 0).all()


def test_one_sort_gives_the_order_of_a_sort_by_two_keys():
    rng = np.random.default_rng(2)
    rank = rng.integers(0, 50, 4000)
    density = rng.choice([-1.0, -0.5, -0.0, 0.0, 1e-30, 0.25, 1.0, *rng.normal(size=500)], 4000)
    order = order_by_density(rank, density.astype(np.float32))
    expected = np.lexsort((-density, rank))
    np.testing.assert_array_equal(rank[order], rank[expected])
    np.testing.assert_array_equal(density[order], density[expected])


def test_children_are_the_merged_clusters_the_largest_first(run):
    assert run.n_levels > 1
    for level in range(1, run.n_levels):
        merges = run.hierarchy.merges(level - 1)
        sizes = run.hierarchy.sizes(level - 1)
        for cluster in range(run.hierarchy.n_clusters(level)):
            children = run.nested.children(level, cluster)
            assert set(children) == set(np.flatnonzero(merges == cluster))
            assert list(sizes[children]) == sorted(sizes[children], reverse=True)


def test_first_level_clusters_have_no_children(run):
    assert len(run.nested.children(0, 0)) == 0


def test_weakest_is_the_least_linkage_of_the_merges_inside(run):
    for level in range(1, run.n_levels):
        for cluster in range(run.hierarchy.n_clusters(level)):
            inside = [1.0]
            for below in range(1, level + 1):
                nodes = set(run.hierarchy.labels(below - 1)[run.nested.members(level, cluster)])
                linkage = run.hierarchy.levels[below].linkage[list(nodes)]
                inside += linkage[~np.isnan(linkage)].tolist()
            assert run.nested.tables[level].weakest[cluster] == pytest.approx(min(inside))


def test_quality_is_the_mean_confidence(run):
    table = run.nested.tables[-1]
    for cluster in range(table.n_clusters):
        rows = np.flatnonzero(table.labels == cluster)
        expected = run.hierarchy.confidence[rows].mean()
        assert table.quality[cluster] == pytest.approx(expected, abs=1e-5)
