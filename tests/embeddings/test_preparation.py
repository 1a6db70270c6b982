import numpy as np
import pytest

from hilander.embeddings.preparation import (
    Preparation,
    check_varied,
    learn_preparation,
    measure_cone,
)
from hilander.embeddings.validation import as_embeddings
from hilander.errors import EmbeddingError, SettingError
from hilander.synthetic.identities import make_identities


def cone(seed=0, offset=2.0, **settings):
    """Identities that all lean the same way, as some embedders make them."""
    features, labels = make_identities(seed=seed, **settings)
    direction = np.random.default_rng(seed + 1).normal(size=features.shape[1])
    return (features + offset * direction / np.linalg.norm(direction)).astype(np.float32), labels


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("centre", [True, False])
def test_prepared_rows_have_unit_length_at_any_scale(scale, centre):
    features, _ = cone()
    features = (features * scale).astype(np.float32)
    prepared = learn_preparation(features, centre).apply(features)
    assert prepared.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(prepared, axis=1), 1, atol=1e-6)


def test_the_length_of_rows_does_not_change_the_result():
    features, _ = cone()
    lengths = np.random.default_rng(1).uniform(0.1, 10, size=(len(features), 1))
    scaled = (features * lengths).astype(np.float32)
    one, two = learn_preparation(features, True), learn_preparation(scaled, True)
    np.testing.assert_allclose(one.apply(features), two.apply(scaled), atol=1e-6)


def test_centring_is_normalise_subtract_normalise():
    features, _ = cone()
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    centred = unit - unit.mean(axis=0)
    expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(
        learn_preparation(features, True).apply(features), expected, atol=1e-5
    )


def test_the_result_does_not_depend_on_the_block_size(monkeypatch):
    features, labels = cone()
    whole = learn_preparation(features, labels=labels)
    prepared, cosine = whole.apply(features), measure_cone(features, labels).pair_cosine
    monkeypatch.setattr("hilander.arrays.rows._BLOCK_VALUES", 7 * features.shape[1])
    pieces = learn_preparation(features, labels=labels)
    np.testing.assert_array_equal(whole.apply(features), prepared)
    np.testing.assert_allclose(pieces.mean, whole.mean, atol=1e-7)
    assert measure_cone(features, labels).pair_cosine == pytest.approx(cosine, abs=1e-12)


def test_the_input_is_not_changed():
    features, _ = cone()
    before = features.copy()
    learn_preparation(features, True).apply(features)
    np.testing.assert_array_equal(features, before)


def test_the_pair_cosine_is_the_mean_over_all_pairs_of_two_identities():
    features, labels = cone(n_identities=4, sizes=[1, 3, 10, 6])
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    cosines = unit @ unit.T
    different = labels[:, None] != labels[None, :]
    assert measure_cone(features, labels).pair_cosine == pytest.approx(
        cosines[different].mean(), abs=1e-5
    )
    others = ~np.eye(len(labels), dtype=bool)
    assert measure_cone(features).pair_cosine == pytest.approx(cosines[others].mean(), abs=1e-5)
    assert measure_cone(features[:1]).pair_cosine == 0


@pytest.mark.parametrize("n_identities", [2, 3, 30])
@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_cone_is_centred(n_identities, seed):
    features, labels = cone(seed, n_identities=n_identities, dim=64)
    assert learn_preparation(features, labels=labels).mean is not None


@pytest.mark.parametrize("n_identities", [2, 3, 5, 30])
@pytest.mark.parametrize("seed", range(5))
def test_few_identities_are_not_taken_for_a_cone(n_identities, seed):
    features, labels = make_identities(n_identities, dim=64, seed=seed)
    assert learn_preparation(features, labels=labels).mean is None


def test_a_mean_that_is_mostly_identities_is_left_alone():
    # Two identities of cosine 0.4: beyond the bound, but 0.4 < 2/3 of (1 + 0.4) / 2.
    pair = np.array([[1, 0], [0.4, np.sqrt(1 - 0.16)]], dtype=np.float32)
    labels = np.repeat([0, 1], 10)
    assert measure_cone(pair[labels], labels).pair_cosine == pytest.approx(0.4, abs=1e-6)
    assert learn_preparation(pair[labels], labels=labels).mean is None


@pytest.mark.parametrize(
    ("name", "centred"), [("faces-celeba", True), ("flowers", True), ("omniglot", False)]
)
def test_real_embeddings_are_centred_where_it_helps(shared_data, name, centred):
    with np.load(shared_data / f"{name}-train.npz") as file:
        features, labels = as_embeddings(file["features"]), file["labels"]
    assert (learn_preparation(features, labels=labels).mean is not None) == centred
    assert (learn_preparation(features).mean is not None) == centred


def test_a_zero_row_is_refused_by_number():
    features, _ = make_identities()
    features[[17, 40]] = 0
    for use in (Preparation(None).apply, learn_preparation, check_varied):
        with pytest.raises(EmbeddingError, match=r"row 17 is all zeros \(2 such rows\)"):
            use(features)


def test_a_row_that_equals_the_mean_keeps_its_direction():
    mean = np.array([1, 0, 0], dtype=np.float32)
    rows = np.array([[5, 0, 0], [0, 2, 0]], dtype=np.float32)
    prepared = Preparation(mean).apply(rows)
    np.testing.assert_allclose(prepared[0], [1, 0, 0])
    np.testing.assert_allclose(prepared[1], np.array([-1, 1, 0]) / np.sqrt(2), atol=1e-6)


def test_another_number_of_features_than_the_mean_has_is_refused():
    with pytest.raises(EmbeddingError, match="got 4 features, the model was trained on 3"):
        Preparation(np.ones(3, dtype=np.float32)).apply(np.ones((2, 4), dtype=np.float32))


@pytest.mark.parametrize("mean", [np.ones((2, 2)), np.array([]), np.array([np.nan])])
def test_a_mean_that_is_no_vector_is_refused(mean):
    with pytest.raises(SettingError, match="got a mean of shape"):
        Preparation(mean)


@pytest.mark.parametrize("centre", ["yes", None, 1])
def test_an_unknown_way_of_centring_is_refused(centre):
    with pytest.raises(SettingError, match='expected True, False or "auto"'):
        learn_preparation(make_identities()[0], centre)


def test_rows_of_one_direction_are_refused():
    rows = np.outer([1, 2, 0.5], [1, 2, 3]).astype(np.float32)
    with pytest.raises(EmbeddingError, match=r"all 3 embeddings of 3 feature\(s\) point the same"):
        check_varied(rows)
    check_varied(np.concatenate([rows, -rows[:1]]))
    check_varied(rows[:1])


def test_the_description_says_what_is_done():
    mean = np.array([0.6, 0.8], dtype=np.float32)
    assert Preparation(None).describe() == "L2-normalised"
    assert "mean (length 1.00), normalised again" in Preparation(mean).describe()
    assert "centred on its own mean" in Preparation(mean, per_set=True).describe()
