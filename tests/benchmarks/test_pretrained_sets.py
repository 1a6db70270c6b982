from dataclasses import replace

import numpy as np
import pytest

from benchmarks import pretrained, pretrained_sets
from benchmarks.datasets import SHARED
from benchmarks.pretrained import make_plan
from benchmarks.pretrained_sets import (
    DOMAIN_OF,
    DOMAINS,
    SMALL_POINTS,
    Source,
    make_all_episodes,
    make_easy_sets,
    make_large_sets,
    make_small_sets,
    make_validation_sets,
    split_source,
)
from benchmarks.shapes import draw_counts, neighbour_purity
from hilander import HiLander
from hilander.linkage.evidence.training import make_evidence_network
from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities


def test_small_sets_have_few_points_and_some_have_tiny_identities():
    made = list(make_small_sets(12, np.random.default_rng(0)))
    points = [len(one.labels) for one in made]
    assert min(points) >= SMALL_POINTS[0]
    assert max(points) < 2 * SMALL_POINTS[1]
    assert sum(len(one.labels) / len(np.unique(one.labels)) < 6 for one in made) >= 4


@pytest.mark.parametrize(("small_set", "least", "most"), [(False, 1900, 7000), (True, 60, 2500)])
def test_easy_sets_have_small_identities_that_are_well_separated(small_set, least, most):
    made = list(make_easy_sets(10, np.random.default_rng(0), small_set=small_set))
    assert all(least <= len(one.labels) <= most for one in made)
    purity = [neighbour_purity(one.features.astype(np.float64), one.labels) for one in made]
    assert np.median(purity) > 0.95
    assert sum(np.median(np.bincount(one.labels)) < 15 for one in made) >= 5


def test_tiny_identities_have_a_few_points_each():
    counts = [draw_counts("tiny", 500, np.random.default_rng(seed)) for seed in range(20)]
    means = [count.mean() for count in counts]
    assert all(count.min() >= 1 for count in counts)
    assert 1 < min(means) < 2
    assert 3 < max(means) < 6


def test_no_identity_is_in_both_the_training_part_and_the_held_out_part():
    features, labels = make_identities(n_identities=40, size=10, dim=16, seed=0)
    source = split_source("one", features, labels, make_plan(0))
    assert not set(source.known.labels) & set(source.held_out.labels)
    assert len(source.known.labels) + len(source.held_out.labels) == 400


def test_validation_sets_include_small_and_large_sets(monkeypatch):
    for name in ("VALIDATION_SHAPED", "VALIDATION_SMALL", "VALIDATION_LARGE", "VALIDATION_EASY"):
        monkeypatch.setattr(pretrained_sets, name, 3)
    points = [len(one.labels) for one in make_validation_sets(0)]
    assert min(points) < 200
    assert max(points) > 1900


def test_large_sets_have_identities_of_hundreds_of_points():
    made = list(make_large_sets(6, np.random.default_rng(0)))
    sizes = np.concatenate([np.bincount(one.labels) for one in made])
    assert np.median(sizes) > 100
    assert sizes.max() > 500
    assert all(1900 <= len(one.labels) <= 7000 for one in made)


def test_training_sets_include_small_sets_and_sets_of_large_identities(monkeypatch):
    for name, number in (("SHAPED", 1), ("FACE_LIKE", 0), ("EASY", 2), ("SMALL", 5), ("LARGE", 2)):
        monkeypatch.setattr(pretrained_sets, name, number)
    features, labels = make_identities(n_identities=80, size=30, dim=16, seed=0)
    source = split_source("one", features, labels, make_plan(0))
    made = list(make_all_episodes([source], 0))
    assert sum(len(one.labels) < 300 for one in made) >= 5
    assert sum(np.bincount(one.labels).max() > 300 for one in made) >= 2
    again = list(make_all_episodes([source], 0))
    assert len(again) == len(made)
    for one, two in zip(made, again, strict=True):
        np.testing.assert_array_equal(one.features, two.features)


def test_every_shared_pair_has_a_domain_that_can_be_left_out():
    assert set(SHARED) <= set(DOMAIN_OF)
    assert set(DOMAIN_OF.values()) == set(DOMAINS)


def test_a_model_without_a_domain_is_made_once_with_its_own_thresholds(monkeypatch, tmp_path):
    chosen = replace(make_plan(0).rules, p_tau=0.7, p_tau_merge=0.8)
    table, seeds = [{"f": 1.0, "bcubed_f": 1.0}], []
    source = Source("one", *(Episode(*make_identities(n_identities=4, seed=0)),) * 2)

    def train(episodes, plan, *_):
        seeds.append(plan.seed)
        assert episodes == [source.known]
        return make_evidence_network(plan.network, plan.seed), [{"loss": 1.0}]

    monkeypatch.setattr(pretrained, "KEPT", tmp_path)
    monkeypatch.setattr(
        pretrained, "read_sources", lambda left_out, _: [source] * (left_out == "flowers")
    )
    monkeypatch.setattr(pretrained, "make_all_episodes", lambda sources, _: [sources[0].known])
    monkeypatch.setattr(pretrained, "train_on_episodes", train)
    monkeypatch.setattr(pretrained, "choose_thresholds", lambda *_: (chosen, table))
    for _ in range(2):
        made = HiLander.load(pretrained.find_pretrained("flowers", 1))
        assert made.rules_ == chosen
        assert made.summary_["validation"] == table
        assert made.summary_["trained_on"][0] == "one"
        assert made.summary_["n_points"] == len(source.known.labels)
        assert made.network_.settings == make_plan(1).network
    assert seeds == [1]
