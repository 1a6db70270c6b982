"""Which linear map of the embeddings is chosen, and how it is validated."""

import numpy as np
import pytest

from hilander.arrays.rows import unit_rows
from hilander.embeddings.preparation import Preparation
from hilander.embeddings.whitening import whiten_within
from hilander.engines.threads import Workers
from hilander.knn.search import build_knn_graph
from hilander.synthetic.episodes import Episode
from hilander.synthetic.identities import make_identities
from hilander.training import map_choice
from hilander.training.map_choice import (
    LEAST_GAIN,
    RIDGES,
    apply_map,
    choose_map,
    choose_whitening,
    force_whitening,
    rank_all_edges,
    rank_found_edges,
    split_identities,
    weaken_map,
)


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


@pytest.mark.parametrize(
    ("first", "more", "n_halvings", "chosen"),
    [(0.03, 0.0, 2, True), (0.001, 1.0, 2, False), (0.009, 0.02, 8, True), (0.015, 0, 8, False)],
)
def test_a_gain_that_is_not_clear_is_measured_on_more_halvings(
    monkeypatch, first, more, n_halvings, chosen
):
    counts = []

    def measure(splits, maps, *_):
        counts.append(len(splits))
        return np.full((len(splits), len(maps)), more if len(counts) > 1 else first)

    monkeypatch.setattr(map_choice, "list_gains", measure)
    features, labels = with_nuisance(8)
    found = choose_whitening(features, labels, 7, seed=0, least_gain=0.01)
    assert (found is not None, sum(counts)) == (chosen, n_halvings)


@pytest.mark.parametrize("changes", [{"n_identities": 14}, {"size": 2}, {"size": 1}])
def test_too_few_identities_or_pairs_give_no_map(changes):
    strong = with_nuisance(8, **{"n_identities": 40} | changes)
    assert choose_whitening(*strong, 7, seed=0) is None
    assert choose_map(*strong, 7, seed=0) is None
    assert split_identities(*strong, 7, seed=0) == []


def test_edges_are_ranked_by_average_precision():
    features, labels = make_identities(n_identities=10, size=8, dim=6, spread=0.8, seed=0)
    graph = build_knn_graph(features, 7)
    same = labels[graph.neighbours] == labels[:, None]
    expected, before = 0.0, 0.0
    for least in np.unique(graph.affinity)[::-1]:  # edges of equal affinity come together
        taken = same[graph.affinity >= least]
        recall = taken.sum() / same.sum()
        expected, before = expected + (recall - before) * taken.mean(), recall
    assert rank_found_edges(Episode(features, labels), 7) == pytest.approx(expected, abs=1e-6)


def test_a_graph_without_wrong_edges_cannot_be_ranked_better():
    features = make_identities(n_identities=10, size=8, dim=6, seed=0)[0]
    assert rank_found_edges(Episode(features, np.zeros(80, dtype=np.int64)), 7) == 1
    assert rank_found_edges(Episode(features, np.arange(80)), 7) == 0


def test_missing_edges_are_ranked_last():
    features, labels = make_identities(n_identities=10, size=12, dim=6, spread=0.8, seed=0)
    episode, k = Episode(features, labels), 7
    graph = build_knn_graph(features, k)
    found = (labels[graph.neighbours] == labels[:, None]).sum()
    expected = rank_found_edges(episode, k) * found / (len(labels) * k)
    assert rank_all_edges(episode, k) == pytest.approx(expected)
    assert rank_all_edges(episode, k) < rank_found_edges(episode, k)
    # A point of an identity of three has two edges to find, whatever k is.
    far = np.eye(12, dtype=np.float32)[np.repeat(np.arange(12), 3)]
    assert rank_all_edges(Episode(far, np.repeat(np.arange(12), 3)), 5) == pytest.approx(1.0)
    assert rank_all_edges(Episode(features, np.arange(len(features))), k) == 0


def with_separating_directions(n_identities=80, seed=0, dim=24):
    """Identities that differ along six directions; members scatter alike along all."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_identities), 8)
    centres = rng.normal(size=(n_identities, dim)) * (np.arange(dim) < 6)
    points = centres[labels] + 0.35 * rng.normal(size=(len(labels), dim))
    return unit_rows(points.astype(np.float32)), labels


def test_a_metric_is_learned_if_identities_differ_along_some_directions():
    features, labels = with_separating_directions()
    assert choose_whitening(features, labels, 7, seed=0) is None  # members scatter alike
    chosen = choose_map(features, labels, 7, seed=0)
    assert chosen.is_metric
    others = Episode(*with_separating_directions(seed=1))
    assert (
        rank_all_edges(apply_map(others, chosen.transform), 7)
        > rank_all_edges(others, 7) + 3 * LEAST_GAIN
    )


def test_a_whitening_is_learned_if_members_scatter_along_some_directions():
    features, labels = with_nuisance(8, n_identities=20)
    chosen = choose_map(features, labels, 7, seed=0)
    assert not chosen.is_metric
    whitened = [whiten_within(features, labels, ridge) for ridge in RIDGES]
    assert any(np.array_equal(chosen.transform, one) for one in whitened)


def test_no_map_is_chosen_if_none_helps():
    for seed in range(3):
        assert choose_map(*with_nuisance(1, seed), 7, seed=0) is None


def test_embeddings_too_wide_to_whiten_may_have_a_metric(monkeypatch):
    monkeypatch.setattr(map_choice, "MOST_FEATURES", 15)
    chosen = choose_map(*with_nuisance(8, n_identities=80), 7, seed=0)
    assert chosen.is_metric


def test_with_the_weaker_map_training_identities_gain_like_new_ones():
    # With nearly as many directions as points, a whitening overfits its training identities.
    def draw(seed):
        rng = np.random.default_rng(seed)
        labels = np.repeat(np.arange(20), 8)
        noise = rng.normal(size=(160, 96)) * np.r_[[4.0] * 10, [1.2] * 86]
        return unit_rows((rng.normal(size=(20, 96))[labels] + noise).astype(np.float32)), labels

    training, others = Episode(*draw(0)), Episode(*draw(1))
    chosen = choose_map(training.features, training.labels, 7, seed=0)

    def gain(episode, transform):
        return rank_all_edges(apply_map(episode, transform), 7) - rank_all_edges(episode, 7)

    real, overfitted = gain(others, chosen.transform), gain(training, chosen.transform)
    assert overfitted > real + 0.1
    weakened = gain(training, chosen.training_transform)
    assert abs(weakened - (real + overfitted) / 2) < (overfitted - real) / 4


def test_a_map_is_weakened_half_way_to_what_it_should_gain():
    features, labels = with_nuisance(8)
    episode, transform = Episode(features, labels), whiten_within(features, labels, 0.3)
    plain, full = (rank_all_edges(one, 7) for one in (episode, apply_map(episode, transform)))
    whole = transform - np.eye(16)
    for share in (0.0, 0.5):
        weaker = weaken_map(transform, share * (full - plain), [episode] * 2, 7, Workers())
        gained = rank_all_edges(apply_map(episode, weaker), 7) - plain
        assert gained == pytest.approx((share + 1) / 2 * (full - plain), abs=0.1 * (full - plain))
        part = ((weaker - np.eye(16)) * whole).sum() / (whole * whole).sum()
        np.testing.assert_allclose(weaker - np.eye(16), part * whole, atol=1e-5)
        assert 0 < part < 1
    same = weaken_map(transform, full - plain, [episode], 7, Workers())
    np.testing.assert_array_equal(same, transform)


def test_a_forced_whitening_has_a_weaker_one_for_training_points():
    features, labels = with_nuisance(8)
    forced = force_whitening(Preparation(None), features, labels, 7, 0)
    np.testing.assert_allclose(forced.transform, whiten_within(features, labels, 1.0), atol=1e-5)
    assert not forced.is_metric
    shares = [
        np.linalg.norm(one - np.eye(16)) for one in (forced.training_transform, forced.transform)
    ]
    assert 0 < shares[0] < shares[1]
    few = force_whitening(Preparation(None), features[:64], labels[:64], 7, 0)  # too few
    np.testing.assert_array_equal(few.training_transform, few.transform)


def test_validation_identities_are_no_training_identities():
    splits = split_identities(*with_separating_directions(40), 7, seed=0)
    held_out = [set(split.validation.labels.tolist()) for split in splits]
    assert len(splits) == 4
    for split, some in zip(splits, held_out, strict=True):
        assert len(some) == 10
        assert some.isdisjoint(split.training.labels.tolist())
        assert len(np.unique(split.training.labels)) == 30
    assert len(set.union(*held_out)) > 20
    features, labels = with_separating_directions(20)
    few = split_identities(features, labels, 7, seed=0)
    assert {len(np.unique(split.validation.labels)) for split in few} == {8}  # the least


@pytest.mark.parametrize("sizes", [[400] * 100, [20_000] + [8] * 99, [3_000] * 16])
def test_large_identities_are_sub_sampled(sizes, monkeypatch):
    monkeypatch.setattr(map_choice, "_MOST_TRAINING_POINTS", 4_000)
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    features = np.random.default_rng(1).normal(size=(len(labels), 2)).astype(np.float32)
    splits = split_identities(features, labels, 7, seed=0)
    assert len(splits) == 4
    for split in splits:
        known, unseen = split.training, split.validation
        assert len(known.labels) <= 4_000
        assert len(unseen.labels) <= 3_000
        assert min(len(np.unique(one.labels)) for one in (known, unseen)) >= 8
        assert set(known.labels.tolist()).isdisjoint(unseen.labels.tolist())


def test_the_final_map_is_learned_from_no_more_points_than_the_validated_ones(monkeypatch):
    monkeypatch.setattr(map_choice, "_MOST_TRAINING_POINTS", 160)
    seen = []

    def learn(features, labels, ridge):
        seen.append(np.bincount(labels))
        return whiten_within(features, labels, ridge)

    monkeypatch.setattr(map_choice, "whiten_within", learn)
    chosen = choose_map(*with_nuisance(8, size=30), 7, seed=0)
    assert chosen is not None
    assert max(sizes.sum() for sizes in seen) <= 160
    assert max(sizes.max() for sizes in seen) <= 10


def test_a_preparation_applies_the_weaker_map_to_its_training_set():
    features = with_separating_directions(20)[0]
    strong, weak = np.diag(np.arange(1, 25.0)), np.diag(np.arange(1, 25.0) ** 0.5)
    both = Preparation(None, transform=strong, training_transform=weak, is_metric=True)
    np.testing.assert_array_equal(
        both.apply_to_training_set(features), Preparation(None, transform=weak).apply(features)
    )
    alone = Preparation(None, transform=strong)
    np.testing.assert_array_equal(alone.apply_to_training_set(features), alone.apply(features))
    np.testing.assert_array_equal(both.apply(features), alone.apply(features))
    assert "metric" in both.describe()
