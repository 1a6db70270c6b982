"""The run folder of a command: hierarchy, first graph, quality, extras and run.json."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from hilander.hierarchy.basis import Basis
from hilander.hierarchy.basis_storage import write_base
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.quality import write_quality
from hilander.hierarchy.run_extras import DETAILS_FILE, RunExtras, write_extras
from hilander.hierarchy.run_log import RunLog
from hilander.hierarchy.storage import RUN_KIND, write_hierarchy, write_scored_graph
from hilander.io.files import write_table
from hilander.io.writing import folder_writer, write_json

CSV_FILE = "clusters.csv"


@dataclass(frozen=True, eq=False)
class RunContent:
    """Everything that a run folder holds, except for the stages of its log.

    Parameters
    ----------
    hierarchy : Hierarchy of n_points points
    details : dict
        Content of run.json: input, settings, model, counts, versions.
    ids : ndarray of shape (n_points,), optional
    extras : RunExtras
    write_more : callable (folder) -> None, optional
        Writes further files into the open folder.
    """

    hierarchy: Hierarchy
    details: dict[str, Any]
    ids: npt.NDArray[Any] | None
    extras: RunExtras
    write_more: Callable[[Path], None] | None = None


def write_run(folder: Path, content: RunContent, log: RunLog, *, as_csv: bool = False) -> None:
    """Write a run folder, whole or not at all.

    Parameters
    ----------
    folder : Path
    content : RunContent
    log : RunLog
        Its first level is stored as graph.npz, its stages in run.json.
    as_csv : bool
        Write clusters.csv too.
    """
    hierarchy, ids = content.hierarchy, content.ids
    with folder_writer(folder, RUN_KIND) as inside:
        write_hierarchy(hierarchy, inside, ids)
        if as_csv:
            write_table(inside / CSV_FILE, hierarchy.to_columns(ids))
        if log.first is not None:
            neighbours, linkage = log.first.graph.neighbours, log.first.scores.linkage
            write_scored_graph(log.first, inside)
            features = log.first.nodes.identity
            write_quality(hierarchy, neighbours, linkage, inside, ids, features)
            if log.work.base is not None:
                basis = Basis.of_step(log.first, log.work.base)
                if len(log.p_taus) > 1:
                    basis = basis.after_merges(log.p_taus[1])
                write_base(inside, basis.features, basis.base)
        if content.write_more is not None:
            content.write_more(inside)
        write_extras(inside, hierarchy, content.extras)
        log.note("write")
        write_json(inside / DETAILS_FILE, {**content.details, "stages": log.stages})
