import importlib.util

import numpy as np
import pytest

from hilander.errors import EmbeddingError, SettingError
from hilander.synthetic.glyph_embedding import (
    CELL_PX,
    EMBEDDING_DIM,
    N_ORIENTATIONS,
    GlyphData,
    describe_gradients,
    fit_glyph_embedder,
    make_glyph_data,
)
from hilander.synthetic.glyphs import GlyphSet

if importlib.util.find_spec("PIL") is None or importlib.util.find_spec("fontTools") is None:
    pytest.skip("needs Pillow and fontTools: the demo extra", allow_module_level=True)


@pytest.fixture(scope="module")
def data() -> GlyphData:
    try:
        return make_glyph_data(max_characters=400)
    except SettingError as error:
        pytest.skip(str(error))


def neighbour_agreement(features, labels, k):
    """Share of the k nearest neighbours that have the node's own label."""
    similarity = features @ features.T
    np.fill_diagonal(similarity, -np.inf)
    nearest = np.argsort(-similarity, axis=1)[:, :k]
    return (labels[nearest] == labels[:, None]).mean()


def test_a_neighbour_of_the_same_character_is_common_but_not_certain(data):
    # A third of the characters means fewer to be mistaken for, so the band reaches higher than
    # that of the full set (about 0.9).
    assert 0.8 < neighbour_agreement(data.test_features, data.test_labels, 1) < 0.98
    assert 0.6 < neighbour_agreement(data.test_features, data.test_labels, 10) < 0.93


def test_the_fitted_projection_beats_plain_gradients(data):
    plain = describe_gradients(data.test_thumbs)
    plain -= plain.mean(axis=0)
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    fitted = neighbour_agreement(data.test_features, data.test_labels, 10)
    assert fitted > neighbour_agreement(plain, data.test_labels, 10) + 0.03


@pytest.mark.usefixtures("data")  # skips without fonts
def test_the_same_seed_gives_the_same_bits():
    first, again = (make_glyph_data(max_characters=80) for _ in range(2))
    for name in GlyphData.__dataclass_fields__:
        assert np.array_equal(getattr(again, name), getattr(first, name)), name


def test_train_and_test_share_no_character(data):
    assert not set(data.train_labels.tolist()) & set(data.test_labels.tolist())


def test_rows_of_one_side_belong_together(data):
    n_train, n_test = len(data.train_labels), len(data.test_labels)
    assert data.train_features.shape == (n_train, EMBEDDING_DIM)
    assert data.test_features.shape == (n_test, EMBEDDING_DIM)
    assert data.test_thumbs.shape == (n_test, 28, 28)
    assert data.train_features.dtype == data.test_features.dtype == np.float32
    for labels, ids in ((data.train_labels, data.train_ids), (data.test_labels, data.test_ids)):
        assert all(
            name.startswith(f"U+{ord(label):04X}-")
            for label, name in zip(labels.tolist(), ids.tolist(), strict=True)
        )
        assert len(set(ids.tolist())) == len(ids)


def test_features_have_length_1(data):
    for features in (data.train_features, data.test_features):
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=1e-5)


def test_rows_are_shuffled(data):
    same_as_next = (data.test_labels[1:] == data.test_labels[:-1]).mean()
    assert same_as_next < 0.2


def test_an_edge_votes_for_its_direction_only():
    image = np.zeros((1, 28, 28), dtype=np.uint8)
    image[:, :, 14:] = 255  # dark to the left, bright to the right: direction 0
    votes = describe_gradients(image).reshape(-1, N_ORIENTATIONS).sum(axis=0)
    assert votes[0] > 0
    assert np.all(votes[1:] == 0)


def test_a_quarter_turn_of_the_picture_turns_the_directions():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (1, 28, 28), dtype=np.uint8)
    upright = describe_gradients(image).reshape(-1, N_ORIENTATIONS).sum(axis=0)
    turned = describe_gradients(np.rot90(image, axes=(1, 2)).copy())
    turned = turned.reshape(-1, N_ORIENTATIONS).sum(axis=0)
    # Counter-clockwise on the page is a negative angle, as rows count downwards.
    np.testing.assert_allclose(np.roll(upright, -N_ORIENTATIONS // 4), turned, rtol=1e-6)


def test_gradients_do_not_depend_on_how_many_pictures_come_at_once():
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (1030, 8, 8), dtype=np.uint8)
    together = describe_gradients(images)
    assert together.shape == (1030, (8 // CELL_PX - 1) ** 2 * 4 * N_ORIENTATIONS)
    np.testing.assert_array_equal(together[1025:], describe_gradients(images[1025:]))


def test_a_blank_picture_has_no_gradients():
    assert not describe_gradients(np.zeros((2, 28, 28), dtype=np.uint8)).any()


def test_no_pictures_give_no_rows():
    assert describe_gradients(np.zeros((0, 28, 28), dtype=np.uint8)).shape == (0, 1152)


@pytest.mark.parametrize("shape", [(28, 28), (3, 28, 27), (3, 30, 30), (3, 4, 4)])
def test_pictures_of_another_shape_are_refused(shape):
    with pytest.raises(EmbeddingError, match="expected"):
        describe_gradients(np.zeros(shape, dtype=np.uint8))


def test_pictures_of_another_size_than_fitted_are_refused():
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (6, 8, 8), dtype=np.uint8)
    embedder = fit_glyph_embedder(
        GlyphSet(images, np.array(list("aaabbb")), np.array(["f"] * 6)), 4
    )
    assert embedder.embed(images).shape == (6, 4)
    with pytest.raises(EmbeddingError, match="draw them in the same size"):
        embedder.embed(np.zeros((1, 12, 12), dtype=np.uint8))


@pytest.mark.parametrize(("labels", "dim"), [("aaaa", 4), ("abcd", 4), ("aabb", 0), ("aabb", 99)])
def test_too_little_to_fit_on_is_refused(labels, dim):
    images = np.random.default_rng(3).integers(0, 256, (4, 8, 8), dtype=np.uint8)
    with pytest.raises(EmbeddingError, match="draw more characters"):
        fit_glyph_embedder(GlyphSet(images, np.array(list(labels)), np.array(["f"] * 4)), dim)
