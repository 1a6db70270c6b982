"""Decoding, behind one signature: from edge scores to one parent for each node."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from hilander.data.arrays import IntArray
from hilander.errors import SettingError
from hilander.graph import EdgeScores, KnnGraph
from hilander.graph.edges import logit_of
from hilander.partition.contraction import contract_edges
from hilander.partition.parents import Parents, choose_parents, is_denser

Decoder = Literal["parents", "contract"]
DECODERS: tuple[str, ...] = get_args(Decoder)


def decode(
    graph: KnnGraph, scores: EdgeScores, p_tau: float, decoder: Decoder = "parents"
) -> Parents:
    """Choose a parent for each node.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph
    p_tau : float
        The linkage from which on an edge speaks for a merge.
    decoder : {"parents", "contract"}
        "parents" is the paper's: each node takes the most probable of its denser neighbours.
        "contract" merges only where all edges between two clusters together speak for it.

    Returns
    -------
    parents : Parents of n_nodes nodes, each at least as dense as its children
    """
    if decoder == "parents":
        return choose_parents(graph, scores, p_tau)
    if decoder == "contract":
        against = logit_of(np.array(p_tau, dtype=np.float32))
        return attach_within(
            graph, scores, contract_edges(graph, logit_of(scores.linkage) - against)
        )
    raise SettingError(f"decoder={decoder!r} is not known; use one of {', '.join(DECODERS)}")


def attach_within(graph: KnnGraph, scores: EdgeScores, labels: IntArray) -> Parents:
    """Give each cluster of a partition a tree: parents are denser members of the same cluster.

    The densest member is the peak. Another member with no denser neighbour of its own cluster
    hangs from the peak directly, by the most probable of its edges within the cluster.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of the same graph
    labels : ndarray of shape (n_nodes,)
        Cluster of each node.
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
    linkage = np.where(found, scores.linkage[nodes, best], strongest).astype(np.float32)
    linkage[index == nodes] = np.nan
    return Parents(index, linkage)
