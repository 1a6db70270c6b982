"""The search for the thresholds of an evidence network."""

from dataclasses import replace

import numpy as np
import pytest

from hilander.hierarchy.rules import Rules
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import make_evidence_network
from hilander.metrics.scores import bcubed_f, pairwise_f
from hilander.synthetic.episodes import Episode, neighbour_purity
from hilander.synthetic.identities import make_identities
from hilander.training.clustering import cluster_points
from hilander.training.evidence import thresholds
from hilander.training.evidence.thresholds import (
    MERGE_GRID,
    P_TAU_GRID,
    ThresholdSearch,
    find_peak,
    make_validation_episodes,
    take_highest,
)

RULES = Rules(k=6, search_average=True, decoder="leiden", p_tau_merge=0.5, keep_links=True)


@pytest.fixture(scope="module")
def labelled():
    return Episode(*make_identities(n_identities=20, size=8, dim=16, spread=0.35, seed=0))


@pytest.fixture(scope="module")
def network():
    return make_evidence_network(EvidenceSettings(hidden=8), seed=0)


def rows_of(episode):
    return {row.tobytes() for row in episode.features}


@pytest.mark.parametrize("decoder", ["leiden", "contract"])
def test_a_try_scores_like_clustering_from_scratch(labelled, network, decoder):
    rules = replace(RULES, decoder=decoder)
    search = ThresholdSearch(network, [labelled], rules, device="cpu", most_points=80)
    episodes = [one.episode for one in search.sets]
    assert len(episodes) > 3
    for tried in (replace(rules, p_tau=0.5), replace(rules, p_tau=0.3, p_tau_merge=0.6)):
        row = search.try_rules(tried)
        assert (row["p_tau"], row["p_tau_merge"]) == (tried.p_tau, tried.p_tau_merge)
        found = [
            cluster_points(one.features, EvidenceScorer(network, "cpu"), tried) for one in episodes
        ]
        pairs = list(zip(episodes, found, strict=True))
        weights = [one.weight for one in episodes]
        for name, metric in (("bcubed_f", bcubed_f), ("pairwise_f", pairwise_f)):
            scores = [metric(e.labels, f) for e, f in pairs]
            assert row[name] == pytest.approx(np.average(scores, weights=weights))
        assert row["f"] == pytest.approx((row["pairwise_f"] + row["bcubed_f"]) / 2)


def test_p_tau_of_points_is_chosen_with_strict_merges_and_that_of_merges_after(
    labelled, network, monkeypatch
):
    best = {"p_tau": P_TAU_GRID[2], "p_tau_merge": MERGE_GRID[1]}

    def score(self, rules):
        odds = [np.log(p / (1 - p)) for p in (rules.p_tau, best["p_tau"])]
        off = (odds[0] - odds[1]) ** 2 + abs(rules.p_tau_merge - best["p_tau_merge"])
        return {"p_tau": rules.p_tau, "p_tau_merge": rules.p_tau_merge, "f": 1 - off}

    monkeypatch.setattr(ThresholdSearch, "try_rules", score)
    rules, table = ThresholdSearch(network, [labelled], RULES, most_points=50).choose()
    assert rules == replace(RULES, **best)
    points, merges = table[: len(P_TAU_GRID)], table[len(P_TAU_GRID) :]
    assert [row["p_tau"] for row in points] == list(P_TAU_GRID)
    assert {row["p_tau_merge"] for row in points} == {max(MERGE_GRID)}
    assert [row["p_tau_merge"] for row in merges] == list(MERGE_GRID)
    assert {row["p_tau"] for row in merges} == {best["p_tau"]}


def test_several_sets_are_scored_together_and_made_by_the_seed(labelled, network):
    other = Episode(*make_identities(n_identities=20, size=8, dim=24, spread=0.35, seed=1))
    one, two = (
        ThresholdSearch(network, sets, RULES, most_points=60) for sets in ([labelled], [other])
    )
    both = ThresholdSearch(network, [labelled, other], RULES, most_points=60)
    assert len(both.sets) == len(one.sets) + len(two.sets)
    assert all(len(made.episode.labels) <= 60 + 30 for made in both.sets)
    again, otherwise = (
        ThresholdSearch(network, [labelled], RULES, seed=s, most_points=60) for s in (0, 1)
    )
    for a, b in zip(one.sets, again.sets, strict=True):
        np.testing.assert_array_equal(a.episode.features, b.episode.features)
    assert any(
        rows_of(a.episode) != rows_of(b.episode)
        for a, b in zip(one.sets, otherwise.sets, strict=False)
    )


def test_extra_sets_are_used_as_they_are(labelled, network):
    other = Episode(*make_identities(n_identities=20, size=8, dim=24, spread=0.35, seed=1))
    lone = Episode(np.eye(4, dtype=np.float32), np.arange(4))
    alone = ThresholdSearch(network, [labelled], RULES, most_points=60)
    both = ThresholdSearch(network, [labelled], RULES, most_points=60, extra_sets=[other, lone])
    assert both.sets[-1].episode is other
    assert len(both.sets) == len(alone.sets) + 1
    own = ThresholdSearch(network, [], RULES, extra_sets=[other]).try_rules(RULES)["f"]
    weight = sum(one.episode.weight for one in alone.sets)
    expected = (weight * alone.try_rules(RULES)["f"] + own) / (weight + 1)
    assert both.try_rules(RULES)["f"] == pytest.approx(expected)


def test_a_set_of_single_points_is_left_out(network):
    lone = Episode(np.eye(4, dtype=np.float32), np.arange(4))
    search = ThresholdSearch(network, [lone], RULES)
    assert search.sets == []
    assert search.try_rules(RULES)["f"] == 0


def tries(score, taus=P_TAU_GRID):
    return [{"p_tau": tau, "f": score(np.log(tau / (1 - tau)))} for tau in taus]


@pytest.mark.parametrize("best", [0.4, 0.55, 0.7, 0.85])
def test_the_peak_of_a_smooth_curve_is_found_between_the_tries(best):
    top = np.log(best / (1 - best))
    found = find_peak(tries(lambda odds: 0.8 - 0.4 * (odds - top) ** 2))
    assert found == pytest.approx(best, abs=0.05)


def test_a_flat_curve_is_pulled_to_the_default_and_a_steep_one_is_not():
    default = find_peak(tries(lambda odds: 0.8))
    assert default == pytest.approx(0.55)
    low = np.log(0.5)
    nearly_flat = find_peak(tries(lambda odds: 0.8 - 0.02 * (odds - low) ** 2))
    steep = find_peak(tries(lambda odds: 0.8 - 0.4 * (odds - low) ** 2))
    assert nearly_flat == pytest.approx((steep + default) / 2, abs=0.03)
    assert steep < 0.37
    not_pulled = find_peak(tries(lambda odds: 0.8 - 0.02 * (odds - low) ** 2), pull=0.0)
    assert not_pulled == pytest.approx(steep, abs=0.03)


def test_one_outlier_does_not_move_the_peak_far():
    rows = tries(lambda odds: 0.8 - 0.05 * odds**2)
    rows[-1]["f"] = 0.801
    assert max(rows, key=lambda row: row["f"]) is rows[-1]
    assert find_peak(rows) < P_TAU_GRID[-2]


@pytest.mark.parametrize(("slope", "end"), [(-0.1, 0), (0.1, -1)])
def test_the_peak_is_within_the_grid(slope, end):
    assert find_peak(tries(lambda odds: 0.5 + slope * odds)) == pytest.approx(P_TAU_GRID[end])


def test_of_merges_the_best_is_taken_and_of_equals_the_highest():
    def rows(*scores):
        return [{"p_tau_merge": tau, "f": f} for tau, f in zip(MERGE_GRID, scores, strict=True)]

    assert take_highest(rows(0.8, 0.7, 0.6), "p_tau_merge") == MERGE_GRID[0]
    assert take_highest(rows(0.8, 0.8, 0.6), "p_tau_merge") == MERGE_GRID[1]
    assert take_highest(rows(0.8, 0.8, 0.8), "p_tau_merge") == MERGE_GRID[2]


def test_some_f_may_be_lost_for_a_higher_threshold_of_merges(labelled, network):
    rows = [{"p_tau_merge": tau, "f": f} for tau, f in ((0.4, 0.8), (0.6, 0.795), (0.9, 0.75))]
    assert take_highest(rows, "p_tau_merge", 0.01) == 0.6
    assert take_highest(rows, "p_tau_merge", 0.001) == 0.4
    assert take_highest(rows, "p_tau_merge", 0.1) == 0.9
    search = ThresholdSearch(network, [], RULES, extra_sets=[labelled])
    assert search.choose(merge_tolerance=1.0)[0].p_tau_merge == max(MERGE_GRID)


def test_validation_sets_have_the_real_sizes_and_others_have_many_identities(labelled):
    made = make_validation_episodes(labelled, np.random.default_rng(0), 1000)
    whole = rows_of(labelled)
    real = [one for one in made if rows_of(one) <= whole]
    new = [one for one in made if one not in real]
    assert rows_of(made[0]) == whole
    assert made[0].weight == max(one.weight for one in made) > min(one.weight for one in made)
    assert max(len(np.unique(one.labels)) for one in new) > 3 * 20
    assert new


def test_bootstrapped_validation_sets_are_as_hard_as_the_real_ones(labelled, monkeypatch):
    asked = []
    make = thresholds.IdentityBootstrap.make

    def watch(self, *arguments, as_hard=False):
        asked.append(as_hard)
        return make(self, *arguments, as_hard=as_hard)

    monkeypatch.setattr(thresholds.IdentityBootstrap, "make", watch)
    make_validation_episodes(labelled, np.random.default_rng(0), 300)
    assert asked
    assert all(asked)


def test_few_identities_are_not_bootstrapped():
    small_set = Episode(*make_identities(n_identities=4, size=8, dim=16, seed=0))
    made = make_validation_episodes(small_set, np.random.default_rng(0), 300)
    assert all(rows_of(one) <= rows_of(small_set) for one in made)
    assert 0 <= neighbour_purity(made[0]) <= 1
