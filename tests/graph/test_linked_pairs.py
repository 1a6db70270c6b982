"""Pairs of linked clusters: sums while clusters merge equal sums over the points' edges."""

import numpy as np
import pytest

from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.links import cross_links
from hilander.knn.search import build_knn_graph

N_POINTS, K, N_CLUSTERS = 60, 5, 14


@pytest.fixture(params=range(3))
def scored(request):
    """A graph of random points, linkages, and a cluster for each point."""
    rng = np.random.default_rng(request.param)
    points = rng.normal(size=(N_POINTS, 10)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    graph = build_knn_graph(points, K)
    linkage = rng.uniform(size=graph.affinity.shape).astype(np.float32)
    some = rng.integers(N_CLUSTERS, size=N_POINTS - N_CLUSTERS)
    return graph, linkage, rng.permutation(np.concatenate([np.arange(N_CLUSTERS), some]))


def pairs_of(scored, labels):
    graph, linkage, _ = scored
    links = cross_links(graph, linkage, labels, int(labels.max()) + 1)
    return LinkedPairs.of_links(links, np.bincount(labels))


def as_dict(pairs):
    values = zip(pairs.low, pairs.high, pairs.count, pairs.total, strict=True)
    return {(int(low), int(high)): (count, total) for low, high, count, total in values}


def test_every_pair_is_there_once_with_the_sums_of_its_edges(scored):
    graph, linkage, labels = scored
    pairs = pairs_of(scored, labels)
    assert (pairs.low < pairs.high).all()
    here, there = np.repeat(labels, K), labels[graph.neighbours].ravel()
    for (low, high), (count, total) in as_dict(pairs).items():
        crosses = ((here == low) & (there == high)) | ((here == high) & (there == low))
        assert count == crosses.sum() > 0
        assert total == pytest.approx(linkage.ravel()[crosses].sum(), rel=1e-5)
    assert pairs.count.sum() == (here != there).sum()


def test_edges_inside_and_leaving_add_up_to_all_edges(scored):
    graph, linkage, labels = scored
    pairs = pairs_of(scored, labels)
    here, there = np.repeat(labels, K), labels[graph.neighbours].ravel()
    joins = here == there
    np.testing.assert_array_equal(pairs.inside[0], np.bincount(here[joins], minlength=N_CLUSTERS))
    assert pairs.inside[1].sum() + pairs.total.sum() == pytest.approx(linkage.sum(), rel=1e-5)
    assert pairs.leaving.sum() == pytest.approx(2 * pairs.total.sum())


def test_merged_pairs_equal_pairs_computed_from_the_points(scored):
    labels, pairs = scored[2], pairs_of(scored, scored[2])
    rng = np.random.default_rng(5)
    for fewer in (8, 4, 2):
        n_before = len(pairs.size)
        some = rng.integers(fewer, size=n_before - fewer)
        number = rng.permutation(np.concatenate([np.arange(fewer), some]))
        before = pairs
        pairs, source = pairs.merge(number, fewer)
        labels = number[labels]
        expected = pairs_of(scored, labels)
        found, wanted = as_dict(pairs), as_dict(expected)
        assert found.keys() == wanted.keys()
        for ends, values in found.items():
            assert values == pytest.approx(wanted[ends], rel=1e-5)
        np.testing.assert_array_equal(pairs.size, expected.size)
        np.testing.assert_allclose(pairs.inside, expected.inside, rtol=1e-5)
        # A former pair of each is between the same two clusters.
        ends = np.sort(number[np.stack([before.low[source], before.high[source]])], axis=0)
        np.testing.assert_array_equal(ends, np.stack([pairs.low, pairs.high]))


def test_some_of_the_pairs_keep_what_their_clusters_have_with_others(scored):
    pairs = pairs_of(scored, scored[2])
    part = pairs.take(pairs.count > np.median(pairs.count))
    assert 0 < len(part) < len(pairs)
    np.testing.assert_array_equal(part.leaving, pairs.leaving)
