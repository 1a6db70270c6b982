"""The region that an update affects, and its decoding while everything else is held fixed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, FloatArray, IntArray, row_blocks
from hilander.collection.cluster_ids import NEW
from hilander.collection.splice import select_levels
from hilander.embeddings.canonical_order import find_canonical_order
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.nodes import Nodes, start_nodes
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.hierarchy.constraints.enforcement import HeldConstraints, JoinedLevel
from hilander.hierarchy.decoding.parents import Parents
from hilander.hierarchy.decoding.trees import label_trees
from hilander.hierarchy.level import Level
from hilander.hierarchy.levels import MOST_LEVELS, decode_level, walk_nodes
from hilander.hierarchy.local_graph import LocalGraph, cut_graph
from hilander.hierarchy.original_order import restore_level
from hilander.hierarchy.pooling import link_trees, merge_nodes
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import Scorer

# Linkage from which on an edge of an inserted point affects the cluster that it leads to.
_AFFECTS = 0.5
# Points around the region, and points drawn from the whole set. They are decoded with the region,
# because features of clusters compare them with those around and with the set; the result for them
# is not used.
_AROUND, _DRAWN = 4_000, 4_000
_LEAST_DENSITY = -1.0


@dataclass(frozen=True, eq=False)
class ScoredLists:
    """The k-NN lists of a set, with their scores.

    Parameters
    ----------
    neighbours, affinity, linkage : ndarray of shape (n_points, k)
    density : ndarray of shape (n_points,)
    """

    neighbours: IntArray
    affinity: FloatArray
    linkage: FloatArray
    density: FloatArray


@dataclass(frozen=True, eq=False)
class Decoded:
    """A region that was decoded.

    Parameters
    ----------
    levels : list of Level
        Of the points of the region.
    p_tau_merge : float, optional
        The threshold that was applied to merges; None if nothing could merge.
    """

    levels: list[Level]
    p_tau_merge: float | None


@dataclass(frozen=True, eq=False)
class Rescored:
    """Rows whose lists an update changed, and their lists before.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,), rising
        Points that were there before.
    neighbours : ndarray of shape (n_rows, k)
        By their present numbers; -1 for a removed one.
    linkage : ndarray of shape (n_rows, k)
    """

    rows: IntArray
    neighbours: IntArray
    linkage: FloatArray


def find_affected(
    former: IntArray, n_former: int, lists: ScoredLists, rescored: Rescored, p_tau: float
) -> BoolArray:
    """The former clusters that inserted points or new links reach, shape (n_former,).

    These are the clusters that an inserted point has a probable edge to or from, and those of a
    rescored point that has a link to another cluster that it did not have before. A cluster whose
    points have their former lists, and are in no inserted point's list, is never affected.

    Parameters
    ----------
    former : ndarray of shape (n_points,)
        Former cluster of each point; -1 for an inserted one.
    n_former : int
    lists : ScoredLists of n_points points
    rescored : Rescored
    p_tau : float
        Least linkage of a link.
    """
    affected = np.zeros(n_former, dtype=bool)
    inserted = np.flatnonzero(former == NEW)
    ends = former[lists.neighbours[inserted]]
    affected[ends[(ends != NEW) & (lists.linkage[inserted] >= _AFFECTS)]] = True
    touched = np.zeros(n_former, dtype=bool)
    touched[ends[ends != NEW]] = True
    touched[former[rescored.rows]] = True
    for block in row_blocks(len(rescored.rows), lists.neighbours.shape[1] ** 2):
        rows = rescored.rows[block]
        neighbours, linkage = lists.neighbours[rows], lists.linkage[rows]
        there, here = former[neighbours], former[rows]
        affected[here[((there == NEW) & (linkage >= _AFFECTS)).any(axis=1)]] = True
        was_listed = rescored.neighbours[block][:, None, :] == neighbours[:, :, None]
        was_linked = was_listed & (rescored.linkage[block] >= p_tau)[:, None, :]
        appeared = (linkage >= p_tau) & ~was_linked.any(axis=2)
        appeared &= (there != NEW) & (there != here[:, None])
        affected[there[appeared]] = True
        affected[here[appeared.any(axis=1)]] = True
    return affected & touched


def choose_context(
    former: IntArray, affected: BoolArray, lists: ScoredLists, in_region: BoolArray
) -> IntArray:
    """Points that are decoded with a region, rising: clusters around it, and clusters drawn.

    Parameters
    ----------
    former : ndarray of shape (n_points,)
    affected : ndarray of shape (n_former,)
    lists : ScoredLists
    in_region : ndarray of shape (n_points,)
    """
    sizes = np.bincount(former[former != NEW], minlength=len(affected))
    ends = former[lists.neighbours[in_region]]
    reached = np.bincount(ends[ends != NEW], minlength=len(affected))
    reached[affected] = 0
    around = np.argsort(-reached, kind="stable")[: int((reached > 0).sum())]
    around = around[np.cumsum(sizes[around]) <= _AROUND]
    rest = ~affected & (sizes > 0)
    rest[around] = False
    drawn = np.random.default_rng(0).permutation(np.flatnonzero(rest))
    drawn = drawn[np.cumsum(sizes[drawn]) <= _DRAWN]
    chosen = np.zeros(len(affected) + 1, dtype=bool)  # the last place is that of NEW
    chosen[around] = chosen[drawn] = True
    return np.flatnonzero(chosen[former])


def decode_region(
    in_region: BoolArray,
    context: IntArray,
    lists: ScoredLists,
    take: Callable[[IntArray], FloatArray],
    score: Scorer,
    rules: Rules,
    constraints: Constraints | None = None,
) -> Decoded:
    """Levels of the points of a region, decoded from their stored scores.

    Edges that leave the region count for nothing: a region never merges with what is held fixed.
    The points are decoded in canonical order.

    Parameters
    ----------
    in_region : ndarray of shape (n_points,), bool
    context : ndarray of shape (n_context,)
    lists : ScoredLists of n_points points
    take : callable rows -> features
    score : Scorer
        With bound measures; scores clusters.
    rules : Rules
        With the threshold of the set.
    constraints : Constraints of n_points points, optional
        Held at every level. No must-link component is partly in the region.
    """
    rising = np.union1d(np.flatnonzero(in_region), context)
    features = take(rising)
    order = find_canonical_order(features)
    rows, features = rising[order], features[order]
    side = in_region[rows].astype(np.int64)
    part = cut_graph(rows, lists.neighbours[rows], lists.affinity[rows], side)
    linkage = np.where(part.inside, lists.linkage[rows], np.float32(0))
    scores = EdgeScores(part.pad(linkage), part.pad(lists.density[rows], _LEAST_DENSITY))
    parents = decode_level(part.graph, scores, rules, 0)
    density = lists.density[rows]
    joined: JoinedLevel | None = None
    known = None if constraints is None else constraints.cut(rows, len(rows))
    if known is not None:
        padded = known.cut(np.arange(len(rows)), part.graph.n_nodes)
        held = HeldConstraints(padded, np.arange(padded.n_points))
        points = start_nodes(part.pad(features))
        parents, joined = held.enforce(part.graph, scores, points, parents)
    first = _first_level(parents, density)
    levels = [first if joined is None else _first_level(joined.parents, density)]
    upper = None if known is None else _hold_upper(known, first, levels[0])
    p_tau_merge = None
    nodes = _pool(part, scores, features, first, rules)
    if rules.can_cluster(len(nodes)):
        sided = _SidedScorer(score, side)
        steps = list(walk_nodes(nodes, sided, rules, levels=range(1, MOST_LEVELS), held=upper))
        levels += [Level.of_step(step) for step in steps]
        p_tau_merge = steps[0].parents.p_tau
    if len(levels) > 1 and levels[-1].n_clusters == levels[-1].n_nodes:
        levels.pop()
    levels[0] = restore_level(levels[0], order)
    return Decoded(select_levels(levels, in_region[rising]), p_tau_merge)


def _first_level(parents: Parents, density: FloatArray) -> Level:
    """The first level without the padding nodes, which no point has as its parent."""
    n_points = len(density)
    index, linkage = parents.index[:n_points], parents.linkage[:n_points]
    labels, peaks = label_trees(index)
    return Level(index, linkage, density, labels, peaks)


def _hold_upper(constraints: Constraints, first: Level, given: Level) -> HeldConstraints:
    """The constraints of the clusters of the first level.

    Parameters
    ----------
    constraints : Constraints of n_points points
    first, given : Level of n_points points
        As the loop goes on with it, and with clusters of one must-link component joined.
    """
    points = HeldConstraints(constraints, np.arange(constraints.n_points))
    parents = Parents(given.parent, given.linkage, 0.0)
    joined = JoinedLevel(parents, given.density, given.labels, given.peaks)
    return points.merge(first.labels, first.n_clusters, joined)


def _pool(
    part: LocalGraph, scores: EdgeScores, features: FloatArray, level: Level, rules: Rules
) -> Nodes:
    """The clusters of the first level as nodes, with the links between them."""
    points, n_trees = start_nodes(features), level.n_clusters
    links = None
    if rules.keep_links:
        padding = n_trees + np.arange(part.graph.n_nodes - part.n_members)
        labels = np.concatenate([level.labels, padding])
        both = link_trees(points, part.graph, scores, labels, n_trees + len(padding))
        links = both.first(n_trees)
    return merge_nodes(points, level.labels, level.peaks, links)


@dataclass(frozen=True, eq=False)
class _SidedScorer:
    """Scores clusters, with linkage 0 between those of different sides."""

    score: Scorer
    side: IntArray

    def bind_points(self, features: FloatArray) -> None:
        """Do nothing: the scorer has its measures."""

    def __call__(self, graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        scores = self.score(graph, nodes)
        side = self.side[nodes.point]
        apart = side[graph.neighbours] != side[:, None]
        return EdgeScores(np.where(apart, np.float32(0), scores.linkage), scores.density)

    def estimate_merges(self, pairs: LinkedPairs) -> npt.NDArray[Any]:
        """The estimate of the scorer; links between two sides have linkage 0 and never merge."""
        return self.score.estimate_merges(pairs)
