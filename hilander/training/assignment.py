"""Assignment: the probable clusters of new rows, without changing the hierarchy.

Each row is inserted into the graph by itself, as if it were the only new point: it gets a list, and
enters the lists of the points that are near. Its edges are scored in the part of the graph around
it, see `hilander.hierarchy.local_graph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import ModelError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.hierarchy.basis import Basis, SetBase
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.local_graph import cut_graph
from hilander.hierarchy.membership import Membership, check_top, summarise_links
from hilander.hierarchy.nearest import Nearest
from hilander.hierarchy.scorers import MeasuringScorer
from hilander.training.methods import find_method
from hilander.training.model import Model

_BLOCK = 64  # rows that are scored at a time, each with some hundred points around it


def assign_points(
    model: Model,
    points: npt.NDArray[Any],
    hierarchy: Hierarchy,
    top: int,
    method: str,
    device: str = "auto",
) -> Membership:
    """The most probable clusters of rows.

    Parameters
    ----------
    model : Model
        The one that made the hierarchy.
    points : ndarray of shape (n_rows, dim)
        Embeddings before preparation.
    hierarchy : Hierarchy with a basis
    top : int
        Number of clusters to give.
    method : str
        Name of the model's method.
    device : str

    Returns
    -------
    membership : Membership of n_rows rows
    """
    check_top(top)
    basis = hierarchy.basis
    score = freeze_scorer(model, basis.base, method, device)
    prepared = basis.base.preparation.apply(points)
    search = hierarchy.search
    found = np.empty((len(points), basis.k), dtype=np.int64)
    linkage = np.empty((len(points), basis.k), dtype=np.float32)
    for start in range(0, len(points), _BLOCK):
        rows = slice(start, start + _BLOCK)
        near = [search.find(row) for row in prepared[rows]]
        found[rows] = [one.neighbours for one in near]
        linkage[rows] = _score_apart(basis, prepared[rows], near, score)
    return summarise_links(hierarchy.labels(-1)[found], linkage, hierarchy.cluster_ids, top)


def freeze_scorer(model: Model, base: SetBase, method: str, device: str) -> MeasuringScorer:
    """The scorer of a model, with the measures of a set that it clustered before."""
    score = find_method(method).make_scorer(model.network, base.frozen_rules, device)
    try:
        score.bind_measures(base.measures)
    except KeyError as error:
        raise ModelError(
            f"the hierarchy has no measure {error}, it was made by a model of another method; "
            "use the model that made it"
        ) from None
    return score


class _Part(NamedTuple):
    """The surroundings of one row: lists with local numbers, the row itself last."""

    neighbours: IntArray
    affinity: FloatArray
    features: FloatArray
    place: int  # of the row


def _score_apart(
    basis: Basis, rows: FloatArray, near: Sequence[Nearest], score: MeasuringScorer
) -> FloatArray:
    """Linkage of the edges of rows that do not know of each other, shape (n_rows, k)."""
    parts = [_cut_around(basis, row, one) for row, one in zip(rows, near, strict=True)]
    starts = np.cumsum([0, *(len(part.features) for part in parts)])
    graph = KnnGraph(
        np.concatenate([part.neighbours + at for part, at in zip(parts, starts, strict=False)]),
        np.concatenate([part.affinity for part in parts]),
    )
    nodes = start_nodes(np.concatenate([part.features for part in parts]))
    places = [at + part.place for part, at in zip(parts, starts, strict=False)]
    return score(graph, nodes).linkage[places]


def _cut_around(basis: Basis, row: FloatArray, near: Nearest) -> _Part:
    """The part of the graph around a row that is inserted into it."""
    n_points = len(basis.features)
    core = np.sort(near.neighbours)
    sources = [basis.sources.of(core), near.listing]
    members = np.unique(np.concatenate([core, basis.neighbours[core].ravel(), *sources]))
    neighbours, affinity = basis.neighbours[members], basis.affinity[members]
    at = np.searchsorted(members, near.listing)
    neighbours[at], affinity[at] = _insert(neighbours[at], affinity[at], n_points, near)
    members = np.append(members, n_points)
    part = cut_graph(
        members,
        np.concatenate([neighbours, near.neighbours[None]]),
        np.concatenate([affinity, near.affinity[None]]),
    )
    features = np.concatenate([basis.features[members[:-1]], row[None]])
    return _Part(part.graph.neighbours, part.graph.affinity, part.pad(features), len(members) - 1)


def _insert(
    neighbours: IntArray, affinity: FloatArray, row: int, near: Nearest
) -> tuple[IntArray, FloatArray]:
    """Lists with one more row, which takes the place of the last neighbour of each."""
    neighbours, affinity = neighbours.copy(), affinity.copy()
    neighbours[:, -1], affinity[:, -1] = row, near.listing_affinity
    order = np.argsort(-affinity, axis=1, kind="stable")
    return np.take_along_axis(neighbours, order, 1), np.take_along_axis(affinity, order, 1)
