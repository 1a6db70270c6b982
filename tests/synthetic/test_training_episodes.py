"""The episodes that are made of a labelled set."""

import numpy as np

from hilander.synthetic.identity_bootstrap import IdentityBootstrap
from hilander.synthetic.training_episodes import (
    BOOTSTRAP_SIZES,
    N_DRAWS,
    N_SMALL_DRAWS,
    REAL_SIZES,
    SMALL_BOOTSTRAP_SIZES,
    SMALL_REAL_SIZES,
    SMALL_SET_POINTS,
    make_episodes,
)
from tests.synthetic.episode_sets import labelled, rows_of, sizes_of


def test_the_same_seed_makes_the_same_episodes():
    one, two, other = (
        make_episodes(labelled(), 200, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    many = N_DRAWS * (len(REAL_SIZES) + len(BOOTSTRAP_SIZES))
    small = N_SMALL_DRAWS * (len(SMALL_REAL_SIZES) + len(SMALL_BOOTSTRAP_SIZES))
    assert len(one) == len(two) == 1 + many + small
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.features, b.features)
        np.testing.assert_array_equal(a.labels, b.labels)
    assert any(rows_of(a) != rows_of(b) for a, b in zip(one, other, strict=True))


def test_bootstrapped_episodes_count_less_than_real_ones():
    made = make_episodes(labelled(), 200, np.random.default_rng(0))
    whole = rows_of(labelled())
    real = [episode for episode in made if rows_of(episode) <= whole]
    many = N_DRAWS * len(REAL_SIZES)
    assert len(real) == 1 + many + N_SMALL_DRAWS * len(SMALL_REAL_SIZES)
    assert {episode.weight for episode in real[1 : 1 + many]} == {1.0}
    assert {episode.weight for episode in real[1 + many :]} == {0.5}
    assert all(0 < episode.weight < 0.5 for episode in made if episode not in real)
    assert all(len(episode.labels) <= 400 for episode in real)


def test_the_set_as_it_is_counts_most():
    made = make_episodes(labelled(), 1000, np.random.default_rng(0))
    assert rows_of(made[0]) == rows_of(labelled())
    assert made[0].weight > max(episode.weight for episode in made[1:])


def test_every_size_distribution_is_drawn_easy_and_as_hard_as_the_real_set(monkeypatch):
    asked = []
    make = IdentityBootstrap.make

    def watch(self, sizes, n_points, rng, *, as_hard=False):
        asked.append((sizes, as_hard))
        assert SMALL_SET_POINTS[0] <= n_points <= 200
        return make(self, sizes, n_points, rng, as_hard=as_hard)

    monkeypatch.setattr(IdentityBootstrap, "make", watch)
    make_episodes(labelled(), 200, np.random.default_rng(0))
    many = N_DRAWS * len(BOOTSTRAP_SIZES)
    assert len(asked) == many + N_SMALL_DRAWS * len(SMALL_BOOTSTRAP_SIZES)
    for drawn, all_sizes in (asked[:many], BOOTSTRAP_SIZES), (asked[many:], SMALL_BOOTSTRAP_SIZES):
        assert set(drawn) == {(sizes, hard) for sizes in all_sizes for hard in (False, True)}


def test_too_few_identities_are_only_re_sampled():
    made = make_episodes(labelled(n_identities=4), 200, np.random.default_rng(0))
    assert len(made) == 1 + N_DRAWS * len(REAL_SIZES) + N_SMALL_DRAWS * len(SMALL_REAL_SIZES)


def test_small_sets_come_last_and_have_small_identities():
    made = make_episodes(labelled(n_identities=200), 5000, np.random.default_rng(0))
    small = made[1 + N_DRAWS * (len(REAL_SIZES) + len(BOOTSTRAP_SIZES)) :]
    points = np.array([len(episode.labels) for episode in small])
    assert (points < 2 * SMALL_SET_POINTS[1]).all()
    assert points.min() < 60
    assert points.max() > 400
    assert all(np.median(sizes_of(episode)) <= 7 for episode in small)
    assert sum(np.median(sizes_of(episode)) == 1 for episode in small) > len(small) / 2
