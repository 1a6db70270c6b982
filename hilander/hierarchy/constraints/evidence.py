"""Evidence from cannot-links: the scores of a graph, given what is known of its nodes.

An edge between nodes that must be apart gets linkage 0. A node x is of one identity with at most
one of two nodes that must be apart. So of its edges to them, of odds ``o_j = p_j / (1 - p_j)``, the
more probable one lowers the other, unless x is known to be apart from it:
``odds(x ~ j) = o_j / (1 + sum of the higher odds of nodes apart from j)``.

Must-links are not evidence for single edges, but for clusters: see
`hilander.hierarchy.constraints.joining`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, IntArray
from hilander.graph.edges import logit_of
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores, edge_density
from hilander.hierarchy.constraints.constraints import Constraints, expand_rows

Numbers = npt.NDArray[np.float64]


def condition_scores(graph: KnnGraph, scores: EdgeScores, constraints: Constraints) -> EdgeScores:
    """The scores, given the constraints.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of that graph
    constraints : Constraints of n_nodes nodes

    Returns
    -------
    scores : EdgeScores
        With densities that follow from the new linkage, where it changed.
    """
    rows = np.repeat(np.arange(graph.n_nodes), graph.k)
    ends = graph.neighbours.ravel()
    apart = constraints.are_apart(rows, ends)
    given = logit_of(scores.linkage.ravel()).astype(np.float64)
    given[apart] = -np.inf  # certain: no rival of anything
    sides = _Sides(
        np.concatenate([rows, ends]), np.concatenate([ends, rows]), np.tile(np.arange(len(rows)), 2)
    )
    reduction = _find_reduction(sides, given, constraints)
    linkage = scores.linkage.ravel().copy()
    lowered = reduction > 0
    linkage[lowered] = 1 / (1 + np.exp(reduction[lowered] - given[lowered]))
    linkage[apart] = 0
    conditioned = linkage.reshape(graph.neighbours.shape)
    moved = (conditioned != scores.linkage).any(axis=1)
    density = np.where(moved, edge_density(graph.affinity, conditioned), scores.density)
    return EdgeScores(conditioned, density.astype(np.float32))


@dataclass(frozen=True, eq=False)
class _Sides:
    """Each edge twice, once seen from each of its ends.

    Parameters
    ----------
    pivot, other, edge : ndarray of shape (2 * n_edges,)
    """

    pivot: IntArray
    other: IntArray
    edge: IntArray

    def take(self, chosen: BoolArray) -> _Sides:
        """Some of the sides."""
        return _Sides(self.pivot[chosen], self.other[chosen], self.edge[chosen])


def _find_reduction(sides: _Sides, log_odds: Numbers, constraints: Constraints) -> Numbers:
    """What the more probable rivals take from the log-odds of each edge, shape (n_edges,)."""
    component = constraints.component[sides.other]
    in_group = np.diff(constraints.apart.indptr)[component] > 0
    some = sides.take(in_group)
    place, group = expand_rows(constraints.apart, component[in_group])
    reduction = _reduce_by_groups(some, place, group, log_odds, constraints)
    labelled = constraints.known[component] >= 0
    some, known = sides.take(labelled), constraints.known[component[labelled]]
    return reduction + _reduce_by_labels(some, known, log_odds)


def _reduce_by_groups(
    sides: _Sides, place: IntArray, group: IntArray, log_odds: Numbers, constraints: Constraints
) -> Numbers:
    """Reduction by rivals of common apart groups.

    Parameters
    ----------
    sides : _Sides of n_sides sides
    place, group : ndarray of shape (n_entries,)
        Side of each membership in a group, and the group.
    log_odds : ndarray of shape (n_edges,)
    constraints : Constraints
    """
    key = sides.pivot[place] * max(constraints.apart.shape[1], 1) + group
    one, other = _pair_within(key, place)
    component = constraints.component[sides.other]
    odds = np.exp(log_odds[sides.edge])
    kept = (component[one] != component[other]) & (odds[other] > odds[one])
    one, other = one[kept], other[kept]
    # Two nodes may share many groups, and an edge may be listed both ways: a rival counts once.
    rivals = one * constraints.n_components + component[other]
    order = np.lexsort((-odds[other], rivals))
    first = order[np.flatnonzero(np.diff(rivals[order], prepend=-1))]
    higher = np.bincount(one[first], odds[other[first]], len(sides.edge))
    return np.bincount(sides.edge, np.log1p(higher), len(log_odds)).astype(np.float64)


def _pair_within(key: IntArray, place: IntArray) -> tuple[IntArray, IntArray]:
    """All ordered pairs of places of equal key, shape (n_pairs,) each."""
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    size = np.diff(np.r_[starts, len(key)])
    repeat = np.repeat(size, size)
    one = np.repeat(np.arange(len(key)), repeat)
    within = np.arange(len(one)) - np.repeat(np.cumsum(repeat) - repeat, repeat)
    other = np.repeat(np.repeat(starts, size), repeat) + within
    return place[order[one]], place[order[other]]


def _reduce_by_labels(sides: _Sides, known: IntArray, log_odds: Numbers) -> Numbers:
    """Reduction by nodes of other known labels; each label counts once, by its highest odds.

    Parameters
    ----------
    sides : _Sides of n_sides sides
    known : ndarray of shape (n_sides,)
    log_odds : ndarray of shape (n_edges,)
    """
    if not len(known):
        return np.zeros_like(log_odds)
    odds = np.exp(log_odds[sides.edge])
    n_labels = int(known.max()) + 1
    key = sides.pivot * n_labels + known
    labels, label = np.unique(key, return_inverse=True)
    best = np.zeros(len(labels))
    np.maximum.at(best, label, odds)
    one, other = _pair_within(labels // n_labels, np.arange(len(labels)))
    kept = best[other] > best[one]
    higher = np.bincount(one[kept], best[other[kept]], len(labels))
    return np.bincount(sides.edge, np.log1p(higher)[label], len(log_odds)).astype(np.float64)
