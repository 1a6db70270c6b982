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
    DEFAULT_THRESHOLD,
    MERGE_GRID,
    P_TAU_GRID,
    ThresholdSearch,
    find_best,
    make_validation_episodes,
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


def odds_of(probability):
    return np.log(probability / (1 - probability))


def test_p_tau_of_points_is_chosen_with_the_default_of_merges_and_that_of_merges_after(
    labelled, network, monkeypatch
):
    best = {"p_tau": P_TAU_GRID[2], "p_tau_merge": MERGE_GRID[1]}

    def score(self, rules):
        tried = {name: getattr(rules, name) for name in best}
        off = sum((odds_of(tried[name]) - odds_of(best[name])) ** 2 for name in best)
        return tried | {"f": 1 - off}

    monkeypatch.setattr(ThresholdSearch, "try_rules", score)
    rules, table = ThresholdSearch(network, [labelled], RULES, most_points=50).choose()
    points, merges = table[: len(P_TAU_GRID)], table[len(P_TAU_GRID) :]
    assert [row["p_tau"] for row in points] == list(P_TAU_GRID)
    assert {row["p_tau_merge"] for row in points} == {RULES.p_tau_merge}
    assert [row["p_tau_merge"] for row in merges] == list(MERGE_GRID)
    assert {row["p_tau"] for row in merges} == {rules.p_tau}
    assert rules == replace(RULES, p_tau=rules.p_tau, p_tau_merge=rules.p_tau_merge)
    for name, value in best.items():
        assert getattr(rules, name) == pytest.approx(value, abs=0.02)


def test_where_merges_make_no_difference_their_threshold_is_the_default(
    labelled, network, monkeypatch
):
    def score(self, rules):
        return {"p_tau": rules.p_tau, "p_tau_merge": rules.p_tau_merge, "f": 0.5}

    monkeypatch.setattr(ThresholdSearch, "try_rules", score)
    rules, _ = ThresholdSearch(network, [labelled], RULES, most_points=50).choose()
    assert rules.p_tau_merge == pytest.approx(RULES.p_tau_merge, abs=0.01)
    assert min(MERGE_GRID) < RULES.p_tau_merge < max(MERGE_GRID)


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


def tries(score, name="p_tau", grid=P_TAU_GRID):
    return [{name: tau, "f": score(odds_of(tau))} for tau in grid]


@pytest.mark.parametrize("best", [0.4, 0.55, 0.7, 0.85])
def test_the_peak_of_a_smooth_curve_is_found_between_the_tries(best):
    top = np.log(best / (1 - best))
    found = find_best(tries(lambda odds: 0.8 - 0.4 * (odds - top) ** 2), "p_tau")
    assert found == pytest.approx(best, abs=0.05)


def test_a_flat_curve_is_pulled_to_the_default_and_a_steep_one_is_not():
    default = find_best(tries(lambda odds: 0.8), "p_tau")
    assert default == pytest.approx(DEFAULT_THRESHOLD)
    low = np.log(0.5)
    nearly_flat = find_best(tries(lambda odds: 0.8 - 0.02 * (odds - low) ** 2), "p_tau")
    steep = find_best(tries(lambda odds: 0.8 - 0.4 * (odds - low) ** 2), "p_tau")
    assert nearly_flat == pytest.approx((steep + default) / 2, abs=0.03)
    assert steep < 0.37
    not_pulled = find_best(tries(lambda odds: 0.8 - 0.02 * (odds - low) ** 2), "p_tau", pull=0.0)
    assert not_pulled == pytest.approx(steep, abs=0.03)


def test_one_outlier_does_not_move_the_peak_far():
    rows = tries(lambda odds: 0.8 - 0.05 * odds**2)
    rows[-1]["f"] = 0.801
    assert max(rows, key=lambda row: row["f"]) is rows[-1]
    assert find_best(rows, "p_tau") < P_TAU_GRID[-2]


@pytest.mark.parametrize(("slope", "end"), [(-0.1, 0), (0.1, -1)])
def test_the_peak_is_within_the_grid(slope, end):
    assert find_best(tries(lambda odds: 0.5 + slope * odds), "p_tau") == pytest.approx(
        P_TAU_GRID[end]
    )


@pytest.mark.parametrize("best", [0.45, 0.6, 0.85])
def test_the_threshold_of_merges_is_the_peak_of_a_smooth_curve(best):
    rows = tries(lambda odds: 0.8 - 0.4 * (odds - odds_of(best)) ** 2, "p_tau_merge", MERGE_GRID)
    found = find_best(rows, "p_tau_merge", pull=0.005, default=0.7)
    assert found == pytest.approx(best, abs=0.02)


@pytest.mark.parametrize("default", [0.4, 0.7, 0.85])
def test_a_flat_curve_gives_the_default(default):
    rows = tries(lambda odds: 0.8, "p_tau_merge", MERGE_GRID)
    assert find_best(rows, "p_tau_merge", 0.005, default) == pytest.approx(default, abs=0.01)


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
