"""Decoding: from edge scores to one parent for each node."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import SettingError
from hilander.graph.edges import logit_of
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.decoding.communities import (
    LIBRARIES,
    WeightedEdges,
    find_by_infomap,
    find_by_leiden,
    require,
)
from hilander.hierarchy.decoding.contraction import contract_edges, number_by_appearance
from hilander.hierarchy.decoding.parents import Parents, choose_parents, is_denser

Decoder = Literal["parents", "contract", "leiden", "infomap"]
DECODERS: tuple[str, ...] = get_args(Decoder)
# Weight that modularity expects between two typical nodes, as a share of the mean edge weight. With
# a fixed resolution it would fall as the graph grows, until a single edge joined two clusters.
_EXPECTED_SHARE = 0.2


def decode(
    graph: KnnGraph,
    scores: EdgeScores,
    p_tau: float,
    decoder: Decoder = "parents",
) -> Parents:
    """Choose a parent for each node.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph
    p_tau : float
        Edges of at least this linkage count for a merge.
    decoder : {"parents", "contract", "leiden", "infomap"}
        "parents" is the paper's: each node takes the most probable of its denser neighbours.
        "contract" merges two clusters where the summed log-odds of all edges between them are
        positive. "leiden" and "infomap" find communities of the edges above the threshold,
        weighted by their log-odds against it; "infomap" needs the extra `infomap`.

    Returns
    -------
    parents : Parents of n_nodes nodes, each at least as dense as its children
    """
    if decoder == "parents":
        return choose_parents(graph, scores, p_tau)
    if decoder not in DECODERS:
        raise SettingError(f"decoder={decoder!r} is not known; use one of {', '.join(DECODERS)}")
    weights = logit_of(scores.linkage) - logit_of(np.array(p_tau, dtype=np.float32))
    if decoder == "contract":
        labels = contract_edges(graph, weights)
    else:
        labels = find_communities(graph, weights, decoder)
    return attach_within(graph, scores, labels, p_tau)


def find_communities(
    graph: KnnGraph,
    weights: FloatArray,
    method: Literal["leiden", "infomap"],
) -> IntArray:
    """Communities of the edges with a positive weight.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    weights : ndarray of shape (n_nodes, k)
    method : {"leiden", "infomap"}

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
        Community of each node, numbered by first appearance.
    """
    edges = WeightedEdges.of_matrix(graph.neighbours, weights)
    if method == "infomap":
        return number_by_appearance(find_by_infomap(edges))
    return number_by_appearance(find_by_leiden(edges, choose_resolution(edges)))


def choose_resolution(edges: WeightedEdges) -> float:
    """The resolution at which modularity expects the same weight in a graph of any size.

    Modularity expects ``resolution * s_i * s_j / total`` between nodes of strengths s_i and s_j. At
    the mean strength of an edge's end this is set to a fixed share of the mean edge weight.
    """
    if not len(edges.low):
        return 1.0
    strength = edges.strength
    total = strength.sum()
    typical = (strength**2).sum() / total
    return float(_EXPECTED_SHARE * edges.weight.mean() * total / typical**2)


def check_decoder(decoder: str) -> None:
    """Refuse a decoder whose library is not installed, before any work is done."""
    if decoder in LIBRARIES:
        require(*LIBRARIES[decoder])


def attach_within(graph: KnnGraph, scores: EdgeScores, labels: IntArray, p_tau: float) -> Parents:
    """Give each cluster of a partition a tree: parents are denser members of the same cluster.

    The densest member is the peak. A member without a denser neighbour in its cluster is attached
    to the peak. Its linkage is that of its most probable edge inside the cluster: an edge to one of
    its neighbours or, where none of these is in the cluster, an edge that leads to it.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph
    labels : ndarray of shape (n_nodes,)
        Cluster of each node.
    p_tau : float
        The threshold that the clusters were found by.
    """
    nodes = np.arange(graph.n_nodes)
    inside = labels[graph.neighbours] == labels[:, None]
    candidate = inside & is_denser(graph, scores.density)
    best = np.where(candidate, scores.linkage, -np.inf).argmax(axis=1)
    found = candidate[nodes, best]

    by_density = np.lexsort((nodes, -scores.density, labels))
    first = np.r_[True, np.diff(labels[by_density]) != 0]
    peak_of = np.empty(int(labels.max()) + 1, dtype=np.int64)
    peak_of[labels[by_density[first]]] = by_density[first]

    index = np.where(found, graph.neighbours[nodes, best], peak_of[labels])
    strongest = np.where(inside, scores.linkage, 0).max(axis=1)
    sought = inside & ~inside.any(axis=1)[graph.neighbours]
    np.maximum.at(strongest, graph.neighbours[sought], scores.linkage[sought])
    linkage = np.where(found, scores.linkage[nodes, best], strongest).astype(np.float32)
    linkage[index == nodes] = np.nan
    return Parents(index, linkage, p_tau)
