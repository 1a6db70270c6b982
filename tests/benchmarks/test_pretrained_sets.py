from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks import pretrained, pretrained_sets
from benchmarks.pretrained import SMALL_SET_POINTS, join_networks, make_estimator, make_plan
from benchmarks.pretrained_sets import (
    SMALL_POINTS,
    make_all_episodes,
    make_easy_sets,
    make_small_sets,
    make_validation_sets,
    split_source,
)
from benchmarks.shapes import draw_counts, neighbour_purity
from hilander import HiLander
from hilander.embeddings.preparation import PerSetPreparation
from hilander.linkage.evidence.training import make_evidence_network
from hilander.synthetic.identities import make_identities
from hilander.training.model import Model


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
    for name in ("VALIDATION_SHAPED", "VALIDATION_SMALL", "VALIDATION_EASY"):
        monkeypatch.setattr(pretrained_sets, name, 3)
    points = [len(one.labels) for one in make_validation_sets(0)]
    assert min(points) < 200
    assert max(points) > 1900


def test_only_one_of_the_two_networks_is_trained_on_small_sets(monkeypatch):
    monkeypatch.setattr(pretrained_sets, "SHAPED", 1)
    monkeypatch.setattr(pretrained_sets, "FACE_LIKE", 0)
    monkeypatch.setattr(pretrained_sets, "EASY", 2)
    features, labels = make_identities(n_identities=80, size=30, dim=16, seed=0)
    source = split_source("one", features, labels, make_plan(0))
    many, both = (list(make_all_episodes([source], 0, with_small=small)) for small in (False, True))
    assert (
        len(both) - len(many)
        == pretrained_sets.SMALL_DRAWS + 4 + pretrained_sets.SMALL + pretrained_sets.EASY
    )
    assert sum(len(one.labels) < 300 for one in both) > 20 + sum(
        len(one.labels) < 300 for one in many
    )


def test_joined_networks_score_small_and_large_sets_with_their_own_weights():
    shape = make_plan(0).network
    large, small = make_evidence_network(shape, 0), make_evidence_network(shape.for_small_sets(), 1)
    joined = join_networks(large, small)
    for n_points, part in ((SMALL_SET_POINTS, small), (SMALL_SET_POINTS + 1, large)):
        ours, theirs = joined.for_size(n_points).state_dict(), part.state_dict()
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_every_member_of_every_draw_is_used_once_and_each_model_has_members_of_each_draw():
    dealt = [card for hand in pretrained.HANDS for card in hand]
    members = make_plan(0).network.members
    assert sorted(dealt) == [(n, m) for n in range(pretrained.DRAWS) for m in range(members)]
    for hand in pretrained.HANDS:
        assert len(hand) == members
        assert {draw for draw, _ in hand} == set(range(pretrained.DRAWS))


def test_a_model_has_members_of_each_draw_and_its_own_thresholds(monkeypatch, tmp_path):
    def train_draw(left_out, draw):
        assert left_out == "flowers"
        shape = make_plan(0).network
        parts = (
            make_evidence_network(shape, draw),
            make_evidence_network(shape.for_small_sets(), 9 + draw),
        )
        summary = {"trained_on": ["one"], "n_points": 100}
        network, rules = join_networks(*parts), make_plan(0).rules
        return make_estimator(
            draw, Model(network, rules, PerSetPreparation(), [{"loss": draw}], summary)
        )

    chosen = replace(make_plan(0).rules, p_tau=0.7, p_tau_merge=0.8)
    monkeypatch.setattr(pretrained, "KEPT", tmp_path)
    monkeypatch.setattr(pretrained, "train_draw", train_draw)
    monkeypatch.setattr(pretrained, "read_sources", lambda *_: [])
    monkeypatch.setattr(
        pretrained, "choose_thresholds", lambda *_: (chosen, [{"f": 1.0, "bcubed_f": 1.0}])
    )
    made = HiLander.load(pretrained.find_pretrained("flowers", 1))
    assert made.rules_ == chosen
    assert made.summary_["n_points"] == 300
    assert [row["draw"] for row in made.history_] == [0, 1, 2]
    for n_points, small_set in ((SMALL_SET_POINTS, True), (SMALL_SET_POINTS + 1, False)):
        ours = made.network_.for_size(n_points)
        for at, (draw, member) in enumerate(pretrained.HANDS[1]):
            theirs = HiLander.load(tmp_path / f"draw-flowers-{draw}").network_.for_size(n_points)
            assert theirs.small_set is None or not small_set
            for mine, own in zip(ours.classifiers(), theirs.classifiers(), strict=True):
                assert torch.equal(mine.last.weight[at], own.last.weight[member])
