"""The embedder of OpenCLIP, with a stand-in: the library needs a torchvision of the same torch."""

import sys

import numpy as np
import pytest

from hilander.embedders.openclip import _MEAN, _STD
from hilander.embedders.protocol import EmbedderSettings
from hilander.embedders.registry import make_embedder
from hilander.errors import SettingError
from tests.embedders.stand_ins import TinyNetwork, make_openclip

CPU = EmbedderSettings(device="cpu")


@pytest.fixture
def _library(monkeypatch):
    monkeypatch.setitem(sys.modules, "open_clip", make_openclip())


@pytest.mark.usefixtures("_library")
def test_the_picture_side_is_used_with_the_normalisation_of_clip():
    embedder = make_embedder("openclip:Tiny-B-32/small", CPU)
    assert (embedder.dim, embedder.name) == (6, "openclip:Tiny-B-32/small")
    assert embedder.prepare.width == 16
    black = np.zeros((16, 16, 3), np.uint8)
    expected = (-np.array(_MEAN) / _STD) @ TinyNetwork(len("small")).mixing.numpy()
    assert np.allclose(embedder.embed([black])[0], expected, atol=1e-5)


@pytest.mark.usefixtures("_library")
def test_other_weights_are_another_version():
    versions = [
        make_embedder(f"openclip:Tiny-B-32/{tag}", CPU).version for tag in ("small", "large2b")
    ]
    assert versions[0] != versions[1]


@pytest.mark.usefixtures("_library")
def test_the_weights_must_be_named_and_are_listed():
    with pytest.raises(SettingError, match="WEIGHTS with a file or one of small, large2b"):
        make_embedder("openclip:Tiny-B-32", CPU)
    with pytest.raises(SettingError, match="no model 'Tiny'; did you mean Tiny-B-32"):
        make_embedder("openclip:Tiny/small", CPU)


def test_nothing_is_fetched_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "open_clip", make_openclip(has_weights=False))
    with pytest.raises(SettingError, match="--download fetches them"):
        make_embedder("openclip:Tiny-B-32/small", CPU)
