"""Constraints from the arguments of the estimator."""

from __future__ import annotations

from typing import Any

from hilander.arrays.rows import IntArray
from hilander.embeddings.partial_labels import encode_partly
from hilander.hierarchy.constraints.building import (
    Knowledge,
    build_constraints,
    join_constraints,
)
from hilander.hierarchy.constraints.constraints import Constraints, check_fits


def combine_given(
    X: Any,
    constraints: Constraints | None = None,
    must_link: Any = (),
    cannot_link: Any = (),
    known_labels: Any = None,
    ids: Any = None,
) -> Constraints | None:
    """All that the arguments demand as one value; None if that is nothing.

    Parameters
    ----------
    X : array-like of shape (n_points, n_features)
    constraints, must_link, cannot_link, known_labels, ids
        As for `hilander.HiLander.cluster`.
    """
    is_plain = known_labels is None and not len(must_link) and not len(cannot_link)
    if constraints is None and is_plain:
        return None
    n_points = X.shape[0] if getattr(X, "shape", None) else len(X)
    constraints = check_fits(constraints, n_points)
    codes = None if known_labels is None else encode_partly(known_labels, n_points)[0]
    if is_plain:
        return constraints
    knowledge = Knowledge(must_link, cannot_link, known_labels=codes)
    built = build_constraints(n_points, knowledge, ids)
    given = built if constraints is None else join_constraints([constraints, built])
    return check_fits(given, n_points)


def spread_labels(codes: IntArray, constraints: Constraints) -> IntArray:
    """Labels of partly labelled points, with those that must-links give to others.

    Parameters
    ----------
    codes : ndarray of shape (n_points,)
        Identity of each point, -1 where it is unknown.
    constraints : Constraints of n_points points

    Returns
    -------
    codes : ndarray of shape (n_points,)

    Raises
    ------
    LabelError
        When the constraints contradict the labels.
    """
    known = build_constraints(len(codes), Knowledge(known_labels=codes))
    joined = join_constraints([constraints, known])
    return joined.known[joined.component]
