"""Faces are found, boxed and aligned."""

import numpy as np
import pytest

from hilander.embedders.faces.embedder import make_embedder
from hilander.embedders.protocol import EmbedderSettings
from hilander.errors import SettingError
from hilander.io.item_columns import BOX_COLUMNS
from tests.embedders.faces.photographs import FACE, astronaut

pytest.importorskip("dlib", reason="the extra hilander[faces] is not installed")
pytest.importorskip("skimage", reason="scikit-image, which ships the photograph, is not installed")


@pytest.fixture(scope="module")
def embedder():
    try:
        return make_embedder(None, EmbedderSettings(device="cpu"))
    except SettingError as error:
        pytest.skip(str(error))


def box_of(piece):
    return np.array([piece.facts[name] for name in BOX_COLUMNS])


def test_the_face_is_found_and_boxed(embedder):
    [piece] = embedder.prepare(astronaut())
    assert np.abs(box_of(piece) - FACE).max() < 12
    assert piece.facts["score"] > 1
    assert piece.pixels.shape == (150, 150, 3)


@pytest.mark.parametrize("side", [300, 1024, 2500])
def test_the_box_follows_the_size_of_the_picture(embedder, side):
    [piece] = embedder.prepare(astronaut().resize((side, side)))
    assert np.abs(box_of(piece) * 512 / side - FACE).max() < 20


def test_a_turned_face_is_aligned_to_nearly_the_same_embedding(embedder):
    pieces = [embedder.prepare(astronaut().rotate(angle))[0].pixels for angle in (0, 8)]
    features = embedder.embed(pieces)
    assert np.linalg.norm(features[0] - features[1]) < 0.25  # dlib: one person below 0.6


def test_a_higher_score_finds_fewer_faces(embedder):
    strict = make_embedder(None, EmbedderSettings(device="cpu", face_score=5.0))
    assert strict.prepare(astronaut()) == []
    assert strict.version != embedder.version
