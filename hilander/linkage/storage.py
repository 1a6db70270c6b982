"""Networks on disk: safetensors for the numbers, JSON for everything else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray
from hilander.errors import ModelError
from hilander.io.writing import read_json, write_json
from hilander.linkage.evidence.network import (
    EvidenceNetwork,
    EvidenceSettings,
    rename_old_weight,
)
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.settings import NetworkSettings

WEIGHTS_FILE = "weights.safetensors"
PRETRAINED = Path(__file__).parent / "pretrained"  # the model that comes with the package
DESCRIPTION_FILE = "model.json"
MODEL_KIND = "model"
Network = Lander | EvidenceNetwork
# Kind in a model's description -> network, and its settings.
NETWORKS: dict[Any, tuple[Any, Any]] = {
    "lander": (Lander, NetworkSettings),
    "evidence": (EvidenceNetwork, EvidenceSettings),
}
_NETWORK = "network/"
_ARRAY = "array/"


@dataclass(frozen=True, eq=False)
class StoredNetwork:
    """A network with what belongs to it.

    Parameters
    ----------
    network : Lander or EvidenceNetwork
    arrays : dict of str to ndarray
        Numbers beside the weights, such as the mean that centring takes away.
    description : dict
        Plain values for JSON. The network's settings are added under "network".
    """

    network: Network
    arrays: dict[str, FloatArray]
    description: dict[str, Any]


def write_network(stored: StoredNetwork, folder: Path) -> None:
    """Write a model's files into an open folder."""
    from safetensors.numpy import save

    weights = stored.network.state_dict()
    tensors = {_NETWORK + key: value.detach().cpu().numpy() for key, value in weights.items()}
    tensors |= {_ARRAY + key: np.ascontiguousarray(value) for key, value in stored.arrays.items()}
    # Written by Python: safetensors' own writer hides a full disk behind an error of its own.
    (folder / WEIGHTS_FILE).write_bytes(save(tensors))
    kinds = {network: kind for kind, (network, _) in NETWORKS.items()}
    settings = {"kind": kinds[type(stored.network)], **stored.network.settings.to_dict()}
    description = stored.description | {"network": settings}
    write_json(folder / DESCRIPTION_FILE, description)


def read_network(folder: Path) -> StoredNetwork:
    """Read what `write_network` wrote.

    Raises
    ------
    ModelError
        When a file is missing, damaged, or weights and settings do not fit each other.
    """
    import torch
    from safetensors.numpy import load_file

    description = read_json(folder / DESCRIPTION_FILE)
    if not isinstance(description, dict) or not isinstance(description.get("network"), dict):
        raise ModelError(f"{folder / DESCRIPTION_FILE} does not describe a network; train again")
    network = build_network(description["network"])
    path = folder / WEIGHTS_FILE
    try:
        tensors = load_file(path)
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist; the model folder is incomplete") from None
    except Exception as error:
        raise ModelError(f"{path} is damaged ({error}); restore it or train again") from error
    weights = {
        rename_old_weight(key.removeprefix(_NETWORK)): torch.from_numpy(value)
        for key, value in tensors.items()
        if key.startswith(_NETWORK)
    }
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise ModelError(
            f"{path} does not fit the settings beside it, or is of another version: {reason}; "
            "restore it or train again"
        ) from error
    arrays = {k.removeprefix(_ARRAY): v for k, v in tensors.items() if k.startswith(_ARRAY)}
    return StoredNetwork(network.eval(), arrays, description)


def build_network(settings: dict[str, Any]) -> Network:
    """A network with the settings that `write_network` described."""
    values = {name: value for name, value in settings.items() if name != "kind"}
    kind = settings.get("kind")
    if kind not in NETWORKS:
        known = " and ".join(NETWORKS)
        raise ModelError(f"the model is of kind {kind!r}, this version knows {known}")
    network, shape = NETWORKS[kind]
    built: Network = network(shape.from_dict(values))
    return built


def as_evidence_network(network: Network) -> EvidenceNetwork | None:
    """The network itself if it is of the default method, else None."""
    return network if isinstance(network, EvidenceNetwork) else None
