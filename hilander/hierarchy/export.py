"""The hierarchy as Parquet, JSON and Newick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.io.files import write_table
from hilander.io.writing import write_atomically

if TYPE_CHECKING:
    from hilander.hierarchy.hierarchy import Hierarchy

_MUST_QUOTE = set(" \t\r\n()[]':;,\"")


def write_parquet(hierarchy: Hierarchy, path: str | Path, ids: npt.ArrayLike | None) -> Path:
    """Write one row for each point."""
    target = Path(path)
    write_table(target, hierarchy.to_columns(ids))
    return target


def to_json_text(hierarchy: Hierarchy, path: str | Path | None) -> str:
    """Every level as lists; a peak's linkage is null."""
    levels = []
    for level in hierarchy.levels:
        linkage = [None if np.isnan(p) else round(float(p), 6) for p in level.linkage]
        levels.append(
            {
                "n_nodes": level.n_nodes,
                "n_clusters": level.n_clusters,
                "labels": level.labels.tolist(),
                "peaks": level.peaks.tolist(),
                "parent": level.parent.tolist(),
                "linkage": linkage,
                "density": [round(float(d), 6) for d in level.density],
                "stops_early": bool(level.stops_early),
            }
        )
    text = json.dumps({"n_points": hierarchy.n_points, "levels": levels})
    _write_text(path, text)
    return text


def to_newick_text(hierarchy: Hierarchy, path: str | Path | None, ids: npt.ArrayLike | None) -> str:
    """The tree of clusters: points are leaves, a cluster of level l is named ``L<l>_<cluster>``.

    Every branch is one level long. The final clusters hang from one root.
    """
    names = np.arange(hierarchy.n_points) if ids is None else np.asarray(ids)
    if len(names) != hierarchy.n_points:
        raise SettingError(f"got {len(names)} ids for {hierarchy.n_points} points; give one each")
    branches = [quote_newick(str(name)) + ":1" for name in names.tolist()]
    for number, level in enumerate(hierarchy.levels):
        groups = members_of(level.labels, level.n_clusters)
        branches = [
            f"({','.join(branches[node] for node in group)})L{number}_{cluster}:1"
            for cluster, group in enumerate(groups)
        ]
    text = f"({','.join(branches)})root;"
    _write_text(path, text)
    return text


def members_of(labels: IntArray, n_clusters: int) -> list[list[int]]:
    """Nodes of each cluster, rising."""
    by_cluster = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=n_clusters))[:-1]
    return [group.tolist() for group in np.split(by_cluster, ends)]


def quote_newick(name: str) -> str:
    """A name in Newick syntax: quoted if it holds a character of the syntax."""
    if name and not _MUST_QUOTE & set(name) and "_" not in name:
        return name
    return "'" + name.replace("'", "''") + "'"


def _write_text(path: str | Path | None, text: str) -> None:
    if path is not None:
        with write_atomically(Path(path)) as temporary:
            Path(temporary).write_text(text, encoding="utf-8")
