"""Networks on disk: safetensors for the numbers, JSON for the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray
from hilander.errors import ModelError
from hilander.io.digests import FileList
from hilander.io.stored_json import read_json
from hilander.io.writing import list_stored_files, write_json
from hilander.linkage.evidence.network import (
    EvidenceNetwork,
    EvidenceSettings,
    rename_old_weight,
)
from hilander.linkage.evidence.registry import FORMER_SCHEMA, schema_hash
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.settings import NetworkSettings

WEIGHTS_FILE = "weights.safetensors"
DESCRIPTION_FILE = "model.json"
MODEL_KIND = "model"
PRETRAINED = Path(__file__).parent / "pretrained"  # the model that comes with the package
Network = Lander | EvidenceNetwork
_NETWORK = "network/"
_ARRAY = "array/"
# Whole numbers in settings that are no width, such as a number of points.
_MOST_POINTS = 1_000_000
_SCHEMA = "edge_features"  # key of the schema hash among the settings of a network


@dataclass(frozen=True)
class NetworkKind:
    """One kind of network that a model may have.

    Parameters
    ----------
    network : type
        Built from its settings.
    settings : type
        Has `to_dict` and `from_dict`.
    schema : callable () -> str, optional
        Hash of the inputs that the weights depend on.
    rename_weight : callable str -> str or None
        Present name of a weight of an earlier version.
    """

    network: type[Network]
    settings: type[NetworkSettings] | type[EvidenceSettings]
    schema: Callable[[], str] | None = None
    rename_weight: Callable[[str], str | None] = str


NETWORKS: dict[str, NetworkKind] = {
    "lander": NetworkKind(Lander, NetworkSettings),
    "evidence": NetworkKind(EvidenceNetwork, EvidenceSettings, schema_hash, rename_old_weight),
}


@dataclass(frozen=True, eq=False)
class StoredNetwork:
    """A network and what is stored with it.

    Parameters
    ----------
    network : Lander or EvidenceNetwork
    arrays : dict of str to ndarray
        Numbers besides the weights, such as the mean that centring subtracts.
    description : dict
        Plain values for JSON. `describe_network` of the network is added as "network".
    """

    network: Network
    arrays: dict[str, FloatArray]
    description: dict[str, Any]

    @property
    def merged_by_classifiers(self) -> bool:
        """Whether it was written by a version whose super-nodes were merged by classifiers."""
        settings = self.description.get("network", {})
        return bool(settings.get("kind") == "evidence" and settings.get(_SCHEMA) != schema_hash())


def write_network(stored: StoredNetwork, folder: Path) -> None:
    """Write a model's files into an open folder."""
    from safetensors.numpy import save

    weights = stored.network.state_dict()
    tensors = {_NETWORK + key: value.detach().cpu().numpy() for key, value in weights.items()}
    tensors |= {_ARRAY + key: np.ascontiguousarray(value) for key, value in stored.arrays.items()}
    # Written by Python: safetensors' writer does not report a full disk as an OSError.
    (folder / WEIGHTS_FILE).write_bytes(save(tensors))
    description = stored.description | {"network": describe_network(stored.network)}
    write_json(folder / DESCRIPTION_FILE, description)


def describe_network(network: Network) -> dict[str, Any]:
    """Kind, settings and schema hash of a network, as plain values for JSON."""
    name = next(name for name, kind in NETWORKS.items() if isinstance(network, kind.network))
    schema = NETWORKS[name].schema
    settings = {"kind": name, **network.settings.to_dict()}
    return settings | ({_SCHEMA: schema()} if schema is not None else {})


def read_network(folder: Path | FileList) -> StoredNetwork:
    """Read what `write_network` wrote.

    Parameters
    ----------
    folder : Path or FileList
        The folder, or its files as they were listed when it was opened.

    Raises
    ------
    ModelError
        A file is missing or damaged, weights and settings do not fit each other, or the weights
        were trained on other edge features.
    """
    import torch
    from safetensors.numpy import load

    files = folder if isinstance(folder, FileList) else list_stored_files(folder)
    description = read_json(files.check(DESCRIPTION_FILE))
    if not isinstance(description, dict) or not isinstance(description.get("network"), dict):
        raise ModelError(
            f"{files.folder / DESCRIPTION_FILE} does not describe a network; train again"
        )
    settings = description["network"]
    if settings.get("kind") not in [*NETWORKS]:
        build_network(settings)  # raises
    kind = NETWORKS[settings["kind"]]
    _check_schema(files.folder / DESCRIPTION_FILE, settings, kind)
    path = files.check(WEIGHTS_FILE)
    try:
        tensors = load(path.read_bytes())  # its reader of files takes names in UTF-8 only
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist; the model folder is incomplete") from None
    except Exception as error:
        raise ModelError(f"{path} is damaged ({error}); restore it or train again") from error
    present = {
        kind.rename_weight(key.removeprefix(_NETWORK)): torch.from_numpy(value)
        for key, value in tensors.items()
        if key.startswith(_NETWORK)
    }
    weights = {name: value for name, value in present.items() if name is not None}
    _check_size(settings, weights, path)
    network = build_network(settings)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise ModelError(
            f"{path} does not fit the settings in the same folder, or is of another version: "
            f"{reason}; restore it or train again"
        ) from error
    arrays = {k.removeprefix(_ARRAY): v for k, v in tensors.items() if k.startswith(_ARRAY)}
    return StoredNetwork(network.eval(), arrays, description)


def build_network(settings: dict[str, Any]) -> Network:
    """A network with the settings that `describe_network` gave; its weights are random."""
    values = {name: value for name, value in settings.items() if name not in ("kind", _SCHEMA)}
    name = settings.get("kind")
    if name not in [*NETWORKS]:  # a list, since any JSON value may be here
        known = " and ".join(NETWORKS)
        raise ModelError(f"the model is of kind {name!r}, this version knows {known}")
    kind: Any = NETWORKS[name]
    built: Network = kind.network(kind.settings.from_dict(values))
    return built


def as_evidence_network(network: Network) -> EvidenceNetwork | None:
    """The network itself if it is of the default method, else None."""
    return network if isinstance(network, EvidenceNetwork) else None


def _check_size(settings: dict[str, Any], weights: dict[str, Any], path: Path) -> None:
    """Refuse settings of a network that is larger than the stored weights.

    A network without memory for its weights is built, so that a hostile file cannot ask for more
    memory than it has bytes itself.
    """
    import torch

    n_weights = sum(weight.numel() for weight in weights.values())
    whole = [value for value in settings.values() if isinstance(value, int)]
    if max(whole, default=0) > max(n_weights, _MOST_POINTS):
        raise ModelError(f"{path} has {n_weights:,} weights, too few for its settings; train again")
    with torch.device("meta"):
        sketch = build_network(settings)
    needed = sum(weight.numel() for weight in sketch.state_dict().values())
    if needed > n_weights:
        raise ModelError(
            f"{path} does not fit the settings in the same folder: it has {n_weights:,} weights, "
            f"the settings need {needed:,}; restore it or train again"
        )


def _check_schema(path: Path, settings: dict[str, Any], kind: NetworkKind) -> None:
    """Refuse weights that were trained on other edge features.

    Models of version 0.1 have no hash. Their edge features are those of the first schema.
    """
    expected = kind.schema() if kind.schema is not None else None
    found = settings.get(_SCHEMA, expected)
    if found not in (expected, FORMER_SCHEMA):
        raise ModelError(
            f"{path}: the weights were trained on other edge features (schema {found}, this "
            f"version has {expected}); train again, or use the version of hilander that wrote it"
        )
