"""L-GCN, GCN-V and GCN-V+E: the supervised rivals of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.decoding.parents import choose_parents
from hilander.hierarchy.decoding.trees import label_trees

if TYPE_CHECKING:
    from hilander.comparison.networks.gcn_v import GcnV
    from hilander.comparison.networks.subgraphs import SubgraphNetwork

_MOST_POINTS = 900  # points of an L-GCN cluster before it is cut again; the authors' value
_STEP = 0.6  # share of the way to 1 by which the threshold then rises; the authors' value
_MOST_CUTS = 30  # rounds of cutting; the threshold is 1 to rounding before that
_L_GCN_EPOCHS, _GCN_V_EPOCHS, _GCN_E_EPOCHS = 6, 40, 4  # few, so that a comparison ends soon
_SUBGRAPH_BATCH, _SUBGRAPH_RATE = 64, 2e-3  # sub-graphs in a batch, learning rate


@dataclass(frozen=True, eq=False)
class Connected:
    """A graph with a linkage for each edge and, for GCN-V, a confidence for each vertex."""

    graph: KnnGraph
    linkage: FloatArray
    confidence: FloatArray


def fit_l_gcn(problem: Problem, labels: IntArray, params: Params) -> SubgraphNetwork:
    """Train L-GCN."""
    from hilander.comparison.networks.l_gcn import PivotShape, train_l_gcn
    from hilander.comparison.networks.training import GcnSettings

    settings = GcnSettings(
        _L_GCN_EPOCHS, _SUBGRAPH_BATCH, learning_rate=_SUBGRAPH_RATE, seed=problem.seed
    )
    return train_l_gcn(problem.features, problem.graph, labels, settings, PivotShape())


def score_l_gcn(problem: Problem, fitted: SubgraphNetwork, params: Params) -> Connected:
    """Linkage of every point with its nearest neighbours."""
    from hilander.comparison.networks.l_gcn import PivotShape, predict_pivot_linkage

    linkage = predict_pivot_linkage(fitted, problem.features, problem.graph, PivotShape())
    graph = problem.neighbours(linkage.shape[1])
    return Connected(graph, linkage, np.zeros(len(linkage), np.float32))


def merge_links(problem: Problem, state: Connected, params: Params) -> IntArray:
    """Join points whose linkage reaches the threshold, and cut components that are too large."""
    return propagate_links(state.graph.neighbours, state.linkage, params["linkage"])


def propagate_links(
    neighbours: IntArray, linkage: FloatArray, threshold: float, most: int = _MOST_POINTS
) -> IntArray:
    """Connected components of edges above a threshold, which is raised for large components.

    An edge that is in both directions has the mean of the two linkages.

    Parameters
    ----------
    neighbours, linkage : ndarray of shape (n_nodes, k)
    threshold : float
    most : int
        Largest component, in points. A larger one is cut at ``t + (1 - t) 0.6``.

    Returns
    -------
    labels : ndarray of shape (n_nodes,), from 0
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n_nodes, k = neighbours.shape
    rows = np.repeat(np.arange(n_nodes), k)
    low, high = np.minimum(rows, neighbours.ravel()), np.maximum(rows, neighbours.ravel())
    pairs, place = np.unique(low * n_nodes + high, return_inverse=True)
    score = np.bincount(place, linkage.ravel()) / np.bincount(place)
    low, high = pairs // n_nodes, pairs % n_nodes
    labels = np.zeros(n_nodes, dtype=np.int64)
    open_nodes = np.ones(n_nodes, dtype=bool)
    for _ in range(_MOST_CUTS):
        kept = (score >= threshold) & open_nodes[low] & open_nodes[high]
        ends = (low[kept], high[kept])
        edges = coo_matrix((np.ones(kept.sum(), dtype=np.int8), ends), (n_nodes, n_nodes))
        part = connected_components(edges, directed=False)[1]
        labels[open_nodes] = part[open_nodes] + labels.max() + 1
        sizes = np.bincount(part[open_nodes], minlength=part.max() + 1)
        open_nodes &= sizes[part] > most
        threshold += (1 - threshold) * _STEP
        if not open_nodes.any() or threshold > 1 - 1e-6:
            break
    numbered: IntArray = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return numbered


def fit_gcn_v(problem: Problem, labels: IntArray, params: Params) -> GcnV:
    """Train GCN-V."""
    from hilander.comparison.networks.gcn_v import train_gcn_v
    from hilander.comparison.networks.training import GcnSettings

    graph = problem.neighbours(params["k"])
    settings = GcnSettings(_GCN_V_EPOCHS, seed=problem.seed)
    return train_gcn_v(problem.features, graph, labels, settings)


def score_gcn_v(problem: Problem, fitted: GcnV, params: Params) -> Connected:
    """Confidence of every vertex; an edge's linkage is its cosine."""
    from hilander.comparison.networks.gcn_v import estimate_confidence

    graph = problem.neighbours(params["k"])
    confidence = estimate_confidence(fitted, problem.features, graph)
    return Connected(graph, np.clip(graph.affinity, 0, 1), confidence)


def follow_confidence(problem: Problem, state: Connected, params: Params) -> IntArray:
    """Link each vertex to its most connected neighbour of higher confidence; trees are clusters.

    Parameters
    ----------
    problem : Problem
    state : Connected
    params : {"linkage": float}
        Lowest linkage of an edge: a cosine for GCN-V, a connectivity for GCN-V+E.
    """
    scores = EdgeScores(state.linkage, state.confidence)
    parents = choose_parents(state.graph, scores, params["linkage"], strict=True)
    return label_trees(parents.index)[0]


def fit_gcn_ve(problem: Problem, labels: IntArray, params: Params) -> tuple[Any, Any]:
    """Train GCN-V, then GCN-E on the candidates by the confidence of GCN-V."""
    from hilander.comparison.networks.gcn_e import train_gcn_e
    from hilander.comparison.networks.gcn_v import estimate_confidence
    from hilander.comparison.networks.training import GcnSettings

    graph = problem.neighbours(params["k"])
    vertex = fit_gcn_v(problem, labels, params)
    confidence = estimate_confidence(vertex, problem.features, graph)
    settings = GcnSettings(
        _GCN_E_EPOCHS, _SUBGRAPH_BATCH, learning_rate=_SUBGRAPH_RATE, seed=problem.seed
    )
    return vertex, train_gcn_e(problem.features, graph, labels, confidence, settings)


def score_gcn_ve(problem: Problem, fitted: tuple[Any, Any], params: Params) -> Connected:
    """Confidence of every vertex, and its connectivity with its candidates."""
    from hilander.comparison.networks.gcn_e import predict_candidate_linkage
    from hilander.comparison.networks.gcn_v import estimate_confidence

    vertex, edge = fitted
    graph = problem.neighbours(params["k"])
    confidence = estimate_confidence(vertex, problem.features, graph)
    linkage = predict_candidate_linkage(edge, problem.features, graph, confidence)
    return Connected(graph, linkage, confidence)


_THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

L_GCN = Rival(
    name="L-GCN",
    family="paper",
    cluster=merge_links,
    axes=(Axis("linkage", (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98), refine=True),),
    fit=fit_l_gcn,
    start=score_l_gcn,
    needs_labels=True,
    varies=True,
    memory=lambda n, d, k: 8 * n * d + 400 * n + 200_000_000,
    package="hilander",
)
GCN_V = Rival(
    name="GCN-V",
    family="paper",
    cluster=follow_confidence,
    axes=(Axis("k", (10, 40)), Axis("linkage", _THRESHOLDS, refine=True)),
    fit=fit_gcn_v,
    start=score_gcn_v,
    fitted_by=("k",),
    needs_labels=True,
    varies=True,
    memory=lambda n, d, k: 8 * n * d + 24 * n * k + 4_000 * 8_192,
    package="hilander",
)
GCN_VE = Rival(
    name="GCN-V+E",
    family="paper",
    cluster=follow_confidence,
    axes=(
        Axis("k", (10, 40)),
        Axis("linkage", (0.1, 0.3, 0.5, 0.65, 0.75, 0.85, 0.92, 0.97), refine=True),
    ),
    fit=fit_gcn_ve,
    start=score_gcn_ve,
    fitted_by=("k",),
    needs_labels=True,
    varies=True,
    memory=lambda n, d, k: 8 * n * d + 24 * n * k + 300_000_000,
    package="hilander",
)
