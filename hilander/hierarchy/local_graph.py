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
from hilander.hierarchy.scorers import MeasuringScorer

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
    n_points: int | None = None,
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
    n_points : int, optional
        Number of points of the whole graph. Many members are found faster with it.
    """
    n_members, k = neighbours.shape
    if n_points is None:
        rising = np.argsort(members, kind="stable")
        found = np.searchsorted(members, neighbours, sorter=rising)
        place = rising[np.minimum(found, n_members - 1)]
    else:
        place_of = np.zeros(n_points, dtype=np.int64)
        place_of[members] = np.arange(n_members)
        place = place_of[neighbours]
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
    score: MeasuringScorer,
) -> EdgeScores:
    """Score the edges of some points of a graph.

    The part that is scored has the rows, all points that have an edge to or from them, and all
    points that these list. It has the whole lists of all of them, so the features of the edges of
    the rows are those of the whole graph, except for what the outermost points average over.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,), rising
    neighbours, affinity : ndarray of shape (n_points, k)
    take : callable rows -> features
    score : MeasuringScorer
        With bound points or measures.

    Returns
    -------
    scores : EdgeScores of the rows
    """
    n_points = len(neighbours)
    if len(rows) >= _WHOLE_SHARE * n_points:
        scores = score(KnnGraph(neighbours, affinity), start_nodes(take(np.arange(n_points))))
        return EdgeScores(scores.linkage[rows], scores.density[rows])
    around = _points_around(rows, neighbours)
    is_rest = np.zeros(n_points, dtype=bool)
    is_rest[neighbours[around]] = True
    is_rest[rows] = is_rest[around] = False
    members = np.concatenate([rows, around, np.flatnonzero(is_rest)])
    part = cut_graph(members, neighbours[members], affinity[members], n_points=n_points)
    nodes = start_nodes(part.pad(take(members)))
    return score.score_first(part.graph, nodes, len(rows), len(rows) + len(around))


def _points_around(rows: IntArray, neighbours: IntArray) -> IntArray:
    """The other points that have an edge to or from some points, rising."""
    is_row = np.zeros(len(neighbours), dtype=bool)
    is_row[rows] = True
    is_around: BoolArray = np.any(is_row[neighbours], axis=1)
    is_around[neighbours[rows]] = True
    return np.flatnonzero(is_around & ~is_row)
