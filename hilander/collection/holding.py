"""Constraints in an update: which clusters they concern, and the scores of rows given them."""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import BoolArray, IntArray
from hilander.collection.cluster_ids import NEW
from hilander.collection.region import ScoredLists
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.hierarchy.constraints.evidence import condition_scores
from hilander.hierarchy.local_graph import cut_graph


def find_broken(constraints: Constraints, first: IntArray, last: IntArray) -> BoolArray:
    """The clusters of the last level that have to be decoded again for the constraints to hold.

    Every must-link component lies within these clusters and the inserted points, or within one
    cluster of the first level, and so of every level.

    Parameters
    ----------
    constraints : Constraints of n_points points
    first, last : ndarray of shape (n_points,)
        Former clusters at the first and the last level; -1 for an inserted point.

    Returns
    -------
    broken : ndarray of shape (n_clusters,), bool
    """
    broken = np.zeros(int(last.max(initial=-1)) + 1, dtype=bool)
    inserted = first == NEW
    part = np.where(inserted, int(first.max(initial=-1)) + 1 + np.arange(len(first)), first)
    pairs = np.unique(np.stack([constraints.component, part]), axis=1)
    parted = np.bincount(pairs[0], minlength=constraints.n_components) > 1
    broken[last[parted[constraints.component] & ~inserted]] = True
    cluster = np.where(inserted, len(broken) + np.arange(len(last)), last)
    numbers, cluster = np.unique(cluster, return_inverse=True)
    mixed = numbers[constraints.find_mixed(cluster)]
    broken[mixed[mixed < len(broken)]] = True
    return broken


def condition_rows(rows: IntArray, lists: ScoredLists, constraints: Constraints) -> EdgeScores:
    """The scores of some rows of a graph, given the constraints.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,), rising
        Their stored scores are those without constraints; those of all others were given them.
    lists : ScoredLists of n_points points
    constraints : Constraints of n_points points

    Returns
    -------
    scores : EdgeScores of the rows
    """
    neighbours = lists.neighbours
    is_core = np.zeros(len(neighbours), dtype=bool)
    is_core[rows] = True
    is_core[neighbours[rows]] = True
    members = np.flatnonzero(is_core | is_core[neighbours].any(axis=1))
    part = cut_graph(members, neighbours[members], lists.affinity[members])
    linkage = np.where(part.inside, lists.linkage[members], np.float32(0))
    scores = EdgeScores(part.pad(linkage), part.pad(lists.density[members]))
    inside = constraints.cut(members, part.graph.n_nodes)
    conditioned = condition_scores(part.graph, scores, inside)
    place = np.searchsorted(members, rows)
    return EdgeScores(conditioned.linkage[place], conditioned.density[place])
