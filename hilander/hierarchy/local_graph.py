"""Parts of a k-NN graph: some nodes with their lists, scored as in the whole graph.

A list keeps its length. A neighbour outside of the part is replaced by a padding node, which has a
vector of zeros and no edge into the part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.scorers import Scorer

# Share of the points from which on the whole graph is scored: a part would hold most of it.
_WHOLE_SHARE = 0.2


@dataclass(frozen=True, eq=False)
class LocalGraph:
    """Some nodes of a graph, and padding nodes after them.

    Parameters
    ----------
    graph : KnnGraph of n_members + k + 1 nodes
    inside : ndarray of shape (n_members, k), bool
        Whether an edge ends at a member.
    """

    graph: KnnGraph
    inside: BoolArray

    @property
    def n_members(self) -> int:
        """Number of nodes that are not padding."""
        return len(self.inside)

    def pad(self, rows: npt.NDArray[np.float32], value: float = 0.0) -> FloatArray:
        """Rows of the members, with rows of one value for the padding nodes."""
        n_padding = self.graph.n_nodes - self.n_members
        padding = np.full((n_padding, *rows.shape[1:]), value, dtype=np.float32)
        return np.concatenate([rows.astype(np.float32, copy=False), padding])


def cut_graph(
    members: IntArray,
    neighbours: IntArray,
    affinity: FloatArray,
    side: IntArray | None = None,
) -> LocalGraph:
    """Cut some nodes out of a graph.

    Parameters
    ----------
    members : ndarray of shape (n_members,)
        Their numbers in the whole graph, in any order.
    neighbours, affinity : ndarray of shape (n_members, k)
        Their lists.
    side : ndarray of shape (n_members,), optional
        Edges between members of different sides are cut as well.
    """
    n_members, k = neighbours.shape
    rising = np.argsort(members, kind="stable")
    found = np.searchsorted(members, neighbours, sorter=rising)
    place = rising[np.minimum(found, n_members - 1)]
    inside = members[place] == neighbours
    if side is not None:
        inside &= side[place] == side[:, None]
    local = np.where(inside, place, n_members + np.arange(k))
    ring = (np.arange(k + 1)[:, None] + np.arange(1, k + 1)) % (k + 1)
    return LocalGraph(
        KnnGraph(
            np.concatenate([local, n_members + ring]),
            np.concatenate([affinity, np.zeros((k + 1, k), dtype=np.float32)]),
        ),
        inside,
    )


def score_rows(
    rows: IntArray,
    neighbours: IntArray,
    affinity: FloatArray,
    take: Callable[[IntArray], FloatArray],
    score: Scorer,
) -> EdgeScores:
    """Score the edges of some points of a graph.

    The part that is scored has the rows and their neighbours, and all points that these list or
    that list them. It has the whole lists of the first two, so the features of the edges of the
    rows are those of the whole graph, except for what the outermost points average over.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,), rising
    neighbours, affinity : ndarray of shape (n_points, k)
    take : callable rows -> features
    score : Scorer
        With bound points or measures.

    Returns
    -------
    scores : EdgeScores of the rows
    """
    n_points = len(neighbours)
    if len(rows) >= _WHOLE_SHARE * n_points:
        scores = score(KnnGraph(neighbours, affinity), start_nodes(take(np.arange(n_points))))
        return EdgeScores(scores.linkage[rows], scores.density[rows])
    is_core = np.zeros(n_points, dtype=bool)
    is_core[rows] = True
    is_core[neighbours[rows]] = True
    is_member = is_core | is_core[neighbours].any(axis=1)
    is_member[neighbours[is_core]] = True
    members = np.flatnonzero(is_member)
    part = cut_graph(members, neighbours[members], affinity[members])
    scores = score(part.graph, start_nodes(part.pad(take(members))))
    place = np.searchsorted(members, rows)
    return EdgeScores(scores.linkage[place], scores.density[place])
