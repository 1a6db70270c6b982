import itertools

import numpy as np
import pytest

from hilander.comparison.protocol import make_graph
from hilander.comparison.rival import Problem
from hilander.comparison.rivals.finch import (
    build_finch_levels,
    link_first_neighbours,
    take_finch_level,
)
from hilander.synthetic.identities import make_identities


def components_by_definition(first: np.ndarray) -> list[set[int]]:
    """The published adjacency in full: j = k(i), k(j) = i, or k(i) = k(j)."""
    n_points = len(first)
    adjacent = np.zeros((n_points, n_points), dtype=bool)
    for i in range(n_points):
        for j in range(n_points):
            adjacent[i, j] = j == first[i] or first[j] == i or first[i] == first[j]
    groups: list[set[int]] = []
    left = set(range(n_points))
    while left:
        group, border = set(), {left.pop()}
        while border:
            group |= border
            border = {int(j) for i in border for j in np.flatnonzero(adjacent[i])} - group
        left -= group
        groups.append(group)
    return sorted(groups, key=min)


def as_groups(labels: np.ndarray) -> list[set[int]]:
    groups = [set(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]
    return sorted(groups, key=min)


@pytest.mark.parametrize("seed", range(4))
def test_every_level_is_that_of_the_published_definition(seed: int) -> None:
    features, _ = make_identities(n_identities=10, size=7, dim=8, spread=0.8, seed=seed)
    levels = build_finch_levels(Problem(features, make_graph(features, 3)))
    points = [{i} for i in range(len(features))]
    for level in levels:
        means = np.stack([features[sorted(group)].mean(axis=0) for group in points])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        cosine = means @ means.T
        np.fill_diagonal(cosine, -np.inf)
        merged = components_by_definition(cosine.argmax(axis=1))
        points = [set().union(*(points[i] for i in group)) for group in merged]
        assert as_groups(level) == sorted(points, key=min)


def test_levels_only_merge_and_end_in_one_cluster() -> None:
    features, _ = make_identities(n_identities=30, size=9, dim=8, spread=0.7, seed=1)
    levels = build_finch_levels(Problem(features, make_graph(features, 3)))
    for finer, coarser in itertools.pairwise(levels):
        pairs = np.unique(np.stack([finer, coarser]), axis=1)
        assert pairs.shape[1] == finer.max() + 1
        assert coarser.max() < finer.max()
    assert levels[-1].max() == 0


def test_a_level_beyond_the_last_is_the_last() -> None:
    features, _ = make_identities(n_identities=3, size=5, seed=0)
    problem = Problem(features, make_graph(features, 3))
    levels = build_finch_levels(problem)
    np.testing.assert_array_equal(take_finch_level(problem, levels, {"level": 99}), levels[-1])


def test_two_pairs_of_mutual_neighbours_are_two_clusters() -> None:
    np.testing.assert_array_equal(link_first_neighbours(np.array([1, 0, 3, 2])), [0, 0, 1, 1])
