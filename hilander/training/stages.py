"""The stages of one training run: their checkpoints, progress bars and end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.learning.checkpoint import Checkpoint

Item = TypeVar("Item")


@dataclass(frozen=True)
class Stages:
    """Where the stages of one run keep their checkpoints, and whether they draw bars.

    Stages that run side by side end soon after `halt` is set.
    """

    folder: Path | None
    fingerprint: str
    verbose: bool
    halt: Event = field(default_factory=Event)

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        """Give the items one by one until `halt` is set; InterruptedError says so then."""
        for item in items:
            if self.halt.is_set():
                raise InterruptedError("training was halted")
            yield item

    def checkpoint(self, name: str) -> Checkpoint | None:
        """The checkpoint of a stage, or None if none are kept."""
        if self.folder is None:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        mark = f"{self.fingerprint}/{name}"
        return Checkpoint(self.folder / f"{name}.safetensors", mark)


def fingerprint(features: FloatArray, labels: IntArray, plan: Any) -> str:
    """A digest of the data and every setting, so that a checkpoint is taken up only by its run."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps(asdict(plan), sort_keys=True).encode())
    digest.update(np.ascontiguousarray(features).view(np.uint8).data)
    digest.update(np.ascontiguousarray(labels).view(np.uint8).data)
    for name in ("start", "prior"):
        folder = Path(getattr(plan, name, None) or "")
        for path in sorted(folder.glob("*.safetensors")) if folder.name else ():
            digest.update(path.read_bytes())  # another model may stand there by now
    return digest.hexdigest()
