"""The stages of one training run: their checkpoints, progress bars and threads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.engines.threads import open_workers
from hilander.learning.checkpoint import Checkpoint
from hilander.learning.device import choose_device, one_thread
from hilander.learning.loop import Run

Item = TypeVar("Item")


@dataclass(frozen=True)
class Stages:
    """What the stages of one training run share.

    Parameters
    ----------
    folder : Path, optional
        Where checkpoints are kept; None for none.
    fingerprint : str
        Of data and settings. A checkpoint of another fingerprint is not used.
    verbose : bool
        Draw progress bars (only on a terminal).
    halt : Event
        When it is set, stages that run in other threads end at their next step.
    """

    folder: Path | None
    fingerprint: str
    verbose: bool
    halt: Event = field(default_factory=Event)

    def watch(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items one by one; raise InterruptedError once `halt` is set."""
        for item in items:
            if self.halt.is_set():
                raise InterruptedError("training was halted")
            yield item

    def run(self, name: str) -> Run:
        """Checkpoint, progress bar and halt of a stage."""
        return Run(self.checkpoint(name), name if self.verbose else None, self.watch)

    def checkpoint(self, name: str) -> Checkpoint | None:
        """The checkpoint of a stage, or None if none are kept."""
        if self.folder is None:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        mark = f"{self.fingerprint}/{name}"
        return Checkpoint(self.folder / f"{name}.safetensors", mark)


def open_stages(
    features: FloatArray, labels: IntArray, plan: Any, folder: Path | None, *, verbose: bool
) -> Stages:
    """The stages of a training run; data and plan are hashed only if checkpoints are kept."""
    mark = fingerprint(features, labels, plan) if folder else ""
    return Stages(folder, mark, verbose)


def fingerprint(features: FloatArray, labels: IntArray, plan: Any) -> str:
    """A digest of the data and all settings, so that a run uses only its own checkpoints."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps(asdict(plan), sort_keys=True).encode())
    digest.update(np.ascontiguousarray(features).view(np.uint8).data)
    digest.update(np.ascontiguousarray(labels).view(np.uint8).data)
    for name in ("start", "prior"):
        folder = Path(getattr(plan, name, None) or "")
        for path in sorted(folder.glob("*.safetensors")) if folder.name else ():
            digest.update(path.read_bytes())  # the folder may hold another model by now
    return digest.hexdigest()


def run_in_parallel(*tasks: Callable[[], Any], stages: Stages, device: str) -> list[Any]:
    """Results of independent tasks, each in its own thread, in the order of the tasks.

    One training step is too small to use two threads. On a GPU the tasks run one after another.
    If a task fails, `stages.halt` ends the others.
    """
    alone = choose_device(device).type != "cpu"
    with open_workers(alone=alone) as workers, one_thread():
        try:
            return workers.map(lambda task: task(), tasks)
        except BaseException:
            stages.halt.set()
            raise
