import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hilander.graph.knn_graph import KnnGraph
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.links import Links, cross_links
from hilander.graph.same_identity import estimate_same
from hilander.hierarchy.decoding.link_merges import agglomerate, merge_by_links

THRESHOLDS = (0.2, 0.4, 0.6, 0.8)


def estimate(pairs):
    return estimate_same(pairs.total, pairs.count, pairs.k * pairs.smaller)


def merge(links, size, least):
    return merge_by_links(LinkedPairs.of_links(links, size), estimate, least)


def same_partition(one, two):
    pairs = len(np.unique(np.stack([one, two]), axis=1).T)
    return pairs == len(np.unique(one)) == len(np.unique(two))


def random_links(seed, n_points=80, k=5, n_nodes=16):
    """Links between random parts of a ring, whose points list others that are near on it."""
    rng = np.random.default_rng(seed)
    near = np.concatenate([np.arange(-6, 0), np.arange(1, 7)])
    steps = np.stack([rng.permutation(near)[:k] for _ in range(n_points)])
    neighbours = (np.arange(n_points)[:, None] + steps) % n_points
    graph = KnnGraph(neighbours, np.full((n_points, k), 0.5, dtype=np.float32))
    cuts = np.sort(rng.permutation(np.arange(1, n_points))[: n_nodes - 1])
    labels = np.searchsorted(cuts, np.arange(n_points), side="right")
    linkage = rng.uniform(size=(n_points, k)).astype(np.float32)
    return cross_links(graph, linkage, labels, n_nodes), np.bincount(labels)


def links_of(entries, n_nodes, k):
    """Links from a dict of pairs to (count, mean linkage)."""
    count, linkage = np.zeros((2, n_nodes, n_nodes), dtype=np.float32)
    for (a, b), (number, mean) in entries.items():
        count[a, b] = count[b, a] = number
        linkage[a, b] = linkage[b, a] = number * mean
    return Links(csr_matrix(count), csr_matrix(linkage), np.zeros((2, n_nodes)), k)


def estimate_pairs(links, size, groups):
    """The estimate for each two groups of nodes that have a link between them."""
    count, total = links.count.toarray().astype(float), links.linkage.toarray().astype(float)
    found = {}
    for one in range(len(groups)):
        for other in range(one + 1, len(groups)):
            block = np.ix_(groups[one], groups[other])
            n_links = count[block].sum()
            if n_links:
                possible = links.k * min(size[groups[one]].sum(), size[groups[other]].sum())
                values = (np.array([x]) for x in (total[block].sum(), n_links, float(possible)))
                found[one, other] = float(estimate_same(*values)[0])
    return found


def groups_of(labels):
    return [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]


def merge_one_by_one(links, size, least):
    """Always merge the most probable pair of all, with sums from scratch."""
    groups = [[node] for node in range(len(size))]
    while pairs := estimate_pairs(links, size, groups):
        one, other = max(pairs, key=pairs.get)
        if pairs[one, other] < least:
            break
        groups[one] += groups.pop(other)
    labels = np.empty(len(size), dtype=np.int64)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


@pytest.mark.parametrize("seed", range(6))
def test_the_most_probable_pairs_merge_first_as_one_at_a_time(seed):
    links, size = random_links(seed)
    n_clusters = []
    for least in THRESHOLDS:
        found = merge(links, size, least)
        assert same_partition(found, merge_one_by_one(links, size, least))
        n_clusters.append(found.max() + 1)
    assert 1 <= n_clusters[0] < n_clusters[-1] <= 16


@pytest.mark.parametrize("seed", range(6))
def test_no_two_clusters_are_left_that_are_one_identity_with_the_least_probability(seed):
    links, size = random_links(seed)
    for least in THRESHOLDS:
        groups = groups_of(merge(links, size, least))
        assert max(estimate_pairs(links, size, groups).values(), default=0) < least


@pytest.mark.parametrize(("least", "merges"), [(0.69, True), (0.71, False)])
def test_two_clusters_merge_from_the_least_probability_on(least, merges):
    size = np.array([10, 40])
    low, high = 0.0, 1.0
    for _ in range(40):  # the mean linkage at which the estimate is .7
        middle = (low + high) / 2
        links = links_of({(0, 1): (30, middle)}, 2, 5)
        below = estimate_pairs(links, size, [[0], [1]])[0, 1] < 0.7
        low, high = (middle, high) if below else (low, middle)
    links = links_of({(0, 1): (30, high)}, 2, 5)
    assert (merge(links, size, least).max() == 0) == merges


def test_nothing_merges_at_a_least_probability_of_1_and_all_that_is_linked_at_0():
    links, size = random_links(0)
    assert merge(links, size, 1.0).tolist() == list(range(16))
    assert merge(links, size, 1e-9).max() == 0
    apart = links_of({(0, 1): (5, 0.5)}, 3, 5)
    assert merge(apart, np.array([4, 4, 4]), 0.0).tolist() == [0, 0, 1]


def test_without_links_every_node_stays_alone():
    assert merge(links_of({}, 3, 5), np.ones(3, dtype=np.int64), 0.0).tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(4))
def test_renumbering_the_nodes_renumbers_the_result(seed):
    links, size = random_links(seed)
    order = np.random.default_rng(seed).permutation(len(size))
    matrices = (one[order][:, order] for one in (links.count, links.linkage))
    moved = Links(*matrices, links.inside[:, order], links.k)
    for least in THRESHOLDS:
        one, two = merge(links, size, least), merge(moved, size[order], least)
        assert same_partition(one[order], two)


def test_clusters_are_numbered_by_first_appearance():
    links = links_of({(0, 3): (40, 0.9), (1, 2): (40, 0.9)}, 5, 5)
    labels = merge(links, np.full(5, 10), 0.5)
    assert labels.tolist() == [0, 1, 1, 0, 2]


@pytest.mark.parametrize("seed", range(4))
def test_falling_thresholds_in_turn_give_what_each_gives_alone(seed):
    links, size = random_links(seed)
    falling = sorted(THRESHOLDS, reverse=True)
    steps = agglomerate(LinkedPairs.of_links(links, size), estimate, falling)
    for least, (pairs, labels) in zip(falling, steps, strict=True):
        assert same_partition(labels, merge(links, size, least))
        np.testing.assert_array_equal(pairs.size, np.bincount(labels, size))


def test_another_estimate_decides_in_place_of_the_formula():
    links, size = random_links(0)
    pairs = LinkedPairs.of_links(links, size)
    assert merge_by_links(pairs, lambda some: np.zeros(len(some)), 0.5).max() == len(size) - 1
    assert merge_by_links(pairs, lambda some: np.ones(len(some)), 0.5).max() == 0


# What the formula is for.


def test_two_fragments_of_one_large_identity_merge():
    links = links_of({(0, 1): (600, 0.9)}, 2, 15)
    assert merge(links, np.array([400, 500]), 0.7).max() == 0


def test_one_probable_edge_does_not_merge_two_large_clusters():
    links = links_of({(0, 1): (1, 0.99)}, 2, 15)
    assert merge(links, np.array([400, 500]), 0.7).max() == 1


def test_one_probable_edge_is_enough_for_a_single_point():
    links = links_of({(0, 1): (1, 0.9)}, 2, 15)
    assert merge(links, np.array([1, 500]), 0.7).max() == 0


def test_the_links_to_both_sides_of_a_merge_count_together():
    size = np.array([40, 40, 40])
    apart = {(0, 2): (12, 0.9), (1, 2): (12, 0.9)}  # an estimate of .58 each, of .75 together
    assert merge(links_of(apart, 3, 15), size, 0.7).tolist() == [0, 1, 2]
    joined = links_of(apart | {(0, 1): (200, 0.9)}, 3, 15)
    assert merge(joined, size, 0.7).tolist() == [0, 0, 0]


def test_missing_links_to_the_rest_of_a_large_cluster_do_not_keep_its_own_fragment_away():
    n_parts = 12
    pairs = {(a, a + 1): (60, 0.9) for a in range(n_parts - 1)}  # each is linked to the next only
    found = merge(links_of(pairs, n_parts, 15), np.full(n_parts, 40), 0.7)
    assert found.max() == 0


def test_improbable_links_do_not_merge_neighbouring_clusters_however_many_they_are():
    links = links_of({(0, 1): (3000, 0.05)}, 2, 15)
    assert merge(links, np.array([400, 500]), 0.5).max() == 1
