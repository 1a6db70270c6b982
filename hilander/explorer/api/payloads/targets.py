"""Clusters that another cluster or some items may belong to, the likeliest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.explorer.api.payloads.clusters import find_searched
from hilander.explorer.api.payloads.paging import describe_card, round_number
from hilander.explorer.partition.grouping import Grouping

# Exemplars of a target: one row of the picker.
_EXEMPLARS = 5
# Clusters that edges lead to and that are ranked; the others follow by size.
_MOST_NEAR = 200


def check_rows(grouping: Grouping, rows: list[int] | None, group: int | None) -> IntArray:
    """Return the rows that a request names, or those of the cluster that it names."""
    if group is not None:
        return grouping.rows_of(grouping.check(group))
    if not rows or min(rows) < 0 or max(rows) >= grouping.run.n_points:
        raise SettingError(f"rows must be one or more of 0 to {grouping.run.n_points - 1}")
    return np.asarray(rows, dtype=np.int64)


def list_targets(
    grouping: Grouping, rows: Sequence[int] | IntArray, search: str, limit: int
) -> list[dict[str, Any]]:
    """Rank the clusters that some items of one cluster may belong to.

    Parameters
    ----------
    grouping : Grouping
        The reviewed partition.
    rows : ndarray of shape (n_rows,)
        Items of one cluster, which itself is left out.
    search : str
        A cluster's number, part of its name, or part of a member's id; empty for all clusters.
    limit : int

    Returns
    -------
    targets : list of dict
        Cards with ``linkage``: the mean linkage of the items' edges, counting those that lead
        elsewhere as 0; None for a cluster that no edge leads to.
    """
    chosen = np.asarray(rows, dtype=np.int64)
    allowed = grouping.alive.copy()
    allowed[np.unique(grouping.labels[chosen])] = False
    if search.strip():
        allowed &= find_searched(grouping, search.strip())
    linkage: dict[int, float] = {}
    graph = grouping.run.graph
    if graph is not None:
        near = graph.nearest_clusters(chosen, grouping.labels, _MOST_NEAR)
        linkage = {group: strength for group, strength, _, _ in near if allowed[group]}
    ranked = list(linkage)[:limit]
    if len(ranked) < limit:
        by_size = grouping.order("size")
        others = by_size[allowed[by_size]]
        ranked += others[~np.isin(others, list(linkage))][: limit - len(ranked)].tolist()
    return [
        describe_card(grouping, group, exemplars=_EXEMPLARS)
        | {"linkage": round_number(linkage[group]) if group in linkage else None}
        for group in ranked
    ]
