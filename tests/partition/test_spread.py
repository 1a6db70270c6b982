import numpy as np
import pytest

from hilander.graph import EdgeScores, build_knn_graph, score_by_labels
from hilander.partition import decode, label_trees, measure_sizes, suit_p_tau
from hilander.partition.spread import USUAL_SPREAD, FoundSizes, bring_strays_home
from hilander.tree import Rules, walk_levels


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
    lowered = np.minimum(scores.linkage, np.float32(1))
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


def test_tiny_clusters_are_brought_to_larger_ones_only_and_others_stay():
    _, graph, scores = true_edges([4, 20])
    likely = with_links_of(graph, scores, [0, 1], 0.4)
    labels = np.repeat([0, 1, 2], [2, 2, 20])
    np.testing.assert_array_equal(bring_strays_home(labels, graph, likely), labels)
    labels = np.repeat([0, 1], [4, 20])
    np.testing.assert_array_equal(bring_strays_home(labels, graph, likely), labels)


def test_p_tau_rises_with_the_spread_and_stays_a_probability():
    spreads = (0.0, 0.8, USUAL_SPREAD, 1.6, 2.0, 9.0)
    taus = [suit_p_tau(0.6, FoundSizes(spread, 20), 1.0) for spread in spreads]
    assert taus == sorted(taus)
    assert taus[2] == pytest.approx(0.6)
    assert 0.2 < taus[0] < taus[1]
    assert taus[-2] < taus[-1] < 0.9


@pytest.mark.parametrize("p_tau", [0.0, 0.3, 1.0])
def test_without_a_rise_or_at_certainty_nothing_moves(p_tau):
    assert suit_p_tau(p_tau, FoundSizes(2.0, 20), 0.0) == p_tau
    if p_tau in (0.0, 1.0):
        assert suit_p_tau(p_tau, FoundSizes(2.0, 20), 1.0) == p_tau


def test_one_unit_of_spread_is_one_rise_of_log_odds():
    for usual in (1, 20):
        raised = suit_p_tau(0.5, FoundSizes(USUAL_SPREAD + 0.5, usual), 1.4)
        assert np.log(raised / (1 - raised)) == pytest.approx(0.7)
    lowered = suit_p_tau(0.5, FoundSizes(USUAL_SPREAD - 0.5, 20), 1.4)
    assert np.log(lowered / (1 - lowered)) == pytest.approx(-0.7)


def test_p_tau_falls_only_as_far_as_clusters_are_large():
    taus = [suit_p_tau(0.5, FoundSizes(0.0, usual), 2.0) for usual in (1, 2, 4, 8, 100)]
    assert taus[0] == 0.5
    assert taus[0] > taus[1] > taus[2] > taus[3] == taus[4]


@pytest.mark.parametrize("decoder", ["contract", "leiden"])
def test_the_level_loop_decodes_points_at_the_suited_threshold(decoder):
    points, graph, scores = true_edges([5, 10, 20, 40])
    # Linkage around the threshold, so that where it stands decides what merges.
    rng = np.random.default_rng(1)
    linkage = np.clip(scores.linkage * rng.uniform(0.5, 1, graph.neighbours.shape), 0.05, 0.95)
    doubtful = EdgeScores(linkage.astype(np.float32), scores.density)
    rules = Rules(k=4, p_tau=0.7, decoder=decoder, p_tau_rise=3.0, max_levels=1)
    (step,) = walk_levels(points, lambda *_: doubtful, rules, graph=graph)
    settled = doubtful.settle_ties()
    suited = suit_p_tau(0.7, measure_sizes(graph, settled), 3.0)
    wanted = label_trees(decode(graph, settled, suited, decoder).index)[0]
    plain = label_trees(decode(graph, settled, 0.7, decoder).index)[0]
    np.testing.assert_array_equal(step.labels, wanted)
    assert step.parents.p_tau == suited
    assert len(np.unique(wanted)) != len(np.unique(plain))


def test_strangers_are_not_joined_by_a_threshold_that_falls():
    points, graph, scores = true_edges([1] * 30)
    strangers = EdgeScores(np.full_like(scores.linkage, 0.3), scores.density)
    rules = Rules(k=4, p_tau=0.5, decoder="leiden", p_tau_rise=2.0, max_levels=1)
    (step,) = walk_levels(points, lambda *_: strangers, rules, graph=graph)
    assert step.parents.p_tau == 0.5
    assert len(step.peaks) == 30
