import json
from dataclasses import asdict

import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.hierarchy.rules import Rules, resolve_rules


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k=0 must be a whole number >= 1"),
        ({"k": 2.5}, "k=2.5 must be a whole number"),
        ({"k": "ten"}, "k='ten' must be a whole number"),
        ({"p_tau": -0.1}, "p_tau=-0.1 is not a probability"),
        ({"p_tau": 1.1}, "p_tau=1.1 is not a probability"),
        ({"p_tau": float("nan")}, "p_tau=nan is not a probability"),
        ({"p_tau": "Auto"}, "p_tau='Auto' is not a probability"),
    ],
)
def test_an_invalid_setting_is_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        Rules(**settings)


def test_numpy_numbers_become_plain_ones():
    rules = Rules(k=np.int64(5), p_tau=np.float32(0.5))
    assert rules == Rules(k=5, p_tau=0.5)
    assert json.loads(json.dumps(asdict(rules))) == asdict(Rules(k=5, p_tau=0.5))


def test_early_stop_ends_where_more_than_one_kth_of_the_edges_before_are_added():
    rules = Rules(k=10)
    assert not rules.is_early_stop(500, None)
    assert not rules.is_early_stop(10, 100)
    assert rules.is_early_stop(11, 100)
    assert rules.is_early_stop(0, 100)
    assert rules.is_early_stop(0, None)


def test_the_released_k_counts_the_node_in_the_early_stop_and_in_the_smallest_level():
    released = Rules(k=9, as_released=True)
    assert not released.is_early_stop(10, 100)
    assert released.is_early_stop(11, 100)
    assert not Rules(k=9).is_early_stop(11, 100)
    assert [released.can_cluster(n) for n in (10, 11)] == [False, True]
    assert [Rules(k=9).can_cluster(n) for n in (1, 2)] == [False, True]


def test_the_levels_after_the_first_may_have_a_threshold_of_their_own():
    assert [Rules(p_tau=0.3).threshold(level) for level in range(3)] == [0.3] * 3
    merges = Rules(p_tau=0.3, p_tau_merge=np.float32(0.75))
    assert [merges.threshold(level) for level in range(3)] == [0.3, 0.75, 0.75]
    assert type(merges.p_tau_merge) is float


@pytest.mark.parametrize(
    ("decoder", "above"),
    [("leiden", "contract"), ("infomap", "contract"), ("contract", "contract"),
     ("parents", "parents")],
)  # fmt: skip
def test_communities_are_for_points_and_later_levels_contract(decoder, above):
    rules = Rules(decoder=decoder)
    assert [rules.decoder_of(level) for level in range(3)] == [decoder, above, above]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"p_tau_merge": 1.5}, "p_tau_merge=1.5 is not a probability"),
        ({"p_tau_merge": "auto"}, "p_tau_merge='auto' is not a probability"),
        ({"decoder": "rank"}, "decoder='rank' is not known"),
    ],
)
def test_an_invalid_decoder_or_threshold_is_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        Rules(**settings)


def test_small_sets_have_fewer_neighbours():
    plain, share = Rules(k=15), Rules(k=15, points_per_neighbour=10)
    points = (1000, 150, 149, 60, 30, 5, 3)
    assert [plain.adapted_to(n).k for n in points] == [15, 15, 15, 15, 15, 4, 3]
    assert [share.adapted_to(n).k for n in points] == [15, 15, 14, 6, 5, 4, 3]
    assert Rules(k=2, points_per_neighbour=10).adapted_to(100).k == 2


def test_merges_of_a_set_smaller_than_the_training_set_have_a_higher_threshold():
    rules = Rules(p_tau_merge=0.4, training_points=10_000)
    found = [rules.for_points(n).p_tau_merge for n in (50_000, 10_000, 2_500, 100)]
    assert found[:2] == pytest.approx([0.4, 0.4])
    assert found[2] == pytest.approx(1 / (1 + (0.6 / 0.4) / 4**0.5))
    assert found[2] < found[3] < 1
    once = rules.for_points(100)
    assert once.for_points(100) == once
    asked = resolve_rules(rules, 100, p_tau=0.6)
    assert asked.p_tau_merge == 0.6


def test_a_given_threshold_is_fixed_and_later_levels_use_at_least_it():
    own = Rules(p_tau=0.6, p_tau_merge=0.7)
    assert own.with_threshold(0.9) == Rules(p_tau=0.9, p_tau_merge=0.9)
    assert own.with_threshold(0.3) == Rules(p_tau=0.3, p_tau_merge=0.7)
    assert Rules().with_threshold(0.9) == Rules(p_tau=0.9)
    with pytest.raises(SettingError, match="p_tau='high' is not a probability"):
        own.with_threshold("high")
