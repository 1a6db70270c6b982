"""Fragments: communities that Leiden cut out of a larger cluster, joined again.

Leiden finds communities in any graph. In a large homogeneous cluster they are arbitrary parts. Most
of the link weight of such a fragment leads out of it; that of a real community stays inside.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, diags
from scipy.sparse.csgraph import connected_components

from hilander.arrays.rows import IntArray
from hilander.hierarchy.decoding.communities import WeightedEdges

# Largest share of a community's link weight that may lead out of it. Fragments of a homogeneous
# cluster have 0.63 to 0.9, communities of real sets hardly ever more than 0.5.
MOST_LEAVING = 0.6


def join_fragments(edges: WeightedEdges, labels: IntArray) -> IntArray:
    """Join each fragment to the community that most of its weight leads to, until none is left.

    Parameters
    ----------
    edges : WeightedEdges of n_nodes nodes
    labels : ndarray of shape (n_nodes,)
        Community of each node, numbered from 0 by first appearance.

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
        Numbered from 0 by first appearance.
    """
    between = sum_between(edges, labels)
    while len(fragments := find_fragments(between)):
        number = _join_to_nearest(between, fragments)
        between, labels = _contract(between, number), number[labels]
    return labels


def sum_between(edges: WeightedEdges, labels: IntArray) -> csr_matrix:
    """Weight between each two communities, both ways, shape (n_communities, n_communities)."""
    n_communities = int(labels.max(initial=-1)) + 1
    ends = labels[edges.low], labels[edges.high]
    one_way = coo_matrix((edges.weight, ends), (n_communities, n_communities)).tocsr()
    return csr_matrix(one_way + one_way.T)


def find_fragments(between: csr_matrix) -> IntArray:
    """Indices of communities whose weight leads out by more than `MOST_LEAVING`, (n_fragments,)."""
    inside, total = between.diagonal(), np.asarray(between.sum(axis=1)).ravel()
    return np.flatnonzero(total - inside > MOST_LEAVING * total)


def _join_to_nearest(between: csr_matrix, fragments: IntArray) -> IntArray:
    """A new number for each community, shape (n_communities,), in the order of the lowest old one.

    At least one join is made.
    """
    others = between - diags(between.diagonal())
    nearest = np.asarray(csr_matrix(others)[fragments].argmax(axis=1)).ravel()
    joined = coo_matrix((np.ones(len(fragments)), (fragments, nearest)), between.shape)
    number: IntArray = connected_components(joined, directed=False)[1].astype(np.int64)
    return number


def _contract(between: csr_matrix, number: IntArray) -> csr_matrix:
    """The weights between communities after those of equal number were joined."""
    members = coo_matrix((np.ones(len(number)), (number, np.arange(len(number))))).tocsr()
    return csr_matrix(members @ between @ members.T)
