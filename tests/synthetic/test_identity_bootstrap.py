"""Bootstrapped identities, modelled on real ones."""

import numpy as np
import pytest

from hilander.arrays.rows import unit_rows
from hilander.synthetic.episodes import Episode, neighbour_purity
from hilander.synthetic.identity_bootstrap import FEWEST_SOURCES, IdentityBootstrap, draw_sizes
from hilander.synthetic.training_episodes import BOOTSTRAP_SIZES
from tests.synthetic.episode_sets import labelled


@pytest.mark.parametrize("sizes", BOOTSTRAP_SIZES)
def test_drawn_sizes_add_up_to_the_number_of_points(sizes):
    for n_points in (10, 500, 5000):
        drawn = draw_sizes(sizes, n_points, 12, np.random.default_rng(0))
        assert drawn.min() >= 1
        assert drawn.sum() - drawn[-1] < n_points <= drawn.sum()
        assert drawn.max() <= n_points // 2


def test_drawn_sizes_follow_the_named_distribution():
    drawn = {
        sizes: draw_sizes(sizes, 20_000, 12, np.random.default_rng(1)) for sizes in BOOTSTRAP_SIZES
    }
    assert (drawn["singles"] == 1).mean() == pytest.approx(0.7, abs=0.05)
    assert 8 <= drawn["even"].min() <= drawn["even"].max() <= 16
    assert set(drawn["small"]) == set(range(1, 8))
    assert drawn["large"].min() >= 19
    assert np.median(drawn["large"]) > 60
    assert np.median(drawn["log"]) == pytest.approx(np.sqrt(200), rel=0.5)


def test_unknown_sizes_are_refused():
    with pytest.raises(ValueError, match="sizes='odd' is not known"):
        draw_sizes("odd", 10, 5, np.random.default_rng(0))


def test_new_identities_differ_from_real_ones_and_from_each_other():
    whole = labelled(n_identities=40, size=12)
    made = IdentityBootstrap(whole).make("even", 600, np.random.default_rng(0))
    real, new = centres_of(whole), centres_of(made)
    assert (new @ real.T).max() < np.cos(0.05 * np.pi)
    assert (new @ new.T - 2 * np.eye(len(new))).max() < np.cos(0.05 * np.pi)


def centres_of(episode):
    """Mean directions of the identities, shape (n_identities, dim)."""
    kept = np.unique(episode.labels)
    centres = np.stack([episode.features[episode.labels == one].mean(axis=0) for one in kept])
    return centres / np.linalg.norm(centres, axis=1, keepdims=True)


def of_families(within, seed=0):
    """Identities that lie six by six near each other, and so are easily confused."""
    rng = np.random.default_rng(seed)
    centres = np.repeat(rng.normal(size=(10, 64)), 6, axis=0)
    centres += within * rng.normal(size=centres.shape)
    labels = np.repeat(np.arange(60), 12)
    points = centres[labels] + 0.5 * rng.normal(size=(720, 64))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return Episode(points.astype(np.float32), labels)


def test_new_identities_can_be_as_hard_to_tell_apart_as_the_real_ones():
    whole = of_families(0.3)
    goal, bootstrap = neighbour_purity(whole), IdentityBootstrap(whole)
    assert 0.5 < goal < 0.8
    hard, easy = (
        neighbour_purity(bootstrap.make("even", 800, np.random.default_rng(0), as_hard=as_hard))
        for as_hard in (True, False)
    )
    assert hard == pytest.approx(goal, abs=0.08)
    assert easy > goal + 0.15


def test_new_identities_are_as_close_together_as_real_ones():
    near, far = (IdentityBootstrap(of_families(within)).as_hard for within in (0.25, 0.5))
    assert 0 < near < 0.75 * far


def test_new_points_are_new_and_of_unit_length():
    whole = labelled()
    made = IdentityBootstrap(whole).make("log", 300, np.random.default_rng(1))
    assert made.features.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(made.features, axis=1), 1, atol=1e-5)
    assert (made.features @ whole.features.T).max() < 1 - 1e-4
    together = made.features @ made.features.T - 2 * np.eye(len(made.labels))
    assert together.max() < 1 - 1e-6  # no point twice
    np.testing.assert_array_equal(np.unique(made.labels), np.arange(made.labels.max() + 1))


def test_too_few_identities_of_three_points_are_not_bootstrapped():
    sizes = [3] * (FEWEST_SOURCES - 1) + [2] * 30
    assert not IdentityBootstrap(labelled(sizes=sizes)).can_draw
    assert IdentityBootstrap(labelled(sizes=[*sizes, 3])).can_draw
    assert not IdentityBootstrap(labelled(size=1)).can_draw


def of_two_kinds(loose=1.6, tight=0.5, seed=0):
    """Twenty identities of members far from their centre, and twenty of near ones."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(40), 15)
    spread = np.where(labels < 20, loose, tight)[:, None]
    points = unit_rows(rng.normal(size=(40, 64)))[labels]
    points = unit_rows(points + spread * rng.normal(size=points.shape) / 8)
    return Episode(points.astype(np.float32), labels)


def test_the_looser_half_of_the_identities_is_no_model():
    whole = of_two_kinds()
    tightness = IdentityBootstrap(whole).members.tightness
    assert tightness[:20].max() < 0.7 < 0.85 < tightness[20:].min()
    made = IdentityBootstrap(whole).make("even", 600, np.random.default_rng(0))
    projection = (made.features * centres_of(made)[made.labels]).sum(axis=1)
    assert projection.mean() > 0.85


def test_some_small_identities_are_moved_close_together_and_most_are_not():
    bootstrap = IdentityBootstrap(of_two_kinds())
    loose, typical = np.quantile(bootstrap.members.tightness, [0.1, 0.5])
    centres, counts = np.eye(1000, dtype=np.float32), np.full(1000, 5)
    shares = []
    for seed in range(20):
        moved = bootstrap._group_small_identities(
            centres.copy(), counts, np.random.default_rng(seed)
        )
        grouped = np.flatnonzero((moved != centres).any(axis=1))
        shares.append(len(grouped) / 1000)
        nearest = (moved @ moved.T - 2 * np.eye(1000))[grouped].max(axis=1)
        assert np.median(nearest) > 0.4 * (loose / typical) ** 2 - 0.05
    assert 0.05 < np.mean(shares) < max(shares) < 3 * 0.15


def test_sets_have_groups_and_the_measure_of_hardness_has_none(monkeypatch):
    asked = []
    group = IdentityBootstrap._group_small_identities

    def watch(self, centres, counts, rng):
        asked.append(len(counts))
        return group(self, centres, counts, rng)

    monkeypatch.setattr(IdentityBootstrap, "_group_small_identities", watch)
    bootstrap = IdentityBootstrap(labelled())
    assert not asked
    made = bootstrap.make("small", 300, np.random.default_rng(0))
    assert asked == [made.labels.max() + 1]


def test_no_large_identity_is_moved_to_a_group():
    bootstrap = IdentityBootstrap(labelled(n_identities=60, dim=64, spread=0.7))
    counts, centres = np.array([40] * 60 + [1] * 200), np.eye(260, dtype=np.float32)
    moved = bootstrap._group_small_identities(centres.copy(), counts, np.random.default_rng(0))
    np.testing.assert_array_equal(moved[:60], centres[:60])
    assert (moved[60:] != centres[60:]).any()


def test_a_group_is_at_most_as_close_as_the_members_of_loose_identities():
    bootstrap = IdentityBootstrap(of_two_kinds())
    loose, typical = np.quantile(bootstrap.members.tightness, [0.1, 0.5])
    centres, counts = np.eye(300, dtype=np.float32), np.ones(300, dtype=np.int64)
    closest = []
    for seed in range(20):
        moved = bootstrap._group_small_identities(
            centres.copy(), counts, np.random.default_rng(seed)
        )
        closest.append((moved @ moved.T - 2 * np.eye(300)).max())
    assert 0.8 * (loose / typical) ** 2 < max(closest) < (loose / typical) ** 2 + 0.01


def test_a_group_is_looser_than_identities_that_are_all_equally_tight():
    bootstrap = IdentityBootstrap(labelled(n_identities=60, dim=64, spread=0.7))
    loose, typical = np.quantile(bootstrap.members.tightness, [0.1, 0.5])
    assert (loose / typical) ** 2 > 0.85
    shared = np.full(300, 0.4, dtype=np.float32)  # what all directions have in common
    centres, counts = unit_rows(5 * np.eye(300, dtype=np.float32) + shared), np.ones(300, int)
    for seed in range(20):
        moved = bootstrap._group_small_identities(
            centres.copy(), counts, np.random.default_rng(seed)
        )
        np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1, atol=1e-5)
        assert (moved @ moved.T - 2 * np.eye(300)).max() < 0.8


def test_identities_whose_members_cancel_out_can_be_bootstrapped():
    rng = np.random.default_rng(0)
    half = unit_rows(rng.normal(size=(60, 16)))
    points = np.concatenate([half, -half, half, -half]).astype(np.float32)
    bootstrap = IdentityBootstrap(Episode(points, np.tile(np.arange(60), 4)))
    assert bootstrap.members.tightness.max() < 1e-6
    made = bootstrap.make("singles", 300, np.random.default_rng(1))
    np.testing.assert_allclose(np.linalg.norm(made.features, axis=1), 1, atol=1e-5)
