import numpy as np
import pytest

from hilander.errors import SettingError
from hilander.knn.search import build_knn_graph
from hilander.synthetic.face_like import PRESETS, FaceLikeSettings, draw_sizes, make_face_like


def neighbour_purity(features: np.ndarray, labels: np.ndarray) -> float:
    graph = build_knn_graph(features, 10)
    return float((labels[graph.neighbours] == labels[:, None]).mean())


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_the_counts_of_its_name_at_any_scale(preset: str) -> None:
    whole = PRESETS[preset]
    for factor in (0.02, 0.5):
        part = whole.scaled(factor)
        sizes = draw_sizes(part, np.random.default_rng(0))
        assert sizes.sum() == part.n_points
        assert len(sizes) == part.n_identities
        assert sizes.min() >= 1
        assert part.mean_size == pytest.approx(whole.mean_size, rel=0.15)


def test_the_same_seed_makes_the_same_set_and_another_seed_another() -> None:
    first, labels = make_face_like("imdb", scale=0.002, seed=1)
    again, labels_again = make_face_like("imdb", scale=0.002, seed=1)
    other, _ = make_face_like("imdb", scale=0.002, seed=2)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(labels, labels_again)
    assert not np.array_equal(first, other)


def test_rows_have_unit_length_and_every_identity_appears() -> None:
    features, labels = make_face_like("trillionpairs", scale=0.003)
    assert features.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-5)
    assert len(np.unique(labels)) == PRESETS["trillionpairs"].scaled(0.003).n_identities


@pytest.mark.parametrize(("preset", "scale"), [("imdb", 0.01), ("trillionpairs", 0.015)])
def test_neighbours_are_as_pure_as_those_of_real_faces(preset: str, scale: float) -> None:
    assert 0.85 <= neighbour_purity(*make_face_like(preset, scale=scale)) <= 0.95


def test_cosines_within_and_between_identities_are_those_of_real_faces() -> None:
    features, labels = make_face_like(FaceLikeSettings(6_000, 300), seed=3)
    rng = np.random.default_rng(0)
    left, right = rng.integers(len(features), size=(2, 300_000))
    cosine = np.einsum("ij,ij->i", features[left], features[right])
    same = (labels[left] == labels[right]) & (left != right)
    assert np.mean(cosine[same]) == pytest.approx(0.68, abs=0.04)
    assert np.mean(cosine[~same & (left != right)]) == pytest.approx(0.0, abs=0.02)
    assert np.std(cosine[~same & (left != right)]) == pytest.approx(0.18, abs=0.02)


def test_the_space_uses_few_of_its_dimensions() -> None:
    features, _ = make_face_like(FaceLikeSettings(5_000, 250), seed=3)
    variance = np.linalg.eigvalsh(np.cov(features.T))
    assert 20 <= variance.sum() ** 2 / (variance**2).sum() <= 40


def test_sets_of_one_embedder_share_their_main_directions() -> None:
    first, _ = make_face_like(FaceLikeSettings(4_000, 400), seed=1, embedder=5)
    second, _ = make_face_like(FaceLikeSettings(4_000, 400), seed=2, embedder=5)
    other, _ = make_face_like(FaceLikeSettings(4_000, 400), seed=2, embedder=6)

    def main_direction(features: np.ndarray) -> np.ndarray:
        return np.linalg.eigh(np.cov(features.T))[1][:, -1]

    assert abs(main_direction(first) @ main_direction(second)) > 0.7
    assert abs(main_direction(first) @ main_direction(other)) < 0.5


def test_heavy_tailed_sizes_have_a_giant_and_log_normal_ones_have_not() -> None:
    giant = draw_sizes(PRESETS["hannah"], np.random.default_rng(0)).max()
    largest = draw_sizes(PRESETS["imdb"], np.random.default_rng(0)).max()
    assert giant > 10 * PRESETS["hannah"].mean_size
    assert largest < 60 * PRESETS["imdb"].mean_size


@pytest.mark.parametrize(
    "wrong", [{"dim": 2}, {"n_identities": 0}, {"family_share": 1.0}, {"sizes": "even"}]
)
def test_impossible_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(SettingError):
        FaceLikeSettings(**{"n_points": 100, "n_identities": 10, **wrong})


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(SettingError, match="hannah"):
        make_face_like("casablanca")
    with pytest.raises(SettingError, match="scale"):
        make_face_like("imdb", scale=0)


@pytest.mark.parametrize(
    ("old", "new", "value"), [("n_looks", "n_modes", 2), ("look_spread", "mode_spread", 0.3)]
)
def test_names_of_version_0_1_still_work_with_a_warning(old: str, new: str, value: float) -> None:
    with pytest.warns(FutureWarning, match=f"`{old}` is now called `{new}`.*use {new}={value}"):
        settings = FaceLikeSettings(100, 10, **{old: value})
    assert settings == FaceLikeSettings(100, 10, **{new: value})
    assert settings.scaled(0.5).n_modes == settings.n_modes  # warnings are errors
