"""A revision of a set: points inserted and removed, and what that affects clustered again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hilander.arrays.row_source import RowSource
from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.collection.cluster_ids import NEW
from hilander.collection.holding import condition_rows, find_broken
from hilander.collection.region import (
    Rescored,
    ScoredLists,
    choose_context,
    decode_region,
    find_affected,
)
from hilander.collection.splice import Part, join_levels, select_levels
from hilander.hierarchy.basis import Basis, SetBase
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.level import Level
from hilander.hierarchy.local_graph import score_rows
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import MeasuringScorer
from hilander.knn.insertion import insert_rows

# Share of the points that are decoded again from which on the threshold of merges is chosen anew.
_MOST_OF_SET = 0.5


@dataclass(frozen=True, eq=False)
class Revision:
    """A set after an update.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        Prepared points: those that were kept, then the inserted ones.
    lists : ScoredLists of n_points points
    levels : list of Level
    former : ndarray of shape (n_points,)
        Former cluster of each point, by its number; -1 for an inserted one.
    rescored : ndarray of shape (n_rescored,)
        Points whose edges were scored again.
    in_region : ndarray of shape (n_points,), bool
        Points that were decoded again.
    base : SetBase
        Measures of the set, with the threshold of merges that was applied.
    """

    features: npt.NDArray[np.floating]
    lists: ScoredLists
    levels: list[Level]
    former: IntArray
    rescored: IntArray
    in_region: BoolArray
    base: SetBase


def revise(
    hierarchy: Hierarchy,
    kept: BoolArray,
    inserted: FloatArray,
    score: MeasuringScorer,
    constraints: Constraints | None = None,
) -> Revision:
    """Remove points of a hierarchy and insert others.

    Lists are searched for the inserted points, and for those that lose a neighbour; edges of points
    whose lists changed are scored again; clusters that this reaches are decoded again. All else
    keeps its bits.

    Where most points are decoded again, the threshold of merges is chosen anew, as for a whole set:
    the one that is best for few points of each identity is too high for many.

    Parameters
    ----------
    hierarchy : Hierarchy with a basis
    kept : ndarray of shape (n_before,), bool
    inserted : ndarray of shape (n_inserted, dim)
        Prepared points.
    score : MeasuringScorer
        With the measures of the basis.
    constraints : Constraints of n_points points, optional
        What is known after the update: of the points that stay, then of the inserted ones. Clusters
        that do not keep it are decoded again, and all points of these are scored again: stored
        scores are those given what was known before.
    """
    basis = hierarchy.basis
    base, rules = basis.base, basis.base.frozen_rules
    before = _without_removed(basis, hierarchy.density, kept)
    features = np.concatenate([basis.features[kept], inserted.astype(basis.features.dtype)])
    found = insert_rows(features, before.neighbours, before.affinity)
    take = RowSource(features).take

    n_kept, n_points = int(kept.sum()), len(features)
    lists = ScoredLists(
        found.neighbours,
        found.affinity,
        _extend(before.linkage, n_points),
        _extend(before.density, n_points),
    )
    _score_again(found.changed, lists, take, score, rules, constraints)

    labels = hierarchy.labels(-1)
    former = np.concatenate([labels[kept], np.full(n_points - n_kept, NEW)])
    changed = found.changed[found.changed < n_kept]
    rescored = Rescored(changed, before.neighbours[changed], before.linkage[changed])
    p_tau = rules.threshold(0)
    affected = find_affected(former, hierarchy.n_clusters(-1), lists, rescored, p_tau)
    affected[labels[~kept]] = True
    if constraints is not None:
        new = np.full(n_points - n_kept, NEW)
        first = np.concatenate([hierarchy.labels(0)[kept], new])
        broken = find_broken(constraints, first, former)
        affected[: len(broken)] |= broken
    in_region = np.append(affected, True)[former]  # the last place is that of NEW
    parts, rescored_rows = [], found.changed
    if in_region.any():
        if constraints is not None:
            more = np.setdiff1d(np.flatnonzero(in_region), found.changed)
            _score_again(more, lists, take, score, rules, constraints)
            rescored_rows = np.union1d(found.changed, more)
        context = choose_context(former, affected, lists, in_region)
        if in_region.mean() >= _MOST_OF_SET:
            rules = replace(rules, adapt_merges=base.rules.adapt_merges)
        decoded = decode_region(in_region, context, lists, take, score, rules, constraints)
        if rules.adapt_merges and decoded.p_tau_merge is not None:
            base = base.after_merges(decoded.p_tau_merge)
        parts.append(Part(np.flatnonzero(in_region), decoded.levels))
    if not in_region.all():
        untouched = ~affected[labels]  # of the points before; all of these are kept
        parts.append(Part(np.flatnonzero(~in_region), select_levels(hierarchy.levels, untouched)))
    levels = join_levels(parts, n_points, rules)
    return Revision(features, lists, levels, former, rescored_rows, in_region, base)


def _score_again(
    rows: IntArray,
    lists: ScoredLists,
    take: Callable[[IntArray], FloatArray],
    score: MeasuringScorer,
    rules: Rules,
    constraints: Constraints | None,
) -> None:
    """Score the edges of some rows, and put the scores into the lists."""
    if not len(rows):
        return
    scores = score_rows(rows, lists.neighbours, lists.affinity, take, score)
    lists.linkage[rows], lists.density[rows] = scores.linkage, scores.density
    if constraints is not None:
        scores = condition_rows(rows, lists, constraints)
        lists.linkage[rows] = scores.linkage
    settled = scores if rules.as_released else scores.settle_ties()
    lists.density[rows] = settled.density


def _without_removed(basis: Basis, density: FloatArray, kept: BoolArray) -> ScoredLists:
    """The lists of the points that stay, by their new numbers; -1 for a removed neighbour."""
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    return ScoredLists(
        number[basis.neighbours[kept]],
        np.array(basis.affinity[kept]),
        np.array(basis.linkage[kept]),
        density[kept],
    )


def _extend(rows: FloatArray, n_rows: int) -> FloatArray:
    """A copy with more rows of zeros."""
    longer = np.zeros((n_rows, *rows.shape[1:]), dtype=np.float32)
    longer[: len(rows)] = rows
    return longer
