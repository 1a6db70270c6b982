import numpy as np
import pytest

from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.links import cross_links
from hilander.graph.same_identity import estimate_by_links, estimate_same
from hilander.knn.search import build_knn_graph

K = 5


def estimate(linkage, count, possible):
    """The estimate of one pair, from the mean linkage of its links."""
    values = (np.array([float(value)]) for value in (linkage * count, count, possible))
    return float(estimate_same(*values)[0])


def test_the_estimate_is_logistic_in_the_log_odds_of_the_linkage_and_the_log_of_the_coverage():
    for linkage, count, possible in ((0.9, 30, 60), (0.2, 4, 5), (0.5, 1, 1000)):
        logit = 0.85 * np.log(linkage / (1 - linkage)) + 1.07 * np.log(count / possible) + 2.65
        assert estimate(linkage, count, possible) == pytest.approx(1 / (1 + np.exp(-logit)))


def test_more_probable_links_and_more_of_them_raise_the_estimate():
    by_linkage = [estimate(linkage, 10, 100) for linkage in (0.0, 0.1, 0.5, 0.9, 1.0)]
    by_count = [estimate(0.7, count, 100) for count in (1, 10, 50, 100, 180)]
    for found in (by_linkage, by_count):
        assert found == sorted(found)
        assert len(set(found)) == 5
        assert found[0] > 0
        assert found[-1] < 1


def test_the_estimate_does_not_depend_on_the_scale_of_the_sizes():
    assert estimate(0.8, 2, 10) == pytest.approx(estimate(0.8, 2000, 10_000))


def test_pairs_of_clusters_have_the_estimate_of_their_links_for_the_smaller_of_them():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 8)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    labels = rng.permutation(np.concatenate([np.arange(20), rng.integers(20, size=40)]))
    graph = build_knn_graph(points, K)
    linkage = rng.uniform(size=graph.affinity.shape).astype(np.float32)
    size = np.bincount(labels)
    pairs = LinkedPairs.of_links(cross_links(graph, linkage, labels, 20), size)
    found = estimate_by_links(pairs)
    assert found.shape == (len(pairs),)
    here, there = labels[:, None].repeat(K, axis=1), labels[graph.neighbours]
    for low, high, value in zip(pairs.low, pairs.high, found, strict=True):
        crosses = ((here == low) & (there == high)) | ((here == high) & (there == low))
        n_links, possible = crosses.sum(), K * min(size[low], size[high])
        same = estimate(linkage[crosses].mean(), n_links, possible)
        log_odds = np.log(same / (1 - same)) + 0.6 * np.log(min(size[low], size[high], 30) / 15)
        assert value == pytest.approx(1 / (1 + np.exp(-log_odds)), abs=1e-5)


def pair_of(smaller, larger):
    """Two clusters with two links of linkage .8 for each point of the smaller one."""
    ends, sums = np.array([0]), np.array([2.0 * smaller])
    size = np.array([smaller, larger], dtype=float)
    return LinkedPairs(ends, ends + 1, sums, 0.8 * sums, size, np.zeros((2, 2)), K)


def test_small_clusters_need_more_evidence_and_large_ones_are_alike():
    found = [estimate_by_links(pair_of(size, 500))[0] for size in (1, 4, 15, 30, 400)]
    assert found[0] < found[1] < found[2] < found[3] == pytest.approx(found[4])
    assert found[2] == pytest.approx(estimate(0.8, 2, K))
