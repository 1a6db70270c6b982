"""What a hierarchy keeps of the level loop: every level, and of the first one what it measured."""

from __future__ import annotations

from collections.abc import Callable

from hilander.arrays.rows import FloatArray, IntArray
from hilander.hierarchy.basis import Basis
from hilander.hierarchy.level import Level
from hilander.hierarchy.levels import LevelStep
from hilander.hierarchy.trust import estimate_trust
from hilander.hierarchy.work import Work


class LevelCollector:
    """Takes the steps of the level loop, one after the other.

    Parameters
    ----------
    work : Work, optional
        That of the loop; its base is kept with the graph.
    keep_graph : bool
        Whether to keep the scored graph of the points.

    Attributes
    ----------
    trust : float
        Share of the confidence of links, see `hilander.hierarchy.trust`.
    basis : Basis, optional
        Of the points, once the first step has come.
    """

    def __init__(self, work: Work | None, *, keep_graph: bool) -> None:
        self._work, self._keeps_graph = work, keep_graph
        self._graph: tuple[IntArray, FloatArray] | None = None
        self._n_steps = 0
        self.trust = 1.0
        self.basis: Basis | None = None

    def add(self, step: LevelStep) -> Level:
        """Keep what is needed of a step, and return its level."""
        if self._n_steps == 0:
            self._keep_first(step)
        elif self._n_steps == 1 and self.basis is not None:
            self.basis = self.basis.after_merges(step.parents.p_tau)
        self._n_steps += 1
        return Level.of_step(step)

    @property
    def read_graph(self) -> Callable[[], tuple[IntArray, FloatArray]] | None:
        """Gives neighbours and linkage of the points; None if they are not kept."""
        graph = self._graph
        return None if graph is None else lambda: graph

    @property
    def read_basis(self) -> Callable[[], Basis] | None:
        """Gives the basis; None if there is none."""
        basis = self.basis
        return None if basis is None else lambda: basis

    def _keep_first(self, step: LevelStep) -> None:
        # The base is known when the first level has been scored.
        base = None if self._work is None else self._work.base
        if base is not None and base.preparation.per_set:
            self.trust = estimate_trust(step.scores.linkage)
        if self._keeps_graph:
            self._graph = step.graph.neighbours, step.scores.linkage
            if base is not None:
                self.basis = Basis.of_step(step, base)
