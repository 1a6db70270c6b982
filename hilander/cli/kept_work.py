"""Work of a long ``hilander cluster`` that is kept on disk: the same command resumes from it."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander import __version__
from hilander.arrays.rows import drop_pages, row_blocks
from hilander.cli.inputs import find_model
from hilander.hierarchy import budget
from hilander.hierarchy.work import KeptWork, Work
from hilander.io.files import EmbeddingFile

if TYPE_CHECKING:
    from hilander.estimator import HiLander
    from hilander.graph.knn_graph import KnnGraph
    from hilander.hierarchy.constraints.constraints import Constraints
    from hilander.training.inference import RunPlan


def work_folder(output: Path) -> Path:
    """Where the work of a run is kept until the run is written."""
    target = output.resolve()
    return target.with_name(target.name + ".work")


def start_work(
    model: HiLander,
    file: EmbeddingFile,
    args: argparse.Namespace,
    asked: Mapping[str, Any],
    graph: KnnGraph | None,
    constraints: Constraints | None = None,
) -> Work:
    """Plan a long run, print its estimate and open its work folder. A short run keeps nothing.

    Parameters
    ----------
    model : HiLander
    file : EmbeddingFile
    args : Namespace of ``hilander cluster``
    asked : mapping
        Settings in place of the model's own.
    graph : KnnGraph, optional
        The user's own graph.
    constraints : Constraints, optional
    """
    from hilander.training.inference import plan_run

    is_long = len(file.features) >= budget.LONG_RUN
    if not is_long and args.memory is None:
        return Work()
    settings = model.run_settings(asked, args.memory)
    plan = plan_run(model.model_, file.features, settings, graph, may_map=True)
    if is_long and not args.quiet:
        print(budget.describe_estimate(plan.load, plan.memory), flush=True)
    if not is_long and plan.memory.store != "mapped":
        return Work()
    return open_work(args, file, plan, constraints)


def open_work(
    args: argparse.Namespace,
    file: EmbeddingFile,
    plan: RunPlan,
    constraints: Constraints | None = None,
) -> KeptWork:
    """Open the work folder of a run, and print whether the run resumes from it."""
    return _open(args, take_fingerprint(args, file, plan, constraints))


def open_sharded_work(args: argparse.Namespace, digest: str, settings: str) -> KeptWork:
    """Open the work folder of a run over shards, whatever its length.

    Parameters
    ----------
    args : Namespace of ``hilander cluster``
    digest : str
        Of the rows.
    settings : str
        Everything else that decides the result, except for the model.
    """
    fingerprint = {
        "hilander": __version__,
        "features": digest,
        "model": _digest_model(args),
        "settings": settings,
        "sharded": True,
    }
    return _open(args, fingerprint)


def _open(args: argparse.Namespace, fingerprint: dict[str, Any]) -> KeptWork:
    """Open a work folder, and print whether the run resumes from it."""
    folder = work_folder(args.output)
    work = KeptWork(folder, fingerprint)
    if args.quiet:
        return work
    if work.is_continued:
        print(f"resuming from {folder}", flush=True)
    elif work.replaced:
        print(
            f"{folder} held the work of another input, model or setting; it is removed, and this "
            "run starts from the beginning",
            flush=True,
        )
    return work


def leave_work(work: Work, *, stopped: bool) -> None:
    """After a run that failed or was stopped: keep complete stages, remove an empty folder.

    Parameters
    ----------
    work : Work
    stopped : bool
        Whether the user stopped it; then a message names the folder.
    """
    if not isinstance(work, KeptWork):
        return
    if not work.has_levels:
        work.remove()
    elif stopped:
        message = f"{work.place} is kept, and the same command resumes from it"
        print(f"hilander: {message}", file=sys.stderr)


def remove_work(work: Work) -> None:
    """After a run that was written: remove its work folder."""
    if isinstance(work, KeptWork):
        work.remove()


def take_fingerprint(
    args: argparse.Namespace,
    file: EmbeddingFile,
    plan: RunPlan,
    constraints: Constraints | None = None,
) -> dict[str, Any]:
    """Everything that must be equal for kept work to belong to this run."""
    return {
        "hilander": __version__,
        "features": digest_rows(file.features),
        "model": _digest_model(args),
        "rules": repr(plan.rules),
        "graph": None if args.graph is None else _digest_file(args.graph),
        "store": plan.memory.store,
        "search": plan.memory.search,
        "device": args.device,
        "whiten": args.whiten,
        "order": "canonical",
        "constraints": None if constraints is None else constraints.digest(),
    }


def _digest_model(args: argparse.Namespace) -> dict[str, str]:
    """Digest of the files of the model that the options name."""
    return {
        path.name: _digest_file(path)
        for path in sorted(find_model(args.model).iterdir())
        if path.name in ("weights.safetensors", "model.json")
    }


def digest_rows(X: npt.NDArray[Any]) -> str:
    """Digest of an array's type, shape and values, read block by block."""
    digest = hashlib.blake2b(f"{X.dtype.str}{X.shape}".encode(), digest_size=16)
    for rows in row_blocks(*X.shape):
        digest.update(np.ascontiguousarray(X[rows]).view(np.uint8).data)
        drop_pages(X)
    return digest.hexdigest()


def _digest_file(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
