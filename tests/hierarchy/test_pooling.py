import numpy as np
import pytest

from hilander.graph.nodes import start_nodes
from hilander.hierarchy import pooling
from hilander.hierarchy.pooling import merge_nodes


def random_trees(rng, n_nodes, n_trees):
    labels = rng.permutation(
        np.concatenate([np.arange(n_trees), rng.integers(n_trees, size=n_nodes - n_trees)])
    )
    peaks = np.array([rng.choice(np.flatnonzero(labels == tree)) for tree in range(n_trees)])
    return labels, peaks


def test_an_average_is_the_mean_over_the_points_of_all_levels_below():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(90, 7)).astype(np.float32)
    nodes, of_point, peak_point = start_nodes(features), np.arange(90), np.arange(90)
    for n_trees in (40, 11, 1):
        labels, peaks = random_trees(rng, len(nodes), n_trees)
        nodes = merge_nodes(nodes, labels, peaks)
        of_point, peak_point = labels[of_point], peak_point[peaks]
        assert len(nodes) == n_trees
        for tree in range(n_trees):
            members = [features[point] for point in range(90) if of_point[point] == tree]
            np.testing.assert_allclose(nodes.average[tree], np.mean(members, axis=0), atol=1e-5)
            assert nodes.size[tree] == len(members)
        np.testing.assert_array_equal(nodes.point, peak_point)
        np.testing.assert_array_equal(nodes.identity, features[peak_point])


def test_merging_nothing_changes_nothing():
    features = np.random.default_rng(1).normal(size=(20, 4)).astype(np.float32)
    same = merge_nodes(start_nodes(features), np.arange(20), np.arange(20))
    np.testing.assert_array_equal(same.identity, features)
    np.testing.assert_array_equal(same.average, features)
    assert same.average.dtype == np.float32
    assert same.size.dtype == np.int64


@pytest.mark.parametrize("numbers", [1, 12, 10**6])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_trees_are_summed_alike_in_blocks_of_any_size_and_in_half_precision(
    monkeypatch, numbers, kind
):
    rng = np.random.default_rng(2)
    features = rng.normal(size=(50, 4)).astype(kind)
    labels, peaks = random_trees(rng, 50, 9)
    monkeypatch.setattr(pooling, "_BLOCK_NUMBERS", numbers)
    merged = merge_nodes(start_nodes(features), labels, peaks)
    assert merged.total.dtype == merged.identity.dtype == np.float32
    for tree in range(9):
        expected = features[labels == tree].astype(np.float64).sum(axis=0)
        np.testing.assert_allclose(merged.total[tree], expected, atol=1e-5)
