import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.synthetic.identities import make_identities


def test_a_seed_makes_one_set():
    one, two, other = make_identities(seed=1), make_identities(seed=1), make_identities(seed=2)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])
    assert not np.array_equal(one[0], other[0])


def test_sizes_are_those_asked_for():
    features, labels = make_identities(sizes=[1, 5, 2], dim=6)
    assert features.shape == (8, 6)
    assert features.dtype == np.float32
    assert labels.dtype == np.int64
    assert np.bincount(labels).tolist() == [1, 5, 2]
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("spread", [0.0, 0.35, 1.0])
def test_spread_sets_the_cosine_of_one_identity(spread):
    features, labels = make_identities(20, 30, dim=256, spread=spread)
    cosines = features @ features.T
    same = (labels[:, None] == labels) & ~np.eye(len(labels), dtype=bool)
    assert cosines[same].mean() == pytest.approx(1 / (1 + spread**2), abs=0.02)


def test_rows_are_shuffled():
    _, labels = make_identities()
    assert (np.diff(labels) < 0).any()


@pytest.mark.parametrize(
    "settings", [{"size": 0}, {"n_identities": 0}, {"dim": 0}, {"spread": -1}, {"sizes": [2, 0]}]
)
def test_an_empty_set_is_refused(settings):
    with pytest.raises(SettingError, match="choose larger"):
        make_identities(**settings)
