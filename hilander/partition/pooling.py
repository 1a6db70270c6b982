"""Merge: the super-nodes that the trees of a level become (eq. 7)."""

from __future__ import annotations

import numpy as np

from hilander.data.arrays import IntArray
from hilander.graph import EdgeScores, KnnGraph, Links, Nodes, cross_links
from hilander.graph.edges import logit_of


def merge_nodes(
    nodes: Nodes, labels: IntArray, peaks: IntArray, links: Links | None = None
) -> Nodes:
    """Pool the nodes of each tree into one.

    Parameters
    ----------
    nodes : Nodes
    labels : ndarray of shape (n_nodes,)
        Tree of each node.
    peaks : ndarray of shape (n_trees,)
        Peak of each tree.
    links : Links of the trees, optional

    Returns
    -------
    merged : Nodes of length n_trees
    """
    from scipy.sparse import csr_matrix

    n_nodes, n_trees = len(nodes), len(peaks)
    by_tree = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_trees))])
    membership = csr_matrix((np.ones(n_nodes, np.float32), by_tree, starts), (n_trees, n_nodes))
    return Nodes(
        identity=nodes.identity[peaks],
        total=membership @ nodes.total,
        size=np.add.reduceat(nodes.size[by_tree], starts[:-1]),
        point=nodes.point[peaks],
        links=links,
    )


def link_trees(
    nodes: Nodes, graph: KnnGraph, scores: EdgeScores, labels: IntArray, n_trees: int
) -> Links:
    """Sum the edges of the points that cross between trees.

    Parameters
    ----------
    nodes : Nodes of the level
        With the links so far, unless they are points.
    graph, scores
        Of the level; used if the nodes are points.
    labels : ndarray of shape (n_nodes,)
        Tree of each node.
    n_trees : int
    """
    if nodes.links is not None:
        return nodes.links.merge(labels, n_trees)
    return cross_links(graph, scores.linkage, logit_of(scores.linkage), labels, n_trees)
