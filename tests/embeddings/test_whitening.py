import numpy as np
import pytest

from hilander.embeddings.preparation import Preparation
from hilander.embeddings.whitening import whiten_within
from hilander.errors import EmbeddingError, SettingError
from hilander.synthetic.identities import make_identities


def scattered(seed=0, dim=6):
    """Identities with ten times the standard deviation in some directions."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(12), 40))
    stretch = np.geomspace(0.05, 0.5, dim)
    turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    noise = (rng.normal(size=(len(labels), dim)) * stretch) @ turn
    return (rng.normal(size=(12, dim))[labels] + noise).astype(np.float32), labels


def covariance_within(features, labels):
    scatter = np.concatenate(
        [
            features[labels == one] - features[labels == one].mean(axis=0)
            for one in np.unique(labels)
        ]
    )
    return scatter.T @ scatter / len(scatter)


def test_without_a_ridge_the_variance_is_equal_in_all_directions():
    features, labels = scattered()
    transform = whiten_within(features, labels, 0.0)
    after = covariance_within(features.astype(np.float64) @ transform, labels)
    np.testing.assert_allclose(after / after[0, 0], np.eye(6), atol=1e-3)


def test_the_transform_is_the_inverse_root_of_the_ridged_covariance():
    features, labels = scattered()
    for ridge in (0.1, 1.0):
        transform = whiten_within(features, labels, ridge).astype(np.float64)
        within = covariance_within(features.astype(np.float64), labels)
        ridged = within + ridge * np.trace(within) / 6 * np.eye(6)
        product = transform @ ridged @ transform
        np.testing.assert_allclose(product / product[0, 0], np.eye(6), atol=1e-3)
        np.testing.assert_allclose(transform, transform.T, atol=1e-6)


def test_a_large_ridge_gives_nearly_the_identity():
    features, labels = scattered()
    transform = whiten_within(features, labels, 1e6)
    np.testing.assert_allclose(transform, np.eye(6), atol=1e-3)


def test_the_names_of_the_identities_have_no_effect():
    features, labels = scattered()
    names = 7 * (labels.max() - labels) + 3
    np.testing.assert_allclose(
        whiten_within(features, names, 1.0), whiten_within(features, labels, 1.0), atol=1e-5
    )


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_equal_members_give_the_identity(ridge):
    features = make_identities(n_identities=10, size=1, dim=6, seed=0)[0]
    repeated, labels = np.repeat(features, 3, axis=0), np.repeat(np.arange(10), 3)
    np.testing.assert_array_equal(whiten_within(repeated, labels, ridge), np.eye(6))


# As a part of the preparation.


@pytest.mark.parametrize("mean", [None, np.full(6, 0.1)])
def test_whitened_rows_have_unit_length_and_the_direction_of_the_map(mean):
    features, labels = scattered()
    transform = whiten_within(features, labels, 0.1)
    plain, whitened = Preparation(mean), Preparation(mean, transform=transform)
    rows = whitened.apply(features)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    expected = plain.apply(features) @ transform
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(rows, expected, atol=1e-5)
    assert np.abs(rows - plain.apply(features)).max() > 0.01
    assert "whitened" in whitened.describe()
    assert "whitened" not in plain.describe()


@pytest.mark.parametrize(
    "transform", [np.ones(6), np.ones((6, 5)), np.full((6, 6), np.nan), np.ones((5, 5))]
)
def test_a_transform_of_another_shape_is_refused(transform):
    with pytest.raises(SettingError, match=r"transform of shape .* use whiten_within or"):
        Preparation(np.zeros(6), transform=transform)


def test_a_preparation_with_only_a_transform_checks_the_number_of_features():
    with pytest.raises(EmbeddingError, match="got 4 features, the model was trained on 6"):
        Preparation(None, transform=np.eye(6)).apply(np.ones((3, 4), dtype=np.float32))
