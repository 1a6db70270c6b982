"""Checkpoints: one file, written atomically, from which an interrupted run continues."""

from __future__ import annotations

import hashlib
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
        A safetensors file: weights, the optimizer's state, and the history in its header.
    fingerprint : str
        Digest of data and settings. A checkpoint with another fingerprint is ignored.
    """

    path: Path
    fingerprint: str

    def keep(
        self, network: nn.Module, optimizer: torch.optim.Optimizer, history: list[EpochRecord]
    ) -> None:
        """Replace the file by the present state, completely or not at all."""
        from safetensors.torch import save

        tensors = {f"network/{key}": value for key, value in network.state_dict().items()}
        tensors |= _optimizer_tensors(optimizer)
        tensors = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
        header = {"fingerprint": self.fingerprint, "history": json.dumps(history)}
        header["digest"] = _digest(header, tensors)
        with write_atomically(self.path) as temporary:
            # Written by Python: safetensors' writer does not report a full disk as an OSError.
            temporary.write_bytes(save(tensors, metadata=header))

    def restore(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> list[EpochRecord]:
        """Load the state of this run and give its history; [] if there is none."""
        if not self.path.is_file():
            return []
        header, tensors = _read(self.path)
        if header.get("fingerprint") != self.fingerprint:
            return []
        if header.get("digest") != _digest(header, tensors):
            raise FileFormatError(
                f"{self.path} is damaged: its digest is not the one it was written with; delete it "
                "to start again"
            )
        prefix = "network/"
        weights = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        network.load_state_dict(weights)
        _load_optimizer(optimizer, tensors)
        history: list[EpochRecord] = json.loads(header["history"])
        return history


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    from safetensors.torch import load

    try:
        content = path.read_bytes()  # safetensors' reader of files takes names in UTF-8 only
        tensors = load(content)
        end = 8 + int.from_bytes(content[:8], "little")
        header: dict[str, str] = json.loads(content[8:end]).get("__metadata__", {})
        return header, tensors
    except Exception as error:
        message = f"{path} is not a checkpoint ({error}); delete it to start again"
        raise FileFormatError(message) from error


def _digest(header: dict[str, str], tensors: dict[str, Tensor]) -> str:
    """Digest of the names, types, shapes and values of a checkpoint, and of its header."""
    digest = hashlib.blake2b(digest_size=16)
    for name in ("fingerprint", "history"):
        digest.update(f"{name}={header.get(name)};".encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name}:{value.dtype}:{tuple(value.shape)};".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state as flat tensors: optimizer/<parameter>/<name>."""
    return {
        f"optimizer/{number}/{name}": torch.as_tensor(value)
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
        if value is not None
    }


def _load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        prefix, _, rest = key.partition("/")
        if prefix == "optimizer":
            number, name = rest.split("/")
            state.setdefault(int(number), {})[name] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
