"""The checkpoint folder of ``hilander train``: the same command resumes from it."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from hilander.io.writing import claim_folder

CHECKPOINT_KIND = "checkpoint"


class CheckpointFolder:
    """The folder MODEL.checkpoint, in which training stores its state after each epoch.

    Parameters
    ----------
    output : Path
        The model folder to write.
    """

    def __init__(self, output: Path) -> None:
        target = output.resolve()
        self.path = target.with_name(target.name + ".checkpoint")
        # Folders that this run creates; they are removed if training ends before its first epoch.
        self._created = [one for one in (self.path, *self.path.parents) if not one.exists()]

    @property
    def has_epochs(self) -> bool:
        """Whether it holds the state after some epoch."""
        # A hidden file was being written when an earlier run was killed.
        return any(not path.name.startswith(".") for path in self.path.glob("*.safetensors"))

    def create(self) -> Path:
        """Create the folder, unless it exists, and give its path."""
        return claim_folder(self.path, CHECKPOINT_KIND)

    def remove(self) -> None:
        """Remove the folder: training is complete."""
        shutil.rmtree(self.path, ignore_errors=True)

    def remove_if_unused(self) -> None:
        """Remove what this run created, if it did not reach the end of an epoch."""
        if self.has_epochs or self.path not in self._created:
            return
        self.remove()
        for folder in self._created:
            with contextlib.suppress(OSError):  # removed already, or no longer empty
                folder.rmdir()
