from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks import box, box_sets
from benchmarks.box import FEW_POINTS, join_networks, make_plan
from benchmarks.box_sets import (
    SMALL_POINTS,
    cut_source,
    make_all_episodes,
    make_easy_sets,
    make_judged_sets,
    make_small_sets,
)
from benchmarks.shapes import _reach, draw_counts
from hilander import HiLander
from hilander.embeddings.preparation import PerSetPreparation
from hilander.linkage.evidence.training import make_evidence_network
from hilander.synthetic.identities import make_identities


def test_small_sets_have_few_points_and_some_have_tiny_identities():
    made = list(make_small_sets(12, np.random.default_rng(0)))
    points = [len(one.labels) for one in made]
    assert min(points) >= SMALL_POINTS[0]
    assert max(points) < 2 * SMALL_POINTS[1]
    assert sum(len(one.labels) / len(np.unique(one.labels)) < 6 for one in made) >= 4


@pytest.mark.parametrize(("few", "least", "most"), [(False, 1900, 7000), (True, 60, 2500)])
def test_in_easy_sets_identities_are_small_and_their_members_each_others_nearest(few, least, most):
    made = list(make_easy_sets(10, np.random.default_rng(0), few=few))
    assert all(least <= len(one.labels) <= most for one in made)
    reached = [_reach(one.features.astype(np.float64), one.labels) for one in made]
    assert np.median(reached) > 0.95
    assert sum(np.median(np.bincount(one.labels)) < 15 for one in made) >= 5


def test_tiny_identities_have_a_few_points_each():
    counts = [draw_counts("tiny", 500, np.random.default_rng(seed)) for seed in range(20)]
    means = [count.mean() for count in counts]
    assert all(count.min() >= 1 for count in counts)
    assert 1 < min(means) < 2
    assert 3 < max(means) < 6


def test_no_identity_is_both_learned_from_and_held_out():
    features, labels = make_identities(n_identities=40, size=10, dim=16, seed=0)
    source = cut_source("one", features, labels, make_plan(0))
    assert not set(source.known.labels) & set(source.held_out.labels)
    assert len(source.known.labels) + len(source.held_out.labels) == 400


def test_sets_that_judge_are_the_same_for_a_seed_and_small_ones_are_among_them():
    points = [len(one.labels) for one in make_judged_sets(0)]
    assert min(points) < 200
    assert max(points) > 1900


def test_only_one_of_the_two_networks_learns_from_small_sets(monkeypatch):
    monkeypatch.setattr(box_sets, "SHAPED", 1)
    monkeypatch.setattr(box_sets, "FACE_LIKE", 0)
    monkeypatch.setattr(box_sets, "EASY", 2)
    features, labels = make_identities(n_identities=80, size=30, dim=16, seed=0)
    source = cut_source("one", features, labels, make_plan(0))
    many, both = (list(make_all_episodes([source], 0, with_small=small)) for small in (False, True))
    assert len(both) - len(many) == box_sets.SMALL_DRAWS + 4 + box_sets.SMALL + box_sets.EASY
    assert sum(len(one.labels) < 300 for one in both) > 20 + sum(
        len(one.labels) < 300 for one in many
    )


def test_joined_networks_serve_few_points_and_many_each():
    shape = make_plan(0).network
    many, few = make_evidence_network(shape, 0), make_evidence_network(shape.for_small_sets(), 1)
    joined = join_networks(many, few)
    for n_points, part in ((FEW_POINTS, few), (FEW_POINTS + 1, many)):
        ours, theirs = joined.suited_to(n_points).state_dict(), part.state_dict()
        assert all(torch.equal(ours[key], theirs[key]) for key in theirs)


def test_every_member_of_every_draw_is_dealt_once_and_each_box_has_some_of_each():
    dealt = [card for hand in box.HANDS for card in hand]
    members = make_plan(0).network.members
    assert sorted(dealt) == [(n, m) for n in range(box.DRAWS) for m in range(members)]
    for hand in box.HANDS:
        assert len(hand) == members
        assert {draw for draw, _ in hand} == set(range(box.DRAWS))


def test_a_box_has_members_of_each_draw_and_thresholds_of_its_own(monkeypatch, tmp_path):
    def train_draw(left_out, draw):
        assert left_out == "flowers"
        shape = make_plan(0).network
        parts = (
            make_evidence_network(shape, draw),
            make_evidence_network(shape.for_small_sets(), 9 + draw),
        )
        model = HiLander(random_state=draw)
        model.network_, model.rules_ = join_networks(*parts), make_plan(0).rules
        model.preparation_, model.history_ = PerSetPreparation(), [{"loss": draw}]
        model.summary_ = {"trained_on": ["one"], "n_points": 100}
        return model

    chosen = replace(make_plan(0).rules, p_tau=0.7, p_tau_merge=0.8)
    monkeypatch.setattr(box, "KEPT", tmp_path)
    monkeypatch.setattr(box, "train_draw", train_draw)
    monkeypatch.setattr(box, "read_sources", lambda *_: [])
    monkeypatch.setattr(box, "choose_thresholds", lambda *_: (chosen, [{"f": 1.0}]))
    made = HiLander.load(box.find_box("flowers", 1))
    assert made.rules_ == chosen
    assert made.summary_["n_points"] == 300
    assert [row["draw"] for row in made.history_] == [0, 1, 2]
    for n_points, few in ((FEW_POINTS, True), (FEW_POINTS + 1, False)):
        ours = made.network_.suited_to(n_points)
        for at, (draw, member) in enumerate(box.HANDS[1]):
            theirs = HiLander.load(tmp_path / f"draw-flowers-{draw}").network_.suited_to(n_points)
            assert (theirs.settings.set_context is False) is few
            for mine, own in zip(
                ours.classifiers(super_nodes=True),
                theirs.classifiers(super_nodes=True),
                strict=True,
            ):
                assert torch.equal(mine.last.weight[at], own.last.weight[member])
