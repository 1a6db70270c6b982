"""The hierarchy as Parquet, JSON and Newick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.io.files import write_table
from hilander.io.writing import write_atomically

if TYPE_CHECKING:
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.merge_tree import MergeTree

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


def to_newick_text(
    hierarchy: Hierarchy,
    path: str | Path | None,
    ids: npt.ArrayLike | None,
    *,
    heights: bool = False,
) -> str:
    """The tree of levels, or with `heights` the merge tree; points are leaves.

    In the tree of levels a cluster of level l is named ``L<l>_<cluster>``, every branch has length
    1, and the final clusters are joined by one root.
    """
    names = np.arange(hierarchy.n_points) if ids is None else np.asarray(ids)
    if len(names) != hierarchy.n_points:
        raise SettingError(f"got {len(names)} ids for {hierarchy.n_points} points; give one each")
    leaves = [quote_newick(str(name)) for name in names.tolist()]
    text = _join_merges(leaves, hierarchy.tree) if heights else _join_levels(leaves, hierarchy)
    _write_text(path, text)
    return text


def _join_levels(leaves: list[str], hierarchy: Hierarchy) -> str:
    branches = [f"{leaf}:1" for leaf in leaves]
    for number, level in enumerate(hierarchy.levels):
        groups = members_of(level.labels, level.n_clusters)
        branches = [
            f"({','.join(branches[node] for node in group)})L{number}_{cluster}:1"
            for cluster, group in enumerate(groups)
        ]
    return f"({','.join(branches)})root;"


def _join_merges(leaves: list[str], tree: MergeTree) -> str:
    """A branch is as long as the height falls along it; points have height 1."""
    whole = tree.completed()
    text = list(leaves)
    height = [1.0] * len(leaves) + whole.height.tolist()
    for merge, pair in enumerate(whole.children.tolist()):
        own = height[len(leaves) + merge]
        parts = (f"{text[child]}:{height[child] - own:.6f}" for child in pair)
        text.append(f"({','.join(parts)})")
        for child in pair:
            text[child] = ""  # free the text of the parts
    return f"{text[-1]};"


def to_networkx_graph(tree: MergeTree) -> Any:
    """The merge tree as a `networkx.DiGraph` from parents to children."""
    from hilander.hierarchy.decoding.communities import require

    networkx = require("networkx", "networkx", "to_networkx")
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(tree.n_points), size=1)
    for merge, (pair, size) in enumerate(
        zip(tree.children.tolist(), tree.sizes().tolist(), strict=True)
    ):
        node = tree.n_points + merge
        graph.add_node(node, size=size, height=float(tree.height[merge]))
        graph.add_edges_from((node, child) for child in pair)
    return graph


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
