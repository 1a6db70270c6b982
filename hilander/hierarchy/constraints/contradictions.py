"""Contradictions between statements, and the shortest chain of statements that shows one."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from hilander.arrays.rows import IntArray
from hilander.errors import LabelError
from hilander.hierarchy.constraints.constraints import Constraints


@dataclass(frozen=True, eq=False)
class Statements:
    """What was said, before it was combined.

    Parameters
    ----------
    must : ndarray of shape (n_pairs, 2)
    links : csr_matrix of shape (n_points, n_link_groups)
        Groups of points that are together.
    apart : csr_matrix of shape (n_points, n_apart_groups)
    known : ndarray of shape (n_points,)
        Known label; -1 where it is unknown.
    names : sequence of str, optional
        Ids, for messages.
    """

    must: IntArray
    links: csr_matrix
    apart: csr_matrix
    known: IntArray
    names: Sequence[str] | None

    def name(self, point: int) -> str:
        """How a message names a point."""
        return f"row {point}" if self.names is None else self.names[point]


def refuse_contradictions(
    constraints: Constraints, statements: Statements, cannot: IntArray
) -> None:
    """Raise an error if points of one component must be apart.

    Parameters
    ----------
    constraints : Constraints
    statements : Statements that the constraints were built from
    cannot : ndarray of shape (n_pairs, 2)
        Cannot-link pairs; those of a point with itself are in no apart group.

    Raises
    ------
    LabelError
    """
    itself = cannot[cannot[:, 0] == cannot[:, 1], 0]
    if len(itself):
        name = statements.name(int(itself[0]))
        raise LabelError(f"{name} ≠ {name}: a point cannot be apart from itself; drop that pair")
    component, mixed = constraints.component, _find_mixed_components(constraints, statements)
    if not len(mixed):
        return
    chain = _shortest_chain(component, mixed, statements)
    names = [statements.name(point) for point in chain]
    links = ", ".join(f"{a} = {b}" for a, b in itertools.pairwise(names))
    raise LabelError(
        f"what is known contradicts itself: {links}, but {names[0]} ≠ {names[-1]}"
        f"{_by_labels(statements, chain)}; drop one of these statements"
    )


def _by_labels(statements: Statements, chain: list[int]) -> str:
    """Says so if the ends of a chain differ by their known labels."""
    first, last = (int(statements.known[point]) for point in (chain[0], chain[-1]))
    return " by their known labels" if first >= 0 and last >= 0 and first != last else ""


def _find_mixed_components(constraints: Constraints, statements: Statements) -> IntArray:
    """Components with points that must be apart, shape (n_mixed,)."""
    points = np.arange(constraints.n_points)
    return Constraints(points, statements.apart, statements.known).find_mixed(constraints.component)


def _shortest_chain(component: IntArray, mixed: IntArray, statements: Statements) -> list[int]:
    """Points of the shortest path of must-links between two points that must be apart."""
    graph = _LinkGraph(statements, np.flatnonzero(np.isin(component, mixed)))
    best: list[int] | None = None
    for start in graph.points:
        found = graph.search(start, None if best is None else len(best) - 2)
        if found is not None and (best is None or len(found) < len(best)):
            best = found
        if best is not None and len(best) == 2:
            break
    return best or []


class _LinkGraph:
    """Must-links among some points; the points of a link group are linked through the group."""

    def __init__(self, statements: Statements, points: IntArray) -> None:
        self.points: list[int] = points.tolist()
        self.statements = statements
        self.pairs: dict[int, list[int]] = {}
        inside = set(self.points)
        for a, b in statements.must.tolist():
            if a in inside:
                self.pairs.setdefault(a, []).append(b)
                self.pairs.setdefault(b, []).append(a)
        self.by_group = csc_matrix(statements.links)

    def search(self, start: int, most: int | None) -> list[int] | None:
        """The shortest chain from a point to one that it must be apart from; None for none.

        Parameters
        ----------
        start : int
        most : int, optional
            Links of a chain, at most.
        """
        before: dict[int, int] = {start: start}
        groups: set[int] = set()
        queue = deque([(start, 0)])
        while queue:
            point, depth = queue.popleft()
            if point != start and self._are_apart(start, point):
                return _trace(before, point)
            if most is not None and depth >= most:
                continue
            for other in self._neighbours(point, groups):
                if other not in before:
                    before[other] = point
                    queue.append((other, depth + 1))
        return None

    def _neighbours(self, point: int, groups: set[int]) -> Iterator[int]:
        yield from self.pairs.get(point, ())
        links = self.statements.links
        for group in links.indices[links.indptr[point] : links.indptr[point + 1]].tolist():
            if group not in groups:
                groups.add(group)
                members = self.by_group
                yield from members.indices[
                    members.indptr[group] : members.indptr[group + 1]
                ].tolist()

    def _are_apart(self, a: int, b: int) -> bool:
        apart, known = self.statements.apart, self.statements.known
        mine = apart.indices[apart.indptr[a] : apart.indptr[a + 1]]
        yours = apart.indices[apart.indptr[b] : apart.indptr[b + 1]]
        differ = known[a] >= 0 and known[b] >= 0 and known[a] != known[b]
        return bool(differ or len(np.intersect1d(mine, yours)))


def _trace(before: dict[int, int], end: int) -> list[int]:
    chain = [end]
    while before[chain[-1]] != chain[-1]:
        chain.append(before[chain[-1]])
    return chain[::-1]
