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
    assert found.usual == np.median(np.repeat(sizes, sizes))


def with_links_of(graph, scores, points, linkage):
    """The same scores, but these points have no likelier link than this."""
    lowered = scores.linkage.copy()
    of_them = np.isin(graph.neighbours, points) | np.isin(np.arange(len(lowered)), points)[:, None]
    lowered[of_them] = np.minimum(lowered[of_them], linkage)
    return EdgeScores(lowered, scores.density)


def test_points_that_were_left_alone_count_with_those_they_are_likely_linked_to():
    sizes = [20, 20, 20]
    _, graph, scores = true_edges(sizes)
    strays = [0, 20, 21, 40]
    likely = with_links_of(graph, scores, strays, 0.4)
    assert measure_sizes(graph, likely).spread == pytest.approx(0, abs=1e-6)
    unlikely = with_links_of(graph, scores, strays, 0.2)
    assert measure_sizes(graph, unlikely).spread > 0.5


def pieces_and_homes(size):
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
def test_tiny_clusters_go_where_their_likeliest_link_leads(size):
    labels, graph, scores = pieces_and_homes(size)
    before, linkage = labels.copy(), scores.linkage.copy()
    home = reassign_fragments(labels, graph, scores)
    np.testing.assert_array_equal(home, np.repeat([2, 1, 2], [size, 4, 20]))
    np.testing.assert_array_equal(labels, before)
    np.testing.assert_array_equal(scores.linkage, linkage)


def test_four_points_are_no_strays_and_can_be_a_home():
    labels, graph, scores = pieces_and_homes(4)
    np.testing.assert_array_equal(reassign_fragments(labels, graph, scores), labels)
    labels, graph, scores = pieces_and_homes(1)
    scores.linkage[0] = [0.45, 0.35]
    assert reassign_fragments(labels, graph, scores)[0] == 1


@pytest.mark.parametrize(("linkage", "goes"), [(0.29, False), (0.31, True)])
def test_a_link_is_likely_from_three_tenths_on(linkage, goes):
    labels, graph, scores = pieces_and_homes(1)
    scores.linkage[0] = linkage
    assert (reassign_fragments(labels, graph, scores)[0] != 0) == goes


def test_tiny_clusters_are_no_home():
    labels, graph, scores = pieces_and_homes(1)
    labels[5:] = 2 + np.arange(20) // 3
    assert reassign_fragments(labels, graph, scores)[0] == 1


def test_strangers_with_likely_links_do_not_let_p_tau_fall():
    n_of_one, n_strangers = 20, 60
    n_points = n_of_one + n_strangers
    neighbours = (np.arange(n_points)[:, None] + [1, 2]) % n_of_one
    linkage = np.where(np.arange(n_points)[:, None] < n_of_one, 0.9, [0.35, 0.3])
    graph = KnnGraph(neighbours, np.full((n_points, 2), 0.5, dtype=np.float32))
    scores = EdgeScores(linkage.astype(np.float32), np.zeros(n_points, dtype=np.float32))
    found = measure_sizes(graph, scores)
    assert found.spread == pytest.approx(0, abs=1e-6)  # all are at home
    assert found.usual == 1  # and most were alone
    assert adapt_p_tau(0.5, found, 2.0) == 0.5


def test_p_tau_rises_no_further_than_most_links_reach():
    wide = SizeDistribution(2.0, 20, reach=0.7)
    assert adapt_p_tau(0.6, wide._replace(reach=1.0), 2.0) > 0.85
    assert adapt_p_tau(0.6, wide, 2.0) == 0.7
    assert adapt_p_tau(0.8, wide, 2.0) == 0.8  # and what was chosen stays
    even = SizeDistribution(0.0, 20, reach=0.1)
    assert adapt_p_tau(0.6, even, 2.0) < 0.6


def test_most_of_the_links_above_even_odds_are_seven_in_ten():
    _, graph, scores = true_edges([6, 6, 6])
    linkage = np.full_like(scores.linkage, 0.4)
    linkage[:5] = np.linspace(0.51, 0.9, 5 * graph.k).reshape(5, -1)
    found = measure_sizes(graph, EdgeScores(linkage, scores.density))
    assert found.reach == pytest.approx(0.51 + 0.3 * 0.39, abs=1e-6)
    nothing = EdgeScores(np.full_like(linkage, 0.4), scores.density)
    assert measure_sizes(graph, nothing).reach == 1.0


def test_p_tau_rises_with_the_spread_and_stays_a_probability():
    spreads = (0.0, 0.8, TYPICAL_SPREAD, 1.6, 2.0, 9.0)
    taus = [adapt_p_tau(0.6, SizeDistribution(spread, 20), 1.0) for spread in spreads]
    assert taus == sorted(taus)
    assert taus[2] == pytest.approx(0.6)
    assert 0.2 < taus[0] < taus[1]
    assert taus[-2] < taus[-1] < 0.9


@pytest.mark.parametrize("p_tau", [0.0, 0.3, 1.0])
def test_without_a_rise_or_at_certainty_nothing_moves(p_tau):
    assert adapt_p_tau(p_tau, SizeDistribution(2.0, 20), 0.0) == p_tau
    if p_tau in (0.0, 1.0):
        assert adapt_p_tau(p_tau, SizeDistribution(2.0, 20), 1.0) == p_tau


def test_one_unit_of_spread_is_one_rise_of_log_odds():
    for usual in (1, 20):
        raised = adapt_p_tau(0.5, SizeDistribution(TYPICAL_SPREAD + 0.5, usual), 1.4)
        assert np.log(raised / (1 - raised)) == pytest.approx(0.7)
    lowered = adapt_p_tau(0.5, SizeDistribution(TYPICAL_SPREAD - 0.5, 20), 1.4)
    assert np.log(lowered / (1 - lowered)) == pytest.approx(-0.7)


def test_p_tau_falls_only_as_far_as_clusters_are_large():
    taus = [adapt_p_tau(0.5, SizeDistribution(0.0, usual), 2.0) for usual in (1, 2, 4, 8, 100)]
    assert taus[0] == 0.5
    assert taus[0] > taus[1] > taus[2] > taus[3] == taus[4]


@pytest.mark.parametrize("decoder", ["contract", "leiden"])
def test_the_level_loop_decodes_points_at_the_suited_threshold(decoder):
    points, graph, scores = true_edges([5, 10, 20, 40])
    # Linkage around the threshold, so that where it stands decides what merges.
    rng = np.random.default_rng(1)
    linkage = np.clip(scores.linkage * rng.uniform(0.5, 1, graph.neighbours.shape), 0.05, 0.95)
    doubtful = EdgeScores(linkage.astype(np.float32), scores.density)
    rules = Rules(k=4, p_tau=0.7, decoder=decoder, p_tau_slope=3.0, max_levels=1)
    (step,) = walk_levels(points, FunctionScorer(lambda *_: doubtful), rules, graph=graph)
    settled = doubtful.settle_ties()
    suited = adapt_p_tau(0.7, measure_sizes(graph, settled), 3.0)
    wanted = label_trees(decode(graph, settled, suited, decoder).index)[0]
    plain = label_trees(decode(graph, settled, 0.7, decoder).index)[0]
    np.testing.assert_array_equal(step.labels, wanted)
    assert step.parents.p_tau == suited
    assert len(np.unique(wanted)) != len(np.unique(plain))


def test_strangers_are_not_joined_by_a_threshold_that_falls():
    points, graph, scores = true_edges([1] * 30)
    unsure = EdgeScores(np.full_like(scores.linkage, 0.3), scores.density)
    rules = Rules(k=4, p_tau=0.5, decoder="leiden", p_tau_slope=2.0, max_levels=1)
    (step,) = walk_levels(points, FunctionScorer(lambda *_: unsure), rules, graph=graph)
    assert step.parents.p_tau == 0.5
    assert len(step.peaks) == 30
