import json

import numpy as np
import pytest
import torch

from hilander.errors import FileFormatError, HiLanderError, ModelError
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.paper.training import make_network
from hilander.linkage.storage import (
    DESCRIPTION_FILE,
    WEIGHTS_FILE,
    StoredNetwork,
    read_network,
    write_network,
)


@pytest.fixture
def folder(tmp_path):
    network = make_network(NetworkSettings(6, "concat", "attention", 12, 2, 2), 0)
    mean = np.random.default_rng(0).normal(size=6).astype(np.float32)
    write_network(StoredNetwork(network, {"mean": mean}, {"note": "hello"}), tmp_path)
    return tmp_path


@pytest.mark.parametrize("encoder", ["attention", "convolution"])
def test_save_then_load_is_bit_equal(tmp_path, encoder):
    network = make_network(NetworkSettings(6, "average", encoder, 12, 3, 2, 0.25), 7)
    mean = np.random.default_rng(0).normal(size=6).astype(np.float32)
    write_network(StoredNetwork(network, {"mean": mean}, {"note": [1, 2]}), tmp_path)
    again = read_network(tmp_path)
    assert again.network.settings == network.settings
    assert not again.network.training
    before, after = network.state_dict(), again.network.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert again.arrays["mean"].tobytes() == mean.tobytes()
    assert again.description["note"] == [1, 2]


def test_weights_cut_short_at_any_point_are_refused(folder):
    path = folder / WEIGHTS_FILE
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError, match="is damaged"):
            read_network(folder)


def test_missing_weights_are_named(folder):
    (folder / WEIGHTS_FILE).unlink()
    with pytest.raises(ModelError, match=f"{WEIGHTS_FILE} does not exist"):
        read_network(folder)


def test_a_missing_or_damaged_description_is_named(folder):
    path = folder / DESCRIPTION_FILE
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(FileFormatError, match="is damaged"):
        read_network(folder)
    path.write_text("[]")
    with pytest.raises(ModelError, match="does not describe a network"):
        read_network(folder)
    path.unlink()
    with pytest.raises(FileFormatError, match="does not exist"):
        read_network(folder)


@pytest.mark.parametrize(
    "change", [{"hidden": 16}, {"layers": 1}, {"encoder": "convolution"}, {"heads": 1}, {"dim": 7}]
)
def test_weights_of_other_settings_are_refused(folder, change):
    path = folder / DESCRIPTION_FILE
    description = json.loads(path.read_text())
    description["network"].update(change)
    path.write_text(json.dumps(description))
    with pytest.raises(ModelError, match="does not fit the settings beside it"):
        read_network(folder)


@pytest.mark.parametrize("change", [{"hidden": "wide"}, {"encoder": 3}, {"new": 1}])
def test_settings_that_mean_nothing_are_refused(folder, change):
    path = folder / DESCRIPTION_FILE
    description = json.loads(path.read_text())
    description["network"].update(change)
    path.write_text(json.dumps(description))
    with pytest.raises(HiLanderError):
        read_network(folder)
