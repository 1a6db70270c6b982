import numpy as np
import pytest

from hilander.data import make_identities
from hilander.data.episodes import (
    BOOTSTRAP_SIZES,
    FEW_BOOTSTRAP_SIZES,
    FEW_POINTS,
    FEW_REAL_SIZES,
    FEW_TURNS,
    FEWEST_SOURCES,
    REAL_SIZES,
    TURNS,
    Episode,
    IdentityBootstrap,
    draw_sizes,
    make_episodes,
    neighbour_purity,
    resample_identities,
)


def labelled(seed=0, **changes):
    settings = {"n_identities": 40, "size": 12, "dim": 16, "spread": 0.9, "seed": seed}
    return Episode(*make_identities(**{**settings, **changes}))


def sizes_of(episode):
    return np.unique(episode.labels, return_counts=True)[1]


def rows_of(episode):
    pairs = zip(episode.features, episode.labels, strict=True)
    return {(row.tobytes(), int(label)) for row, label in pairs}


# Sampling what there is.


@pytest.mark.parametrize("sizes", ["all", *REAL_SIZES])
def test_a_sample_holds_points_of_the_set_under_their_own_label_and_each_once(sizes):
    whole = labelled()
    part = resample_identities(whole, sizes, 10_000, np.random.default_rng(0))
    assert rows_of(part) <= rows_of(whole)
    assert len(rows_of(part)) == len(part.labels)
    assert len(sizes_of(part)) == 40  # nobody is left out below the cap


def test_all_keeps_everything():
    whole = labelled()
    part = resample_identities(whole, "all", 10_000, np.random.default_rng(0))
    assert rows_of(part) == rows_of(whole)


def test_singles_are_most_identities_and_the_rest_stay_whole():
    whole = labelled(n_identities=400, size=5)
    sizes = sizes_of(resample_identities(whole, "singles", 10_000, np.random.default_rng(1)))
    assert set(sizes) == {1, 5}
    assert (sizes == 1).mean() == pytest.approx(0.7, abs=0.07)


def test_log_sizes_have_as_many_below_the_root_as_above():
    whole = labelled(n_identities=200, size=100, dim=4)
    sizes = sizes_of(resample_identities(whole, "log", 10**6, np.random.default_rng(2)))
    assert sizes.max() > 60
    assert (sizes < 10).mean() == pytest.approx(0.5, abs=0.12)


def test_heavy_sizes_are_mostly_small_with_a_long_tail():
    whole = labelled(n_identities=200, size=100, dim=4)
    sizes = sizes_of(resample_identities(whole, "heavy", 10**6, np.random.default_rng(3)))
    assert np.median(sizes) <= 3
    assert sizes.max() > 30


@pytest.mark.parametrize("most_points", [1, 7, 60, 200])
@pytest.mark.parametrize("sizes", ["all", *REAL_SIZES])
def test_a_sample_has_no_more_points_than_asked(sizes, most_points):
    part = resample_identities(labelled(), sizes, most_points, np.random.default_rng(4))
    assert 1 <= len(part.labels) <= most_points


def test_an_identity_as_large_as_the_cap_does_not_fill_the_sample():
    whole = labelled(sizes=[5000, 5000, 5000], dim=2)
    for seed in range(5):
        part = resample_identities(whole, "all", 100, np.random.default_rng(seed))
        assert len(part.labels) <= 100
        assert len(sizes_of(part)) > 1


def test_labels_may_have_gaps():
    whole = labelled()
    gaps = Episode(whole.features, 7 * whole.labels + 3)
    part = resample_identities(gaps, "log", 200, np.random.default_rng(5))
    assert rows_of(part) <= rows_of(gaps)


# Making what might be.


@pytest.mark.parametrize("sizes", BOOTSTRAP_SIZES)
def test_drawn_sizes_add_up_to_what_was_asked(sizes):
    for n_points in (10, 500, 5000):
        drawn = draw_sizes(sizes, n_points, 12, np.random.default_rng(0))
        assert drawn.min() >= 1
        assert drawn.sum() - drawn[-1] < n_points <= drawn.sum()
        assert drawn.max() <= n_points // 2


def test_drawn_sizes_follow_what_is_named():
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
    with pytest.raises(ValueError, match="unknown sizes 'odd'"):
        draw_sizes("odd", 10, 5, np.random.default_rng(0))
    with pytest.raises(ValueError, match="unknown sizes 'odd'"):
        resample_identities(labelled(), "odd", 10, np.random.default_rng(0))


def test_new_identities_stand_apart_from_real_ones_and_from_each_other():
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
    hard, strangers = (
        neighbour_purity(bootstrap.make("even", 800, np.random.default_rng(0), as_hard=as_hard))
        for as_hard in (True, False)
    )
    assert hard == pytest.approx(goal, abs=0.08)
    assert strangers > goal + 0.15


def test_the_nearer_the_real_identities_the_nearer_are_the_new_ones():
    near, far = (IdentityBootstrap(of_families(within)).as_hard for within in (0.25, 0.5))
    assert 0 < near < 0.75 * far


def test_purity_is_the_share_of_the_ten_nearest_that_are_of_the_same_identity():
    whole = labelled(n_identities=10)
    same = []
    for point, label in zip(whole.features, whole.labels, strict=True):
        nearest = np.argsort(-(whole.features @ point), kind="stable")[1:11]
        same += (whole.labels[nearest] == label).tolist()
    assert neighbour_purity(whole) == pytest.approx(np.mean(same))


def test_purity_of_fewer_points_is_of_all_their_neighbours():
    features = labelled().features[:4]
    assert neighbour_purity(Episode(features, np.array([0, 0, 1, 1]))) == pytest.approx(1 / 3)


def test_new_points_are_new_and_of_unit_length():
    whole = labelled()
    made = IdentityBootstrap(whole).make("log", 300, np.random.default_rng(1))
    assert made.features.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(made.features, axis=1), 1, atol=1e-5)
    assert (made.features @ whole.features.T).max() < 1 - 1e-4
    together = made.features @ made.features.T - 2 * np.eye(len(made.labels))
    assert together.max() < 1 - 1e-6  # nobody twice
    np.testing.assert_array_equal(np.unique(made.labels), np.arange(made.labels.max() + 1))


def test_few_identities_with_three_points_are_too_few_to_learn_from():
    sizes = [3] * (FEWEST_SOURCES - 1) + [2] * 30
    assert not IdentityBootstrap(labelled(sizes=sizes)).is_able
    assert IdentityBootstrap(labelled(sizes=[*sizes, 3])).is_able
    assert not IdentityBootstrap(labelled(size=1)).is_able


# All of them together.


def test_the_same_seed_makes_the_same_episodes():
    one, two, other = (
        make_episodes(labelled(), 200, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    many = TURNS * (len(REAL_SIZES) + len(BOOTSTRAP_SIZES))
    few = FEW_TURNS * (len(FEW_REAL_SIZES) + len(FEW_BOOTSTRAP_SIZES))
    assert len(one) == len(two) == 1 + many + few
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.features, b.features)
        np.testing.assert_array_equal(a.labels, b.labels)
    assert any(rows_of(a) != rows_of(b) for a, b in zip(one, other, strict=True))


def test_made_up_episodes_count_less_than_real_ones():
    made = make_episodes(labelled(), 200, np.random.default_rng(0))
    whole = rows_of(labelled())
    real = [episode for episode in made if rows_of(episode) <= whole]
    many = TURNS * len(REAL_SIZES)
    assert len(real) == 1 + many + FEW_TURNS * len(FEW_REAL_SIZES)
    assert {episode.weight for episode in real[1 : 1 + many]} == {1.0}
    assert {episode.weight for episode in real[1 + many :]} == {0.5}
    assert all(0 < episode.weight < 0.5 for episode in made if episode not in real)
    assert all(len(episode.labels) <= 400 for episode in real)


def test_the_set_as_it_is_counts_most():
    made = make_episodes(labelled(), 1000, np.random.default_rng(0))
    assert rows_of(made[0]) == rows_of(labelled())
    assert made[0].weight > max(episode.weight for episode in made[1:])


def test_every_size_distribution_is_drawn_among_strangers_and_among_the_hard(monkeypatch):
    asked = []
    make = IdentityBootstrap.make

    def watch(self, sizes, n_points, rng, *, as_hard=False):
        asked.append((sizes, as_hard))
        assert FEW_POINTS[0] <= n_points <= 200
        return make(self, sizes, n_points, rng, as_hard=as_hard)

    monkeypatch.setattr(IdentityBootstrap, "make", watch)
    make_episodes(labelled(), 200, np.random.default_rng(0))
    many = TURNS * len(BOOTSTRAP_SIZES)
    assert len(asked) == many + FEW_TURNS * len(FEW_BOOTSTRAP_SIZES)
    for drawn, all_sizes in (asked[:many], BOOTSTRAP_SIZES), (asked[many:], FEW_BOOTSTRAP_SIZES):
        assert set(drawn) == {(sizes, hard) for sizes in all_sizes for hard in (False, True)}


def test_without_enough_identities_the_real_ones_are_all_there_is():
    made = make_episodes(labelled(n_identities=4), 200, np.random.default_rng(0))
    assert len(made) == 1 + TURNS * len(REAL_SIZES) + FEW_TURNS * len(FEW_REAL_SIZES)


def test_sets_of_few_points_come_last_and_hold_small_identities():
    made = make_episodes(labelled(n_identities=200), 5000, np.random.default_rng(0))
    few = made[1 + TURNS * (len(REAL_SIZES) + len(BOOTSTRAP_SIZES)) :]
    points = np.array([len(episode.labels) for episode in few])
    assert (points < 2 * FEW_POINTS[1]).all()
    assert points.min() < 60
    assert points.max() > 400
    assert all(np.median(sizes_of(episode)) <= 7 for episode in few)
    assert sum(np.median(sizes_of(episode)) == 1 for episode in few) > len(few) / 2
