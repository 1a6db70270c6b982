import json

import numpy as np
import pytest
import torch

from hilander.errors import FileFormatError, HiLanderError, ModelError
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.registry import FORMER_SCHEMA, schema_hash
from hilander.linkage.evidence.training import make_evidence_network
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.paper.training import make_network
from hilander.linkage.storage import (
    DESCRIPTION_FILE,
    WEIGHTS_FILE,
    StoredNetwork,
    as_evidence_network,
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
    with pytest.raises(ModelError, match="does not fit the settings in the same folder"):
        read_network(folder)


@pytest.mark.parametrize("change", [{"hidden": "wide"}, {"encoder": 3}, {"new": 1}])
def test_invalid_settings_are_refused(folder, change):
    path = folder / DESCRIPTION_FILE
    description = json.loads(path.read_text())
    description["network"].update(change)
    path.write_text(json.dumps(description))
    with pytest.raises(HiLanderError):
        read_network(folder)


# The schema of edge features.


@pytest.fixture
def evidence_folder(tmp_path):
    network = make_evidence_network(EvidenceSettings(4, 2), 0)
    write_network(StoredNetwork(network, {}, {}), tmp_path)
    return tmp_path


def change_network(folder, **values):
    path = folder / DESCRIPTION_FILE
    description = json.loads(path.read_text())
    for name, value in values.items():
        if value is None:
            del description["network"][name]
        else:
            description["network"][name] = value
    path.write_text(json.dumps(description))


def test_the_schema_of_edge_features_is_written_with_the_weights(evidence_folder):
    description = json.loads((evidence_folder / DESCRIPTION_FILE).read_text())
    assert description["network"]["edge_features"] == schema_hash()
    assert read_network(evidence_folder).network.settings == EvidenceSettings(4, 2)


def test_networks_without_edge_features_have_no_schema(folder):
    description = json.loads((folder / DESCRIPTION_FILE).read_text())
    assert "edge_features" not in description["network"]


def test_weights_of_another_schema_are_refused_with_what_to_do(evidence_folder):
    change_network(evidence_folder, edge_features="0123456789abcdef")
    message = rf"other edge features \(schema 0123456789abcdef, .*{schema_hash()}\); train again"
    with pytest.raises(ModelError, match=message):
        read_network(evidence_folder)


def test_models_of_version_0_1_have_no_schema_and_are_read(evidence_folder):
    change_network(evidence_folder, edge_features=None)
    assert read_network(evidence_folder).network.settings == EvidenceSettings(4, 2)


def test_weights_of_super_nodes_of_earlier_versions_are_ignored(evidence_folder):
    from safetensors.numpy import load_file, save_file

    path = evidence_folder / WEIGHTS_FILE
    held = load_file(path)
    former = {name.replace("points.", "clusters."): weight for name, weight in held.items()}
    assert former.keys() - held.keys()
    save_file(held | former, path)
    change_network(evidence_folder, edge_features=FORMER_SCHEMA, relative_sizes=True)
    read = read_network(evidence_folder).network
    assert read.settings == EvidenceSettings(4, 2)
    for name, weight in read.state_dict().items():
        np.testing.assert_array_equal(weight.numpy(), held[f"network/{name}"])


@pytest.mark.parametrize(("schema", "former"), [(None, True), (FORMER_SCHEMA, True), (0, False)])
def test_networks_of_earlier_versions_are_known_by_their_schema(evidence_folder, schema, former):
    if schema != 0:
        change_network(evidence_folder, edge_features=schema)
    assert read_network(evidence_folder).merged_by_classifiers == former


def test_networks_of_the_paper_were_never_merged_by_classifiers(folder):
    assert not read_network(folder).merged_by_classifiers


def test_only_networks_of_the_default_method_are_evidence_networks(evidence_folder):
    network = read_network(evidence_folder).network
    assert as_evidence_network(network) is network
    assert as_evidence_network(make_network(NetworkSettings(6, hidden=12), 0)) is None
