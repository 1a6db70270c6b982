"""The kept work of a long ``hilander cluster``: the same command goes on from it after a kill."""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander import __version__
from hilander.arrays.rows import drop_pages, row_blocks
from hilander.hierarchy import budget
from hilander.hierarchy.work import KeptWork, Work
from hilander.io.files import EmbeddingFile
from hilander.io.writing import sweep_temporaries
from hilander.linkage.storage import PRETRAINED

if TYPE_CHECKING:
    from hilander.hierarchy.rules import Rules


def work_folder(output: Path) -> Path:
    """Where the work of a run is kept until the run is written."""
    target = output.resolve()
    return target.with_name(target.name + ".work")


def start_work(
    args: argparse.Namespace, file: EmbeddingFile, rules: Rules, plan: budget.MemoryPlan
) -> Work:
    """Open the work folder of a long run and say what is in it; a short run keeps nothing.

    Parameters
    ----------
    args : Namespace of ``hilander cluster``
    file : EmbeddingFile
    rules : Rules of this run
    plan : MemoryPlan
        One that stores features in a file needs the folder whatever the number of points.
    """
    if len(file.features) < budget.LONG_RUN and plan.store != "mapped":
        return Work()
    folder = work_folder(args.output)
    work = KeptWork(folder, take_fingerprint(args, file, rules, plan))
    if work.is_continued:
        sweep_temporaries(args.output)  # of a kill while the run was being written
    if not args.quiet:
        if work.is_continued:
            print(f"going on from {folder}", flush=True)
        elif work.replaced:
            print(
                f"{folder} was the work of another input, model or setting: it is dropped, and "
                "this run starts anew",
                flush=True,
            )
    return work


def leave_work(work: Work | None, *, stopped: bool) -> None:
    """End a run that failed or was stopped: keep what is done, drop a folder without any.

    Parameters
    ----------
    work : Work, optional
    stopped : bool
        By Ctrl-C: then the user is told that the work is kept.
    """
    if not isinstance(work, KeptWork):
        return
    if not work.has_levels:
        work.remove()
    elif stopped:
        message = f"{work.folder} is kept, and the same command goes on from it"
        print(f"hilander: {message}", file=sys.stderr)


def take_fingerprint(
    args: argparse.Namespace, file: EmbeddingFile, rules: Rules, plan: budget.MemoryPlan
) -> dict[str, Any]:
    """What has to be the same for kept work to be of this run."""
    model = {
        path.name: _digest_file(path)
        for path in sorted(Path(args.model or PRETRAINED).iterdir())
        if path.name in ("weights.safetensors", "model.json")
    }
    return {
        "hilander": __version__,
        "features": digest_rows(file.features),
        "model": model,
        "rules": repr(rules),
        "graph": None if args.graph is None else _digest_file(args.graph),
        "store": plan.store,
        "search": plan.search,
        "device": args.device,
        "whiten": args.whiten,
    }


def digest_rows(X: npt.NDArray[Any]) -> str:
    """A digest of an array's type, shape and values, read block by block."""
    digest = hashlib.blake2b(f"{X.dtype.str}{X.shape}".encode(), digest_size=16)
    for rows in row_blocks(*X.shape):
        digest.update(np.ascontiguousarray(X[rows]).view(np.uint8).data)
        drop_pages(X)
    return digest.hexdigest()


def _digest_file(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
