"""Which linear map of the embeddings is chosen, and by whom."""

import numpy as np
import pytest

from hilander.arrays.rows import unit_rows
from hilander.embeddings.preparation import Preparation
from hilander.embeddings.whitening import whiten_within
from hilander.engines.threads import Workers
from hilander.knn.search import build_knn_graph
from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities
from hilander.training.map_choice import (
    LEAST_GAIN,
    RIDGES,
    choose_map,
    choose_whitening,
    find_edges,
    force_whitening,
    move,
    rank_edges,
    take_turns,
    weaken,
)
from hilander.training.paper.recipe import map_choice


def with_nuisance(strength, seed=0, n_identities=40, size=8):
    """Identities whose members differ along a few directions far more than along the others."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_identities, 16))
    labels = np.repeat(np.arange(n_identities), size)
    noise = rng.normal(size=(len(labels), 16)) * 0.45
    noise[:, :3] *= strength
    features = centres[labels] + noise
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features.astype(np.float32), labels


def test_whitening_is_chosen_where_a_nuisance_is_strong():
    features, labels = with_nuisance(8)
    assert choose_whitening(features, labels, 7, seed=0) in RIDGES


def test_whitening_is_not_chosen_where_members_scatter_alike():
    for seed in range(3):
        features, labels = with_nuisance(1, seed)
        assert choose_whitening(features, labels, 7, seed=0) is None


@pytest.mark.parametrize("changes", [{"n_identities": 14}, {"size": 2}, {"size": 1}])
def test_too_few_identities_or_pairs_say_nothing(changes):
    strong = with_nuisance(8, **{"n_identities": 40} | changes)
    assert choose_whitening(*strong, 7, seed=0) is None
    assert choose_map(*strong, 7, seed=0) is None
    assert take_turns(*strong, 7, seed=0) == []


def test_edges_are_ranked_by_average_precision():
    features, labels = make_identities(n_identities=10, size=8, dim=6, spread=0.8, seed=0)
    graph = build_knn_graph(features, 7)
    same = labels[graph.neighbours] == labels[:, None]
    expected, before = 0.0, 0.0
    for least in np.unique(graph.affinity)[::-1]:  # edges of equal affinity come together
        taken = same[graph.affinity >= least]
        recall = taken.sum() / same.sum()
        expected, before = expected + (recall - before) * taken.mean(), recall
    assert rank_edges(Episode(features, labels), 7) == pytest.approx(expected, abs=1e-6)


def test_a_graph_without_wrong_edges_cannot_be_ranked_better():
    features = make_identities(n_identities=10, size=8, dim=6, seed=0)[0]
    assert rank_edges(Episode(features, np.zeros(80, dtype=np.int64)), 7) == 1
    assert rank_edges(Episode(features, np.arange(80)), 7) == 0


def test_edges_that_are_missing_count_as_found_last():
    features, labels = make_identities(n_identities=10, size=12, dim=6, spread=0.8, seed=0)
    episode, k = Episode(features, labels), 7
    graph = build_knn_graph(features, k)
    found = (labels[graph.neighbours] == labels[:, None]).sum()
    expected = rank_edges(episode, k) * found / (len(labels) * k)
    assert find_edges(episode, k) == pytest.approx(expected)
    assert find_edges(episode, k) < rank_edges(episode, k)
    # Identities of three points have two neighbours each to be found, however many are asked for.
    far = np.eye(12, dtype=np.float32)[np.repeat(np.arange(12), 3)]
    assert find_edges(Episode(far, np.repeat(np.arange(12), 3)), 5) == pytest.approx(1.0)
    assert find_edges(Episode(features, np.arange(len(features))), k) == 0


def with_telling_directions(n_identities=80, seed=0, dim=24):
    """Identities that six of the directions tell apart; members scatter alike along all."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_identities), 8)
    centres = rng.normal(size=(n_identities, dim)) * (np.arange(dim) < 6)
    points = centres[labels] + 0.35 * rng.normal(size=(len(labels), dim))
    return unit_rows(points.astype(np.float32)), labels


def test_a_metric_is_learnt_where_some_directions_tell_identities_apart():
    features, labels = with_telling_directions()
    assert choose_whitening(features, labels, 7, seed=0) is None  # members scatter alike
    chosen = choose_map(features, labels, 7, seed=0)
    assert chosen.is_metric
    others = Episode(*with_telling_directions(seed=1))
    assert find_edges(move(others, chosen.transform), 7) > find_edges(others, 7) + 3 * LEAST_GAIN


def test_a_whitening_is_learnt_where_members_scatter_along_some():
    features, labels = with_nuisance(8, n_identities=20)
    chosen = choose_map(features, labels, 7, seed=0)
    assert not chosen.is_metric
    whitened = [whiten_within(features, labels, ridge) for ridge in RIDGES]
    assert any(np.array_equal(chosen.transform, one) for one in whitened)


def test_no_map_is_chosen_where_none_helps():
    for seed in range(3):
        assert choose_map(*with_nuisance(1, seed), 7, seed=0) is None


def test_embeddings_too_wide_to_whiten_may_have_a_metric(monkeypatch):
    monkeypatch.setattr(map_choice, "MOST_FEATURES", 15)
    chosen = choose_map(*with_nuisance(8, n_identities=80), 7, seed=0)
    assert chosen.is_metric


def test_who_taught_a_map_is_seen_as_others_are_after_it():
    # Of nearly as many directions as points, a whitening knows its identities' scatter by heart.
    def draw(seed):
        rng = np.random.default_rng(seed)
        labels = np.repeat(np.arange(20), 8)
        noise = rng.normal(size=(160, 96)) * np.r_[[4.0] * 10, [1.2] * 86]
        return unit_rows((rng.normal(size=(20, 96))[labels] + noise).astype(np.float32)), labels

    taught, others = Episode(*draw(0)), Episode(*draw(1))
    chosen = choose_map(taught.features, taught.labels, 7, seed=0)

    def gain(episode, transform):
        return find_edges(move(episode, transform), 7) - find_edges(episode, 7)

    real, by_heart = gain(others, chosen.transform), gain(taught, chosen.transform)
    assert by_heart > real + 0.1
    assert (
        abs(gain(taught, chosen.training_transform) - (real + by_heart) / 2) < (by_heart - real) / 4
    )


def test_a_map_is_weakened_half_way_to_what_it_should_gain():
    features, labels = with_nuisance(8)
    episode, transform = Episode(features, labels), whiten_within(features, labels, 0.3)
    plain, full = (find_edges(one, 7) for one in (episode, move(episode, transform)))
    whole = transform - np.eye(16)
    for share in (0.0, 0.5):
        weaker = weaken(transform, share * (full - plain), [episode] * 2, 7, Workers())
        gained = find_edges(move(episode, weaker), 7) - plain
        assert gained == pytest.approx((share + 1) / 2 * (full - plain), abs=0.1 * (full - plain))
        part = ((weaker - np.eye(16)) * whole).sum() / (whole * whole).sum()
        np.testing.assert_allclose(weaker - np.eye(16), part * whole, atol=1e-5)
        assert 0 < part < 1
    same = weaken(transform, full - plain, [episode], 7, Workers())
    np.testing.assert_array_equal(same, transform)


def test_a_whitening_that_is_asked_for_is_seen_through_a_weaker_one_as_well():
    features, labels = with_nuisance(8)
    forced = force_whitening(features, labels, 7, 0, 1.0)
    np.testing.assert_allclose(forced.transform, whiten_within(features, labels, 1.0), atol=1e-5)
    assert not forced.is_metric
    shares = [
        np.linalg.norm(one - np.eye(16)) for one in (forced.training_transform, forced.transform)
    ]
    assert 0 < shares[0] < shares[1]
    few = force_whitening(features[:64], labels[:64], 7, 0, 1.0)  # too few to say
    np.testing.assert_array_equal(few.training_transform, few.transform)


def test_those_who_judge_have_not_taught():
    turns = take_turns(*with_telling_directions(40), 7, seed=0)
    judges = [set(unseen.labels.tolist()) for _, unseen in turns]
    assert len(turns) == 4
    for (known, _), some in zip(turns, judges, strict=True):
        assert len(some) == 10
        assert some.isdisjoint(known.labels.tolist())
        assert len(np.unique(known.labels)) == 30
    assert len(set.union(*judges)) > 20
    features, labels = with_telling_directions(20)
    few = take_turns(features, labels, 7, seed=0)
    assert {len(np.unique(unseen.labels)) for _, unseen in few} == {8}  # fewer could not judge


@pytest.mark.parametrize("sizes", [[400] * 100, [20_000] + [8] * 99, [3_000] * 16])
def test_of_large_identities_some_points_teach_and_judge(sizes, monkeypatch):
    monkeypatch.setattr(map_choice, "_MOST_TEACHING", 4_000)
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    features = np.random.default_rng(1).normal(size=(len(labels), 2)).astype(np.float32)
    turns = take_turns(features, labels, 7, seed=0)
    assert len(turns) == 4
    for known, unseen in turns:
        assert len(known.labels) <= 4_000
        assert len(unseen.labels) <= 3_000
        assert min(len(np.unique(one.labels)) for one in (known, unseen)) >= 8
        assert set(known.labels.tolist()).isdisjoint(unseen.labels.tolist())


def test_the_map_of_all_is_taught_by_no_more_points_than_those_that_were_judged(monkeypatch):
    monkeypatch.setattr(map_choice, "_MOST_TEACHING", 160)
    seen = []

    def learn(features, labels, ridge):
        seen.append(np.bincount(labels))
        return whiten_within(features, labels, ridge)

    monkeypatch.setattr(map_choice, "whiten_within", learn)
    chosen = choose_map(*with_nuisance(8, size=30), 7, seed=0)
    assert chosen is not None
    assert max(sizes.sum() for sizes in seen) <= 160
    assert max(sizes.max() for sizes in seen) <= 10


def test_a_preparation_shows_those_it_was_learnt_from_by_the_weaker_map():
    features = with_telling_directions(20)[0]
    strong, weak = np.diag(np.arange(1, 25.0)), np.diag(np.arange(1, 25.0) ** 0.5)
    both = Preparation(None, transform=strong, training_transform=weak, is_metric=True)
    np.testing.assert_array_equal(
        both.apply_to_training_set(features), Preparation(None, transform=weak).apply(features)
    )
    alone = Preparation(None, transform=strong)
    np.testing.assert_array_equal(alone.apply_to_training_set(features), alone.apply(features))
    np.testing.assert_array_equal(both.apply(features), alone.apply(features))
    assert both.describe().endswith("mapped by a metric learnt from identities")
