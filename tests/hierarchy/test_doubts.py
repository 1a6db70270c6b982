import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.hierarchy.doubts import (
    MERGE,
    PAIR,
    doubt_merge,
    find_doubtful_merges,
    find_merge_candidates,
    pair_clusters,
)
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.level import Level


def random_graph(hierarchy, k=4, seed=0):
    rng = np.random.default_rng(seed)
    n = hierarchy.n_points
    neighbours = np.stack([rng.choice(np.delete(np.arange(n), i), k, False) for i in range(n)])
    return neighbours, rng.uniform(size=(n, k)).astype(np.float32)


def test_merges_of_clusters_are_ranked_by_doubt_and_by_the_smaller_side(hierarchy):
    found = find_doubtful_merges(hierarchy)
    expected = {}
    for level in range(1, hierarchy.n_levels):
        parent, linkage = hierarchy.parents(level)
        sizes = hierarchy.sizes(level - 1)
        for node in range(len(parent)):
            if parent[node] != node and linkage[node] < 0.98:
                smaller = min(sizes[node], sizes[parent[node]])
                expected[level, node] = (1 - linkage[node]) * np.log2(1 + smaller)
    assert expected
    assert {(one.level, one.nodes[1]) for one in found} == set(expected)
    for one in found:
        assert one.kind == MERGE
        assert one.weight == pytest.approx(expected[one.level, one.nodes[1]], rel=1e-5)
    weights = [one.weight for one in found]
    assert weights == sorted(weights, reverse=True)
    assert find_doubtful_merges(hierarchy, 3) == found[:3]


def test_a_merge_names_the_peaks_of_its_two_sides(hierarchy):
    for one in find_doubtful_merges(hierarchy):
        below = hierarchy.labels(one.level - 1)
        assert (below[one.a], below[one.b]) == one.nodes
        assert one.a in hierarchy.peaks(one.level - 1)
        assert hierarchy.labels(one.level)[one.a] == hierarchy.labels(one.level)[one.b]
        again = doubt_merge(hierarchy, one.level, one.nodes[1])
        assert (again.key, again.a, again.b) == (one.key, one.a, one.b)


def test_with_a_single_level_the_merges_are_those_of_points(hierarchy):
    alone = Hierarchy(hierarchy.levels[:1])
    parent, linkage = alone.parents(0)
    found = find_doubtful_merges(alone)
    assert {one.b for one in found} == set(np.flatnonzero(linkage < 0.98))
    assert all(parent[one.b] == one.a for one in found)


def test_a_merge_that_was_not_made_is_refused(hierarchy):
    peak = int(hierarchy.levels[1].peaks[0])
    for level, node in ((1, peak), (99, 0), (1, 10**6), (-1, 0)):
        with pytest.raises(SettingError, match=f"no merge of node {node} at level {level}"):
            doubt_merge(hierarchy, level, node)


def test_the_strength_of_a_pair_is_its_linkage_per_edge_of_the_smaller_side(hierarchy):
    neighbours, linkage = random_graph(hierarchy)
    labels, sizes = hierarchy.labels(-1), hierarchy.sizes(-1)
    pairs = pair_clusters(neighbours, linkage, labels, sizes, 10**6)
    total, best = {}, {}
    for point in range(len(labels)):
        for other, p in zip(neighbours[point], linkage[point], strict=True):
            ends = tuple(sorted((int(labels[point]), int(labels[other]))))
            if ends[0] != ends[1]:
                total[ends] = total.get(ends, 0) + p
                best[ends] = max(best.get(ends, 0), p)
    assert set(zip(pairs.a.tolist(), pairs.b.tolist(), strict=True)) == set(total)
    for a, b, strength, strongest in zip(
        pairs.a, pairs.b, pairs.strength, pairs.strongest, strict=True
    ):
        share = total[a, b] / (4 * min(sizes[a], sizes[b]))
        assert strength == pytest.approx(min(share, 1), rel=1e-4)
        assert strongest == pytest.approx(best[a, b])


def test_merge_candidates_are_ranked_by_weight(hierarchy):
    neighbours, linkage = random_graph(hierarchy)
    found = find_merge_candidates(hierarchy, neighbours, linkage, 5)
    labels = hierarchy.labels(-1)
    assert len(found) == 5
    for one in found:
        assert one.kind == PAIR
        assert one.nodes[0] < one.nodes[1]
        assert (labels[one.a], labels[one.b]) == one.nodes
    weights = [one.weight for one in found]
    assert weights == sorted(weights, reverse=True)


def test_two_halves_of_one_identity_are_the_first_merge_candidate():
    labels = np.repeat(np.arange(4), 5)
    peaks = np.arange(0, 20, 5)
    parent = peaks[labels]
    linkage = np.where(np.arange(20) == parent, np.nan, 0.9).astype(np.float32)
    flat = Hierarchy([Level(parent, linkage, np.zeros(20, np.float32), labels, peaks)])
    rng = np.random.default_rng(0)
    neighbours = np.stack([rng.choice(np.delete(np.arange(20), i), 6, False) for i in range(20)])
    between = np.isin(labels[neighbours], (1, 3)) & np.isin(labels, (1, 3))[:, None]
    first = find_merge_candidates(flat, neighbours, np.where(between, 0.6, 0.05), 1)[0]
    assert first.nodes == (1, 3)
