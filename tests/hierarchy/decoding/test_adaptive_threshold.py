import numpy as np
import pytest

from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores, score_by_labels
from hilander.hierarchy.decoding.adaptive_threshold import (
    TYPICAL_SPREAD,
    SizeDistribution,
    adapt_p_tau,
    measure_sizes,
    reassign_fragments,
)
from hilander.hierarchy.decoding.decode import decode
from hilander.hierarchy.decoding.trees import label_trees
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.knn.search import build_knn_graph
from tests.scorers import FunctionScorer


def true_edges(sizes):
    """A graph of far-apart groups of these sizes, its edges scored by the truth."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(0)
    points = np.eye(len(sizes), 32)[labels] + 0.01 * rng.standard_normal((len(labels), 32))
    points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    graph = build_knn_graph(points, 4)
    return points, graph, score_by_labels(graph, labels)


@pytest.mark.parametrize("sizes", [[6, 6, 6], [5, 10, 20, 40], [2, 2, 2, 60]])
def test_the_spread_is_that_of_the_log_size_of_a_points_cluster(sizes):
    _, graph, scores = true_edges(sizes)
    of_point = np.log(np.repeat(sizes, sizes))
    found = measure_sizes(graph, scores)
    assert found.spread == pytest.approx(of_point.std(), abs=1e-6)
    assert found.typical == np.median(np.repeat(sizes, sizes))


def with_links_of(graph, scores, points, linkage):
    """The same scores, with the links of these points at most this probable."""
    lowered = scores.linkage.copy()
    of_them = np.isin(graph.neighbours, points) | np.isin(np.arange(len(lowered)), points)[:, None]
    lowered[of_them] = np.minimum(lowered[of_them], linkage)
    return EdgeScores(lowered, scores.density)


def test_small_fragments_count_with_the_cluster_of_their_most_probable_link():
    sizes = [20, 20, 20]
    _, graph, scores = true_edges(sizes)
    fragments = [0, 20, 21, 40]
    likely = with_links_of(graph, scores, fragments, 0.4)
    assert measure_sizes(graph, likely).spread == pytest.approx(0, abs=1e-6)
    unlikely = with_links_of(graph, scores, fragments, 0.2)
    assert measure_sizes(graph, unlikely).spread > 0.5


def a_fragment_and_two_clusters(size):
    """A tiny cluster, one of four points and one of twenty; its links to these are .35 and .45."""
    labels = np.repeat([0, 1, 2], [size, 4, 20])
    n_points = len(labels)
    neighbours = (np.arange(n_points)[:, None] + [1, 2]) % n_points
    linkage = np.full((n_points, 2), 0.9, dtype=np.float32)
    neighbours[:size] = [size, size + 4]
    linkage[:size] = [0.35, 0.45]
    graph = KnnGraph(neighbours, np.full((n_points, 2), 0.5, dtype=np.float32))
    return labels, graph, EdgeScores(linkage, np.zeros(n_points, dtype=np.float32))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_small_fragments_move_along_their_most_probable_link(size):
    labels, graph, scores = a_fragment_and_two_clusters(size)
    before, linkage = labels.copy(), scores.linkage.copy()
    moved = reassign_fragments(labels, graph, scores)
    np.testing.assert_array_equal(moved, np.repeat([2, 1, 2], [size, 4, 20]))
    np.testing.assert_array_equal(labels, before)
    np.testing.assert_array_equal(scores.linkage, linkage)


def test_a_cluster_of_four_points_is_no_small_fragment():
    labels, graph, scores = a_fragment_and_two_clusters(4)
    np.testing.assert_array_equal(reassign_fragments(labels, graph, scores), labels)
    labels, graph, scores = a_fragment_and_two_clusters(1)
    scores.linkage[0] = [0.45, 0.35]
    assert reassign_fragments(labels, graph, scores)[0] == 1


@pytest.mark.parametrize(("linkage", "goes"), [(0.29, False), (0.31, True)])
def test_fragments_move_along_links_above_three_tenths(linkage, goes):
    labels, graph, scores = a_fragment_and_two_clusters(1)
    scores.linkage[0] = linkage
    assert (reassign_fragments(labels, graph, scores)[0] != 0) == goes


def test_fragments_do_not_move_to_small_clusters():
    labels, graph, scores = a_fragment_and_two_clusters(1)
    labels[5:] = 2 + np.arange(20) // 3
    assert reassign_fragments(labels, graph, scores)[0] == 1


def test_single_points_with_probable_links_do_not_lower_p_tau():
    n_of_one, n_single = 20, 60
    n_points = n_of_one + n_single
    neighbours = (np.arange(n_points)[:, None] + [1, 2]) % n_of_one
    linkage = np.where(np.arange(n_points)[:, None] < n_of_one, 0.9, [0.35, 0.3])
    graph = KnnGraph(neighbours, np.full((n_points, 2), 0.5, dtype=np.float32))
    scores = EdgeScores(linkage.astype(np.float32), np.zeros(n_points, dtype=np.float32))
    found = measure_sizes(graph, scores)
    assert found.spread == pytest.approx(0, abs=1e-6)  # all were reassigned
    assert found.typical == 1  # and most were single
    assert adapt_p_tau(0.5, found, 2.0) == 0.5


def test_a_raised_p_tau_keeps_most_links():
    wide = SizeDistribution(2.0, 20, reach=0.7)
    assert adapt_p_tau(0.6, wide._replace(reach=1.0), 2.0) > 0.85
    assert adapt_p_tau(0.6, wide, 2.0) == 0.7
    assert adapt_p_tau(0.8, wide, 2.0) == 0.8  # the chosen threshold stays
    even = SizeDistribution(0.0, 20, reach=0.1)
    assert adapt_p_tau(0.6, even, 2.0) < 0.6


def test_reach_is_the_linkage_that_seven_in_ten_probable_links_have():
    _, graph, scores = true_edges([6, 6, 6])
    linkage = np.full_like(scores.linkage, 0.4)
    linkage[:5] = np.linspace(0.51, 0.9, 5 * graph.k).reshape(5, -1)
    found = measure_sizes(graph, EdgeScores(linkage, scores.density))
    assert found.reach == pytest.approx(0.51 + 0.3 * 0.39, abs=1e-6)
    nothing = EdgeScores(np.full_like(linkage, 0.4), scores.density)
    assert measure_sizes(graph, nothing).reach == 1.0


def test_p_tau_grows_with_the_spread_and_stays_a_probability():
    spreads = (0.0, 0.8, TYPICAL_SPREAD, 1.6, 2.0, 9.0)
    taus = [adapt_p_tau(0.6, SizeDistribution(spread, 20), 1.0) for spread in spreads]
    assert taus == sorted(taus)
    assert taus[2] == pytest.approx(0.6)
    assert 0.2 < taus[0] < taus[1]
    assert taus[-2] < taus[-1] < 0.9


@pytest.mark.parametrize("p_tau", [0.0, 0.3, 1.0])
def test_p_tau_stays_without_a_slope_and_at_zero_and_one(p_tau):
    assert adapt_p_tau(p_tau, SizeDistribution(2.0, 20), 0.0) == p_tau
    if p_tau in (0.0, 1.0):
        assert adapt_p_tau(p_tau, SizeDistribution(2.0, 20), 1.0) == p_tau


def test_one_unit_of_spread_adds_one_slope_to_the_log_odds():
    for usual in (1, 20):
        raised = adapt_p_tau(0.5, SizeDistribution(TYPICAL_SPREAD + 0.5, usual), 1.4)
        assert np.log(raised / (1 - raised)) == pytest.approx(0.7)
    lowered = adapt_p_tau(0.5, SizeDistribution(TYPICAL_SPREAD - 0.5, 20), 1.4)
    assert np.log(lowered / (1 - lowered)) == pytest.approx(-0.7)


def test_p_tau_falls_less_where_clusters_are_small():
    taus = [adapt_p_tau(0.5, SizeDistribution(0.0, usual), 2.0) for usual in (1, 2, 4, 8, 100)]
    assert taus[0] == 0.5
    assert taus[0] > taus[1] > taus[2] > taus[3] == taus[4]


@pytest.mark.parametrize("decoder", ["contract", "leiden"])
def test_the_level_loop_decodes_points_at_the_adapted_threshold(decoder):
    points, graph, scores = true_edges([5, 10, 20, 40])
    # Linkage around the threshold, so that where it stands decides what merges.
    rng = np.random.default_rng(1)
    linkage = np.clip(scores.linkage * rng.uniform(0.5, 1, graph.neighbours.shape), 0.05, 0.95)
    doubtful = EdgeScores(linkage.astype(np.float32), scores.density)
    rules = Rules(k=4, p_tau=0.7, decoder=decoder, p_tau_slope=3.0)
    (step,) = walk_levels(
        points, FunctionScorer(lambda *_: doubtful), rules, graph=graph, max_levels=1
    )
    settled = doubtful.settle_ties()
    adapted = adapt_p_tau(0.7, measure_sizes(graph, settled), 3.0)
    wanted = label_trees(decode(graph, settled, adapted, decoder).index)[0]
    plain = label_trees(decode(graph, settled, 0.7, decoder).index)[0]
    np.testing.assert_array_equal(step.labels, wanted)
    assert step.parents.p_tau == adapted
    assert len(np.unique(wanted)) != len(np.unique(plain))


def test_single_points_are_not_joined_by_an_adapted_threshold():
    points, graph, scores = true_edges([1] * 30)
    unsure = EdgeScores(np.full_like(scores.linkage, 0.3), scores.density)
    rules = Rules(k=4, p_tau=0.5, decoder="leiden", p_tau_slope=2.0)
    (step,) = walk_levels(
        points, FunctionScorer(lambda *_: unsure), rules, graph=graph, max_levels=1
    )
    assert step.parents.p_tau == 0.5
    assert len(step.peaks) == 30
