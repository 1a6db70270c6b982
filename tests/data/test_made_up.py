import numpy as np
import pytest

from hilander.data.episodes import Episode, neighbour_purity
from hilander.data.made_up import FEWEST_SOURCES, IdentityBootstrap, draw_sizes
from hilander.data.training_sets import BOOTSTRAP_SIZES
from tests.data.episode_sets import labelled


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
