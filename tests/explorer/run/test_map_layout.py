"""The layout of the map."""

import numpy as np
import pytest

from hilander.explorer.run.map_layout import (
    build_map,
    fit_square,
    place_features,
    place_in_subprocess,
)
from hilander.explorer.run.run_folder import open_run


def unit_rows(n_rows, dim=8, seed=0):
    features = np.random.default_rng(seed).normal(size=(n_rows, dim))
    return (features / np.linalg.norm(features, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("n_rows", [1, 2, 9, 10, 60])
def test_places_are_inside_the_square(n_rows):
    _, places = place_features(unit_rows(n_rows))
    assert places.shape == (n_rows, 2)
    assert np.abs(places).max() <= 1


def test_few_peaks_are_placed_by_principal_components():
    assert place_features(unit_rows(5))[0] == "pca"


def test_peaks_beyond_the_landmarks_lie_among_their_similar_landmarks():
    rng = np.random.default_rng(1)
    centres = np.eye(4, 8)
    labels = rng.integers(0, 4, 300)
    features = (centres[labels] + rng.normal(scale=0.02, size=(300, 8))).astype(np.float32)
    _, places = place_features(features, n_landmarks=60)
    middles = np.array([np.median(places[labels == label], axis=0) for label in range(4)])
    nearest = np.linalg.norm(places[:, None] - middles, axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.95


def test_many_peaks_are_placed_in_a_subprocess_that_succeeds():
    method, places = place_in_subprocess(unit_rows(310))
    assert method in ("tsne", "umap")  # principal components would mean that it failed
    assert places.shape == (310, 2)


def test_outliers_are_clipped_to_the_border():
    places = np.vstack([np.random.default_rng(0).normal(size=(2000, 2)), [[1e6, 0]]])
    square = fit_square(places.astype(np.float32))
    assert square[-1, 0] == 1
    assert np.abs(square[:-1]).mean() > 0.1


def test_a_layout_is_read_from_the_cache_and_a_damaged_one_is_computed_again(whole_run, tmp_path):
    run = open_run(whole_run)
    first = build_map(run, tmp_path)
    (stored,) = tmp_path.glob("map-*.npz")
    np.testing.assert_array_equal(build_map(run, tmp_path).places, first.places)
    stored.write_bytes(b"damaged")
    np.testing.assert_array_equal(build_map(run, tmp_path).places, first.places)
    assert stored.stat().st_size > 100
