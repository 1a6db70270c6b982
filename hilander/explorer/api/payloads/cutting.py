"""The merge tree, cut at a probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilander.explorer.api.payloads.clusters import MOST_BARS
from hilander.explorer.api.payloads.paging import describe_items, round_number
from hilander.explorer.partition.summary import choose_exemplars
from hilander.explorer.session.explorer import Explorer

# Clusters that are shown with their items, and items of each.
_LARGEST, _EXEMPLARS = 12, 8


def cut_tree(explorer: Explorer, p: float, min_size: int) -> dict[str, Any]:
    """Cut the merge tree at a probability.

    Parameters
    ----------
    explorer : Explorer
    p : float, in [0, 1]
        Merges of at least this probability are made; 0.5 gives the last level.
    min_size : int
        Smaller clusters are counted, but have no bar.

    Returns
    -------
    cut : dict
        ``n_clusters``, ``n_singletons``, ``bars`` with start and size in the order of the leaves,
        and the ``largest`` clusters with exemplars; ``reason`` if there is no tree.
    """
    candidates, tree = explorer.candidates, explorer.run.merge_tree
    if candidates is None or tree is None:
        return {"n_clusters": 0, "reason": "the run has no graph, so it has no merge tree"}
    leaves = candidates.leaves
    n_merges = int((tree.height >= p).sum())
    starts = np.flatnonzero(np.r_[True, leaves.between[:-1] >= n_merges])
    sizes = np.diff(np.append(starts, leaves.n_points))
    wide = np.flatnonzero(sizes >= min_size)
    wide = np.sort(wide[np.argsort(-sizes[wide], kind="stable")[:MOST_BARS]])
    largest = np.argsort(-sizes, kind="stable")[:_LARGEST]
    density = explorer.run.hierarchy.density

    def describe(one: int) -> dict[str, Any]:
        rows = leaves.order[starts[one] : starts[one] + sizes[one]]
        ordered = rows[np.argsort(-density[rows], kind="stable")]
        exemplars = describe_items(explorer.run, choose_exemplars(ordered, _EXEMPLARS))
        return {"start": int(starts[one]), "size": int(sizes[one]), "exemplars": exemplars}

    return {
        "p": round_number(p),
        "n_points": leaves.n_points,
        "n_clusters": len(starts),
        "n_singletons": int((sizes == 1).sum()),
        "bars": [{"start": int(starts[i]), "size": int(sizes[i])} for i in wide.tolist()],
        "largest": [describe(one) for one in largest.tolist()],
        "reason": None,
    }
