"""Build constraints from pairs, columns and labels, and refuse contradictions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, csr_matrix, hstack
from scipy.sparse.csgraph import connected_components

from hilander.arrays.rows import IntArray
from hilander.errors import LabelError
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.hierarchy.constraints.contradictions import Statements, refuse_contradictions
from hilander.hierarchy.decoding.contraction import number_by_appearance


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a user says about the points.

    Parameters
    ----------
    must_link, cannot_link : sequence of pairs
        Ids, or row numbers where there are no ids.
    together, apart : sequence of array-like of shape (n_points,)
        Columns of int codes: rows that share a code of a `together` column are of one identity,
        those that share one of an `apart` column are of different ones. -1 says nothing.
    known_labels : array-like of shape (n_points,), optional
        int codes; -1 where the label is unknown.
    """

    must_link: Iterable[Any] = ()
    cannot_link: Iterable[Any] = ()
    together: Sequence[npt.ArrayLike] = ()
    apart: Sequence[npt.ArrayLike] = ()
    known_labels: npt.ArrayLike | None = None


def build_constraints(
    n_points: int, knowledge: Knowledge, ids: npt.ArrayLike | None = None
) -> Constraints:
    """Turn what a user says into constraints.

    Parameters
    ----------
    n_points : int
    knowledge : Knowledge
    ids : array-like of shape (n_points,), optional
        Names of the points in the pairs, compared as text.

    Returns
    -------
    constraints : Constraints of n_points points

    Raises
    ------
    LabelError
        When a pair names an unknown point, or statements contradict each other. The message has
        the shortest chain of statements that does.
    """
    names = None if ids is None else [str(one) for one in np.asarray(ids).tolist()]
    if names is not None and len(names) != n_points:
        raise LabelError(f"got {len(names)} ids for {n_points} points, expected one each")
    must = read_pairs(knowledge.must_link, "must_link", n_points, names)
    cannot = read_pairs(knowledge.cannot_link, "cannot_link", n_points, names)
    columns = [_check_column(one, n_points) for one in knowledge.together]
    apart = [_check_column(one, n_points) for one in knowledge.apart]
    known = np.full(n_points, -1)
    if knowledge.known_labels is not None:
        known = _check_column(knowledge.known_labels, n_points)
    links = stack_groups([_membership(one, n_points) for one in [*columns, known]], n_points)
    memberships = [_membership(one, n_points) for one in apart]
    groups = stack_groups([_pair_groups(cannot, n_points), *memberships], n_points)
    statements = Statements(must, links, groups, known, names)
    constraints = _combine(statements)
    refuse_contradictions(constraints, statements, cannot)
    return constraints


def join_constraints(
    parts: Sequence[Constraints], names: Sequence[str] | None = None
) -> Constraints:
    """All that several constraints of the same points say.

    Parameters
    ----------
    parts : sequence of Constraints of n_points points
        At least one. Of the known labels, equal numbers mean equal labels.
    names : sequence of str, optional
        Ids of the points, for errors.

    Raises
    ------
    LabelError
        When they contradict each other.
    """
    n_points = parts[0].n_points
    of_points = np.stack([one.known[one.component] for one in parts])
    known = of_points.max(axis=0)
    differ = np.flatnonzero(((of_points >= 0) & (of_points != known)).any(axis=0))
    if len(differ):
        row = int(differ[0])
        name = f"row {row}" if names is None else names[row]
        raise LabelError(
            f"what is known contradicts itself: {name} has two known labels; drop one of them"
        )
    same = [_membership(one, n_points) for one in (*(one.component for one in parts), known)]
    links = stack_groups(same, n_points)
    groups = stack_groups([_of_first_points(one) for one in parts], n_points)
    none = np.empty((0, 2), dtype=np.int64)
    statements = Statements(none, links, groups, known, names)
    combined = _combine(statements)
    refuse_contradictions(combined, statements, none)
    return Constraints(combined.component, _drop_repeated(combined.apart), combined.known)


def _drop_repeated(groups: csr_matrix) -> csr_matrix:
    """The groups, (n_components, n_groups), without those of equal members."""
    by_group = groups.tocsc()
    by_group.sort_indices()
    starts, members = by_group.indptr, by_group.indices
    first: dict[bytes, int] = {}
    for number in range(by_group.shape[1]):
        first.setdefault(members[starts[number] : starts[number + 1]].tobytes(), number)
    return csr_matrix(by_group[:, sorted(first.values())])


def _of_first_points(constraints: Constraints) -> csr_matrix:
    """The apart groups, each given to the first point of its component, (n_points, n_groups)."""
    first = np.unique(constraints.component, return_index=True)[1]
    entries = constraints.apart.tocoo()
    shape = constraints.n_points, constraints.apart.shape[1]
    return csr_matrix((entries.data, (first[entries.row], entries.col)), shape)


def _combine(statements: Statements) -> Constraints:
    component = find_components(statements.must, statements.links)
    of_points = Constraints(np.arange(len(component)), statements.apart, statements.known)
    contracted = of_points.contract(component, int(component.max(initial=-1)) + 1)
    return Constraints(component, contracted.apart, contracted.known)


def read_pairs(
    pairs: Iterable[Any], name: str, n_points: int, names: Sequence[str] | None
) -> IntArray:
    """Pairs of ids or row numbers as pairs of rows, shape (n_pairs, 2).

    Parameters
    ----------
    pairs : iterable of pairs
    name : str
        For errors.
    n_points : int
    names : sequence of str, optional
        Ids of the points; without them pairs have row numbers.
    """
    given = [tuple(pair) for pair in (pairs.tolist() if isinstance(pairs, np.ndarray) else pairs)]
    wrong = next((pair for pair in given if len(pair) != 2), None)
    if wrong is not None:
        raise LabelError(f"{name} holds {wrong!r}, expected pairs of two points")
    if not given:
        return np.empty((0, 2), dtype=np.int64)
    if names is None:
        return _row_pairs(given, name, n_points)
    row_of: dict[str, int] = {}
    for row, key in enumerate(names):
        if row_of.setdefault(key, row) != row:
            row_of[key] = -1
    rows = [[_find_row(row_of, end, name) for end in pair] for pair in given]
    return np.array(rows, dtype=np.int64)


def _find_row(row_of: dict[str, int], end: Any, name: str) -> int:
    found = row_of.get(str(end))
    if found is None:
        raise LabelError(
            f"{name} names the id {end!r}, which no point has; give ids of the points, or drop "
            "that pair"
        )
    if found < 0:
        raise LabelError(
            f"{name} names the id {end!r}, which several points have; give each point its own id"
        )
    return found


def _row_pairs(given: list[tuple[Any, ...]], name: str, n_points: int) -> IntArray:
    for pair in given:
        for end in pair:
            is_row = isinstance(end, int | np.integer) and not isinstance(end, bool)
            if not is_row or not 0 <= end < n_points:
                raise LabelError(
                    f"{name} holds {end!r}, expected a row number from 0 to {n_points - 1}; "
                    "to name points by id, give their ids too"
                )
    return np.array(given, dtype=np.int64)


def find_components(must: IntArray, links: csr_matrix) -> IntArray:
    """Must-link component of each point, numbered by first appearance, shape (n_points,).

    Parameters
    ----------
    must : ndarray of shape (n_pairs, 2)
    links : csr_matrix of shape (n_points, n_groups)
        Groups whose points are all together.
    """
    n_points, n_groups = links.shape
    n_nodes = n_points + n_groups  # a group is a node that its points are linked to
    entries = links.tocoo()
    ends = (
        np.concatenate([must[:, 0], entries.row]),
        np.concatenate([must[:, 1], n_points + entries.col]),
    )
    joins = coo_matrix((np.ones(len(ends[0]), dtype=np.int8), ends), (n_nodes, n_nodes))
    found = connected_components(joins, directed=False)[1][:n_points]
    return number_by_appearance(found)


def _check_column(values: npt.ArrayLike, n_points: int) -> IntArray:
    column = np.asarray(values)
    if column.shape != (n_points,) or column.dtype.kind not in "iu":
        raise LabelError(
            f"a column has shape {column.shape} and dtype {column.dtype}, expected ints of shape "
            f"({n_points},); give one number for each point and -1 for none"
        )
    return column.astype(np.int64)


def _membership(column: IntArray, n_points: int) -> csr_matrix:
    """1 where a point has a value of a column, shape (n_points, n_values)."""
    rows = np.flatnonzero(column >= 0)
    values, number = np.unique(column[rows], return_inverse=True)
    ones = np.ones(len(rows), dtype=np.int8)
    return csr_matrix((ones, (rows, number)), (n_points, len(values)))


def _pair_groups(pairs: IntArray, n_points: int) -> csr_matrix:
    """An apart group for each pair, shape (n_points, n_pairs)."""
    distinct = np.unique(np.sort(pairs, axis=1), axis=0)
    distinct = distinct[distinct[:, 0] != distinct[:, 1]]
    number = np.repeat(np.arange(len(distinct)), 2)
    ones = np.ones(len(number), dtype=np.int8)
    return csr_matrix((ones, (distinct.ravel(), number)), (n_points, len(distinct)))


def stack_groups(memberships: Sequence[csr_matrix], n_points: int) -> csr_matrix:
    """Several matrices of groups side by side; groups of fewer than two points are dropped.

    Parameters
    ----------
    memberships : sequence of csr_matrix of shape (n_points, n_groups)
    n_points : int
    """
    if not memberships:
        return csr_matrix((n_points, 0), dtype=np.int8)
    whole = hstack(memberships, format="csc", dtype=np.int8)
    return csr_matrix(whole[:, np.diff(whole.indptr) > 1])
