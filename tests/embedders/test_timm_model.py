"""The embedder of timm, with a stand-in: timm itself needs a torchvision of the same torch."""

import sys

import numpy as np
import pytest

from hilander.embedders.protocol import EmbedderSettings
from hilander.embedders.registry import make_embedder
from hilander.errors import ModelError, SettingError
from tests.embedders.stand_ins import TinyNetwork, make_timm

CPU = EmbedderSettings(device="cpu")


@pytest.fixture
def timm(monkeypatch):
    library = make_timm()
    monkeypatch.setitem(sys.modules, "timm", library)
    return library


def test_a_model_is_made_without_its_classifier_and_gets_what_it_was_trained_on(timm):
    embedder = make_embedder("timm:tiny_net", CPU)
    assert timm.calls == [("tiny_net", True, 0)]
    assert (embedder.kind, embedder.dim, embedder.name) == ("picture", 6, "timm:tiny_net")
    assert (embedder.prepare.width, embedder.prepare.height) == (16, 12)
    white = np.full((12, 16, 3), 255, np.uint8)
    expected = TinyNetwork().mixing.sum(dim=0).numpy()  # white is (1, 1, 1)
    assert np.allclose(embedder.embed([white])[0], expected, atol=1e-6)


def test_the_size_and_the_normalisation_can_be_given(timm):
    given = EmbedderSettings(device="cpu", pixels=20, mean=(0, 0, 0), std=(1, 1, 1))
    embedder = make_embedder("timm:tiny_net", given)
    assert embedder.prepare.width == 20
    assert embedder.version != make_embedder("timm:tiny_net", CPU).version
    assert np.allclose(embedder.embed([np.zeros((20, 20, 3), np.uint8)]), 0)


def test_an_unknown_model_gets_a_hint(timm):
    with pytest.raises(SettingError, match="no model 'tiny_nat'"):
        make_embedder("timm:tiny_nat", CPU)


def test_nothing_is_fetched_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", make_timm(has_weights=False))
    with pytest.raises(SettingError, match="not on this machine; --download fetches them"):
        make_embedder("timm:tiny_net", CPU)
    with pytest.raises(ModelError, match="timm cannot load 'tiny_net'"):
        make_embedder("timm:tiny_net", EmbedderSettings(device="cpu", download=True))


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(SettingError, match="install timm and the torchvision that belongs"):
        make_embedder("timm:tiny_net", CPU)
