"""Checkpoints: one file that is always whole, from which a killed run goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hilander.errors import FileFormatError
from hilander.io.writing import write_atomically

EpochRecord = dict[str, Any]


@dataclass(frozen=True)
class Checkpoint:
    """The state of one training run at the end of an epoch.

    Parameters
    ----------
    path : Path
        A safetensors file: weights, the optimizer's memory, and the history in its header.
    fingerprint : str
        Of data and settings. A checkpoint of another run is not taken up.
    """

    path: Path
    fingerprint: str

    def keep(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, history: list[EpochRecord]
    ) -> None:
        """Write the state in place of the last one, whole or not at all."""
        from safetensors.torch import save

        tensors = {f"network/{key}": value for key, value in network.state_dict().items()}
        tensors |= _optimizer_tensors(optimizer)
        tensors = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
        header = {"fingerprint": self.fingerprint, "history": json.dumps(history)}
        with write_atomically(self.path) as temporary:
            # By Python: safetensors' own writer hides a full disk behind an error of its own.
            temporary.write_bytes(save(tensors, metadata=header))

    def restore(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> list[EpochRecord]:
        """Load the state if there is one of this run, and give its history (else [])."""
        if not self.path.is_file():
            return []
        header, tensors = _read(self.path)
        if header.get("fingerprint") != self.fingerprint:
            return []
        prefix = "network/"
        weights = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        network.load_state_dict(weights)
        _load_optimizer(optimizer, tensors)
        history: list[EpochRecord] = json.loads(header["history"])
        return history


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as stored:
            header = stored.metadata() or {}
            return header, {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
    except Exception as error:
        message = f"{path} is not a checkpoint ({error}); delete it to start anew"
        raise FileFormatError(message) from error


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's memory, flat: optimizer/<parameter>/<name>."""
    return {
        f"optimizer/{number}/{name}": torch.as_tensor(value)
        for number, memory in optimizer.state_dict()["state"].items()
        for name, value in memory.items()
        if value is not None
    }


def _load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state = optimizer.state_dict()
    memory: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        room, _, rest = key.partition("/")
        if room == "optimizer":
            number, name = rest.split("/")
            memory.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({**state, "state": memory})
