"""Which linear map of the embeddings is chosen, and by whom."""

import numpy as np
import pytest

from hilander import map_choice
from hilander.data import Preparation, make_identities
from hilander.data.arrays import unit_rows
from hilander.data.episodes import Episode
from hilander.data.whitening import whiten_within
from hilander.graph import build_knn_graph
from hilander.map_choice import (
    LEAST_GAIN,
    RIDGES,
    choose_map,
    choose_whitening,
    find_edges,
    move,
    rank_edges,
    split_identities,
    weaken,
)


def with_nuisance(strength, seed=0, n_identities=40):
    """Identities whose members differ along a few directions far more than along the others."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_identities, 16))
    labels = np.repeat(np.arange(n_identities), 8)
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
def test_whitening_is_not_chosen_from_few_identities_or_pairs(changes):
    settings = {"n_identities": 30, "size": 8, "dim": 16, "spread": 0.8}
    features, labels = make_identities(**{**settings, **changes})
    assert choose_whitening(features, labels, 7, seed=0) is None


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


@pytest.mark.parametrize("n_identities", [14, 40])
def test_no_map_is_chosen_where_none_helps_or_too_few_can_say(n_identities):
    assert choose_map(*with_nuisance(1, n_identities=n_identities), 7, seed=0) is None


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
    assert abs(gain(taught, chosen.for_taught) - real) < (by_heart - real) / 2


def test_a_map_is_weakened_until_it_gains_what_it_should():
    features, labels = with_nuisance(8)
    episode, transform = Episode(features, labels), whiten_within(features, labels, 0.3)
    plain, full = (find_edges(one, 7) for one in (episode, move(episode, transform)))
    for share in (0.25, 0.75):
        weaker = weaken(transform, share * (full - plain), [episode], 7, find_edges)
        gained = find_edges(move(episode, weaker), 7) - plain
        assert gained == pytest.approx(share * (full - plain), abs=0.1 * (full - plain))
        change, whole = weaker - np.eye(16), transform - np.eye(16)
        part = (change * whole).sum() / (whole * whole).sum()
        np.testing.assert_allclose(change, part * whole, atol=1e-5)
        assert 0 < part < 1
    same = weaken(transform, full - plain + 0.01, [episode], 7, find_edges)
    np.testing.assert_array_equal(same, transform)


def test_those_who_judge_have_not_taught():
    features, labels = with_telling_directions(40)
    turns = list(split_identities(features, labels, 0, n_turns=4, judging=0.25))
    judges = [set(unseen.labels.tolist()) for _, unseen in turns]
    for (known, _), some in zip(turns, judges, strict=True):
        assert len(some) == 10
        assert some.isdisjoint(known.labels.tolist())
        assert len(np.unique(known.labels)) == 30
    assert len(set.union(*judges)) > 20
    few = next(split_identities(features[:160], labels[:160], 0, n_turns=1, judging=0.25))
    assert len(np.unique(few[1].labels)) == 8  # fewer could not judge


def test_of_many_points_some_identities_teach(monkeypatch):
    monkeypatch.setattr(map_choice, "_MOST_TEACHING", 100)
    features, labels = with_telling_directions(40)
    for known, unseen in split_identities(features, labels, 0, n_turns=2, judging=0.25):
        sizes = np.bincount(known.labels)
        assert set(sizes) == {0, 8}  # whole identities
        assert 100 <= sizes.sum() < 100 + 8
        assert set(known.labels.tolist()).isdisjoint(unseen.labels.tolist())


def test_a_preparation_shows_those_it_was_learnt_from_by_the_weaker_map():
    features = with_telling_directions(20)[0]
    strong, weak = np.diag(np.arange(1, 25.0)), np.diag(np.arange(1, 25.0) ** 0.5)
    both = Preparation(None, transform=strong, for_taught=weak, is_metric=True)
    np.testing.assert_array_equal(
        both.apply_to_taught(features), Preparation(None, transform=weak).apply(features)
    )
    alone = Preparation(None, transform=strong)
    np.testing.assert_array_equal(alone.apply_to_taught(features), alone.apply(features))
    np.testing.assert_array_equal(both.apply(features), alone.apply(features))
    assert both.describe().endswith("mapped by a metric learnt from identities")
