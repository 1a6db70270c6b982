import numpy as np
import pytest

from hilander.synthetic.episodes import Episode, neighbour_purity, resample_identities
from hilander.synthetic.training_episodes import REAL_SIZES
from tests.synthetic.episode_sets import labelled, rows_of, sizes_of


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


def test_unknown_sizes_are_refused():
    with pytest.raises(ValueError, match="sizes='odd' is not known"):
        resample_identities(labelled(), "odd", 10, np.random.default_rng(0))


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
