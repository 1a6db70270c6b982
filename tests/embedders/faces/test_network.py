"""dlib's face network in torch equals dlib."""

from pathlib import Path

import numpy as np
import pytest

from hilander.embedders.faces.dlib_weights import read_dlib_weights
from hilander.embedders.protocol import EmbedderSettings
from hilander.errors import ModelError

WEIGHTS = "dlib_face_recognition_resnet_model_v1.dat"


@pytest.fixture(scope="module")
def models():
    pytest.importorskip("dlib", reason="the extra hilander[faces] is not installed")
    from hilander.embedders.faces.embedder import find_models
    from hilander.errors import SettingError

    try:
        return find_models()
    except SettingError as error:
        pytest.skip(str(error))


def test_the_embeddings_are_those_of_dlib_to_a_hundred_thousandth(models):
    import dlib

    from hilander.embedders.faces.embedder import make_embedder

    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (150, 150, 3), dtype=np.uint8)
    smooth = np.add.outer(np.arange(150), np.arange(150))[..., None] * [0.5, 0.7, 0.2]
    faces = [noise, smooth.astype(np.uint8), np.full((150, 150, 3), 128, np.uint8)]
    theirs = dlib.face_recognition_model_v1(str(models / WEIGHTS))
    expected = np.array([theirs.compute_face_descriptor(face) for face in faces])
    ours = make_embedder(None, EmbedderSettings(device="cpu")).embed(faces)
    assert np.abs(ours - expected).max() < 1e-5
    assert np.abs(expected[0] - expected[1]).max() > 0.05  # they do not describe all alike


def test_a_face_in_a_batch_has_the_embedding_that_it_has_alone(models):
    from hilander.embedders.faces.embedder import make_embedder

    rng = np.random.default_rng(1)
    faces = list(rng.integers(0, 256, (3, 150, 150, 3), dtype=np.uint8))
    embedder = make_embedder(None, EmbedderSettings(device="cpu"))
    assert np.allclose(embedder.embed(faces)[1], embedder.embed(faces[1:2])[0], atol=1e-5)


@pytest.mark.parametrize(
    "content", [b"", b"text", b"\x01\x05con_4\x01\x02\x01\x10", b"\x01\x04fc_2"]
)
def test_a_file_that_is_not_the_network_is_refused(tmp_path, content):
    path = tmp_path / "weights.dat"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="is not dlib's face network"):
        read_dlib_weights(path)


def test_a_file_that_was_cut_off_is_refused(models, tmp_path):
    path = Path(tmp_path / "weights.dat")
    path.write_bytes((models / WEIGHTS).read_bytes()[:-5000])
    with pytest.raises(ModelError, match="is not dlib's face network"):
        read_dlib_weights(path)
