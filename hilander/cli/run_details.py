"""What run.json of a run folder holds, and one-line descriptions of a run."""

from __future__ import annotations

import platform
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander import __version__
from hilander.errors import FileFormatError
from hilander.io.files import EmbeddingFile
from hilander.io.writing import MARKER, read_json

if TYPE_CHECKING:
    from hilander.estimator import HiLander
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.run_extras import RunExtras
    from hilander.hierarchy.run_log import RunLog


def describe_run(
    model: HiLander,
    file: EmbeddingFile,
    hierarchy: Hierarchy,
    settings: dict[str, Any],
    log: RunLog,
) -> dict[str, Any]:
    """Content of run.json, except for the stages.

    Parameters
    ----------
    model : HiLander
    file : EmbeddingFile
        What was clustered.
    hierarchy : Hierarchy
    settings : dict
        Settings of the run.
    log : RunLog
    """
    source = {
        "path": str(file.source),
        "n": len(file.features),
        "dim": int(file.features.shape[1]),
        "has_ids": file.ids is not None,
    }
    return describe_rows(model, source, hierarchy, settings, log)


def describe_rows(
    model: HiLander,
    source: dict[str, Any],
    hierarchy: Hierarchy,
    settings: dict[str, Any],
    log: RunLog,
) -> dict[str, Any]:
    """Content of run.json, except for the stages, for an input that is described already."""
    return {
        "input": source,
        "settings": settings,
        "model": {
            "preparation": log.work.preparation or model.preparation_.describe(),
            "rules": asdict(model.rules_),
            "network": model.network_.settings.to_dict(),
        },
        "n_levels": hierarchy.n_levels,
        "n_clusters": [level.n_clusters for level in hierarchy.levels],
        "versions": list_versions(),
        "search": None if log.search is None else asdict(log.search),
    }


def list_versions() -> dict[str, str]:
    """Versions of this library and of those that its numbers depend on."""
    import faiss
    import numpy
    import torch

    return {
        "hilander": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "torch": torch.__version__,
        "faiss": faiss.__version__,
    }


def make_extras(file: EmbeddingFile, log: RunLog) -> RunExtras:
    """What the explorer shows besides the clusters: features of the peaks, labels, pictures."""
    from hilander.embeddings.partial_labels import fill_empty
    from hilander.hierarchy.run_extras import RunExtras
    from hilander.io.item_columns import read_item_columns

    labels = file.labels if file.labels is not None and file.labels.ndim == 1 else None
    items = read_item_columns(file.source)
    return RunExtras(
        features=None if log.first is None else log.first.nodes.identity,
        columns=items.columns | ({} if labels is None else {"label": fill_empty(labels)}),
        images_folder=items.folder,
    )


def describe_counts(hierarchy: Hierarchy, log: RunLog) -> str:
    """Number of points and clusters, and the time; a second line for an approximate search."""
    counts = " > ".join(f"{level.n_clusters:,}" for level in hierarchy.levels)
    text = (
        f"{hierarchy.n_points:,} points in {_count_clusters(hierarchy.n_clusters())} "
        f"(by level: {counts}) in {log.seconds:.1f} s"
    )
    if log.search is not None and log.search.method != "exact":
        text += f"\nthe search found {log.search.recall:.1%} of the neighbours"
        text += f" ({log.search.method})"
    return text


def describe_p_tau(log: RunLog) -> str:
    """The threshold that was applied to the points; empty for a run without levels."""
    return "" if log.first is None else f", p_tau {log.first.parents.p_tau:.2g}"


def describe_replaced(folder: Path) -> str:
    """One line on the run that a new run will replace; empty if there is none."""
    from hilander.explorer.review_log.store import REVIEW_FILE, state_folder
    from hilander.hierarchy.run_extras import DETAILS_FILE

    if not (folder / MARKER).is_file():
        return ""
    line = "this run replaces an earlier one"
    try:
        details = read_json(folder / DETAILS_FILE)
        n_points, n_clusters = details["input"]["n"], details["n_clusters"][-1]
        written = datetime.fromtimestamp((folder / DETAILS_FILE).stat().st_mtime)
        line += f", of {written:%Y-%m-%d %H:%M} with {n_points:,} points"
        line += f" in {_count_clusters(n_clusters)}"
    except (FileFormatError, OSError, LookupError, TypeError, ValueError):
        pass  # a run that was saved from Python, or is damaged
    review = state_folder(folder) / REVIEW_FILE
    return line + (f"; its review in {review.parent} is kept" if review.is_file() else "")


def _count_clusters(number: int) -> str:
    return f"{number:,} {'cluster' if number == 1 else 'clusters'}"
