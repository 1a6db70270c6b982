"""What a hierarchy was computed from: new points are measured by it.

Preparation, background, thresholds and the networks of an ensemble depend on the whole set. They
are measured once, when the whole set is clustered. Points that come later are prepared, scored and
decoded by the same measures, so that what they do not touch stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, sort_by_group
from hilander.embeddings.preparation import Preparation
from hilander.errors import SettingError
from hilander.hierarchy.rules import Rules

if TYPE_CHECKING:
    from hilander.hierarchy.levels import LevelStep


@dataclass(frozen=True, eq=False)
class SetBase:
    """Settings and measures of a set, from the run that clustered all of it.

    Parameters
    ----------
    preparation : Preparation
    rules : Rules
        Of the run.
    read_measures : callable () -> dict
        Measures of the scorer; they are known when the first level is scored.
    p_tau : float, optional
        The threshold that was applied to the points.
    n_points : int
        Number of points of that run; 0 if it is not known yet.
    p_tau_merge : float, optional
        The threshold that was applied to merges; None for that of the rules.
    """

    preparation: Preparation
    rules: Rules
    read_measures: Callable[[], Mapping[str, Any]]
    p_tau: float | None = None
    n_points: int = 0
    p_tau_merge: float | None = None

    @cached_property
    def measures(self) -> Mapping[str, Any]:
        """Measures of the scorer."""
        return self.read_measures()

    @property
    def frozen_rules(self) -> Rules:
        """The rules with the threshold that was applied, for parts of the set."""
        if self.p_tau is None or self.rules.as_released:
            return self.rules
        merge = self.rules.threshold(1) if self.p_tau_merge is None else self.p_tau_merge
        return replace(self.rules, p_tau=self.p_tau, p_tau_merge=merge, adapt_merges=False)

    def after_run(self, p_tau: float, n_points: int) -> SetBase:
        """The same base with the results of the first level."""
        return replace(self, p_tau=p_tau, n_points=n_points)

    def after_merges(self, p_tau: float) -> SetBase:
        """The same base with the threshold that was applied to merges."""
        return replace(self, p_tau_merge=p_tau if self.rules.adapt_merges else None)


class SortedSources(NamedTuple):
    """The nodes whose lists name each node.

    Parameters
    ----------
    source : ndarray of shape (n_edges,)
    starts : ndarray of shape (n_points + 1,)
    """

    source: IntArray
    starts: IntArray

    def of(self, rows: IntArray) -> IntArray:
        """Nodes whose lists name at least one of the rows, rising."""
        parts = [self.source[self.starts[row] : self.starts[row + 1]] for row in rows]
        return np.unique(np.concatenate(parts)) if parts else np.arange(0)


@dataclass(frozen=True, eq=False)
class Basis:
    """The prepared points of a hierarchy, their scored graph, and the measures of the set.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), float32 or float16, also a mapped file
        Prepared points, of unit length.
    neighbours, affinity, linkage : ndarray of shape (n_points, k), also mapped files
    base : SetBase
    """

    features: FloatArray
    neighbours: IntArray
    affinity: FloatArray
    linkage: FloatArray
    base: SetBase = field(repr=False)

    def __post_init__(self) -> None:
        shapes = {one.shape for one in (self.neighbours, self.affinity, self.linkage)}
        if len(shapes) != 1 or len(self.features) != len(self.neighbours):
            raise SettingError(
                f"got {len(self.features)} points and a graph of shapes {sorted(shapes)}, expected "
                "one list for each point; cluster again"
            )

    @classmethod
    def of_step(cls, step: LevelStep, base: SetBase) -> Basis:
        """Keep the points and the scored graph of the first level."""
        graph, n_points = step.graph, step.graph.n_nodes
        base = base.after_run(step.parents.p_tau, n_points)
        return cls(step.nodes.identity, graph.neighbours, graph.affinity, step.scores.linkage, base)

    def after_merges(self, p_tau: float) -> Basis:
        """The same basis with the threshold that was applied to merges."""
        return replace(self, base=self.base.after_merges(p_tau))

    @property
    def k(self) -> int:
        """Number of neighbours of each point."""
        return int(self.neighbours.shape[1])

    @cached_property
    def sources(self) -> SortedSources:
        """The points whose lists name each point."""
        places, starts = sort_by_group(np.asarray(self.neighbours).ravel(), len(self.neighbours))
        return SortedSources(places // self.k, starts)
