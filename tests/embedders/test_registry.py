"""Embedders by name, and by entry points."""

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from hilander.embedders import registry
from hilander.embedders.protocol import Embedder, EmbedderSettings, PictureEmbedder
from hilander.embedders.registry import BUILT_IN, GROUP, find_embedders, make_embedder
from hilander.errors import SettingError
from tests.embedders.fake_embedders import LetterCounts, MeanColours

ROOT = Path(__file__).resolve().parents[2]


def offer(monkeypatch, factory, name="mine"):
    """Let another package offer an embedder."""
    point = EntryPoint(name, "package:factory", GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == GROUP else [])
    monkeypatch.setattr(registry, "_load", lambda _: factory)


def test_the_entry_points_of_the_package_are_those_of_the_registry():
    with (ROOT / "pyproject.toml").open("rb") as stream:
        declared = tomllib.load(stream)["project"]["entry-points"][GROUP]
    assert declared == {name: one.factory for name, one in BUILT_IN.items()}


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_factory_can_be_imported_without_the_library_that_it_needs(name):
    assert callable(find_embedders()[name].load())


def test_another_package_can_offer_an_embedder(monkeypatch):
    given = []

    def factory(argument, settings):
        given.extend([argument, settings])
        return MeanColours()

    offer(monkeypatch, factory)
    assert make_embedder("mine:x:y", EmbedderSettings(pixels=7)).name == "colours"
    assert given == ["x:y", EmbedderSettings(pixels=7)]


def test_the_fakes_follow_the_protocol():
    assert isinstance(MeanColours(), PictureEmbedder)
    assert isinstance(LetterCounts(), Embedder)
    assert not isinstance(LetterCounts(), PictureEmbedder)


@pytest.mark.parametrize("missing", ["version", "prepare"])
def test_what_does_not_follow_the_protocol_is_refused(monkeypatch, missing):
    embedder = MeanColours()
    delattr(embedder, missing)
    offer(monkeypatch, lambda *_: embedder)
    with pytest.raises(SettingError, match="gave MeanColours, expected name, kind"):
        make_embedder("mine")


def test_an_unknown_name_gets_a_hint():
    with pytest.raises(SettingError, match="did you mean 'objects'"):
        make_embedder("object")


@pytest.mark.parametrize("text", ["onnx", "onnx:", "timm", "objects:x"])
def test_a_name_without_its_argument_is_refused(text):
    with pytest.raises(SettingError, match="is not complete; give "):
        make_embedder(text)


def test_a_factory_that_cannot_be_imported_is_named(monkeypatch):
    point = EntryPoint("mine", "no_such_package:factory", GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    with pytest.raises(SettingError, match="cannot be loaded from no_such_package:factory"):
        make_embedder("mine")
