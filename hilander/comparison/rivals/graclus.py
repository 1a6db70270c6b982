"""Graclus: normalised cuts by coarsening and refinement (Dhillon et al., 2007).

A low normalised cut is a high ``J = sum_c links(c, c) / degree(c)``, the objective of weighted
kernel k-means with degrees as weights. Pairs of nodes are merged until the wanted number of
clusters is left. Then the merges are undone level by level, and at each level nodes move to other
clusters as long as a move raises J.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Values = npt.NDArray[np.float64]

_MATCHING_ROUNDS = 8  # rounds of pairing nodes before the graph is coarsened
_REFINING_ROUNDS = 30  # most rounds of moving nodes at a level
_LEAST_GAIN = 1e-10  # of J; smaller gains are rounding
_LEAST_WEIGHT = 1e-6  # of an edge; every neighbour has a positive weight


def build_weights(problem: Problem, fitted: Any, params: Params) -> csr_matrix:
    """Symmetric weights of the k-NN graph: positive cosines, averaged over both directions."""
    matrix = problem.neighbours(params["k"]).to_csr().astype(np.float64)
    matrix.data = np.maximum(matrix.data, _LEAST_WEIGHT)
    return ((matrix + matrix.T) / 2).tocsr()


def cluster_by_cuts(problem: Problem, state: csr_matrix, params: Params) -> IntArray:
    """Partition the graph into n / mean_size clusters of low normalised cut.

    Parameters
    ----------
    problem : Problem
    state : csr_matrix of `build_weights`
    params : {"k": int, "mean_size": float}

    Returns
    -------
    labels : ndarray of shape (n_points,)
    """
    n_points = len(problem.features)
    return cut_graph(state, int(np.clip(round(n_points / params["mean_size"]), 1, n_points)))


def cut_graph(weights: csr_matrix, n_clusters: int) -> IntArray:
    """Partition of low normalised cut, over several levels.

    Parameters
    ----------
    weights : csr_matrix of shape (n_nodes, n_nodes), symmetric, none negative
    n_clusters : int
        Number of clusters. A graph of more components keeps one cluster for each component.

    Returns
    -------
    labels : ndarray of shape (n_nodes,), from 0
    """
    matrices, merges = [weights.tocsr()], []
    while matrices[-1].shape[0] > n_clusters:
        merged = match_nodes(matrices[-1], matrices[-1].shape[0] - n_clusters)
        if merged is None:
            break
        merges.append(merged)
        matrices.append(_coarsen(matrices[-1], merged))
    labels = np.arange(matrices[-1].shape[0])
    for matrix, merged in zip(reversed(matrices[:-1]), reversed(merges), strict=True):
        labels = refine_cut(matrix, labels[merged])
    numbered: IntArray = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return numbered


def match_nodes(weights: csr_matrix, most: int) -> IntArray | None:
    """Pair nodes along heavy edges, ``w_ij (1 / d_i + 1 / d_j)``, each in at most one pair.

    Parameters
    ----------
    weights : csr_matrix of shape (n_nodes, n_nodes)
    most : int
        Largest number of pairs; the heaviest are made first.

    Returns
    -------
    merged : ndarray of shape (n_nodes,), from 0, or None if there is no edge to merge
    """
    edges = weights.tocoo()
    off = edges.row != edges.col
    row, col = edges.row[off].astype(np.int64), edges.col[off].astype(np.int64)
    degree = np.asarray(weights.sum(axis=1)).ravel()
    heavy = edges.data[off] * (1 / degree[row] + 1 / degree[col])
    n_nodes = weights.shape[0]
    partner = np.full(n_nodes, -1, dtype=np.int64)
    pairs: list[tuple[float, int, int]] = []
    for _ in range(_MATCHING_ROUNDS):
        free = (partner[row] < 0) & (partner[col] < 0)
        row, col, heavy = row[free], col[free], heavy[free]
        if not len(row):
            break
        # The heaviest edge of each node; of equal ones the smaller pair, so that both ends agree.
        order = np.lexsort((np.maximum(row, col), np.minimum(row, col), -heavy, row))
        first = order[np.unique(row[order], return_index=True)[1]]
        choice = np.full(n_nodes, -1, dtype=np.int64)
        choice[row[first]] = col[first]
        low = np.flatnonzero((choice >= 0) & (choice[choice] == np.arange(n_nodes)))
        low = low[low < choice[low]]
        weight_of = np.zeros(n_nodes)
        weight_of[row[first]] = heavy[first]
        pairs += [(float(weight_of[i]), int(i), int(choice[i])) for i in low]
        partner[low], partner[choice[low]] = choice[low], low
    if not pairs:
        return None
    pairs.sort(key=lambda pair: (-pair[0], pair[1]))
    target = np.arange(n_nodes)
    for _, left, right in pairs[:most]:
        target[right] = left
    merged: IntArray = np.unique(target, return_inverse=True)[1].astype(np.int64)
    return merged


def _coarsen(weights: csr_matrix, merged: IntArray) -> csr_matrix:
    membership = _membership(merged)
    return (membership.T @ weights @ membership).tocsr()


def _membership(labels: IntArray) -> csr_matrix:
    from scipy.sparse import csr_matrix

    n_nodes = len(labels)
    ends = (np.arange(n_nodes), labels)
    return csr_matrix((np.ones(n_nodes), ends), (n_nodes, int(labels.max()) + 1))


class _ClusterTotals:
    """Degree and inner links of each cluster, and the links of each node to each cluster."""

    def __init__(self, weights: csr_matrix, labels: IntArray) -> None:
        self.of_node = weights @ _membership(labels)  # (n_nodes, n_clusters) links to clusters
        self.node_degree: Values = np.asarray(weights.sum(axis=1)).ravel()
        n_clusters = self.of_node.shape[1]
        self.degree: Values = np.bincount(labels, self.node_degree, n_clusters).astype(np.float64)
        own: Values = np.asarray(self.of_node[np.arange(len(labels)), labels]).ravel()
        self.own = own
        self.links: Values = np.bincount(labels, own, n_clusters).astype(np.float64)


def refine_cut(weights: csr_matrix, labels: IntArray) -> IntArray:
    """Move nodes between clusters as long as that raises J.

    Each round makes the moves of highest gain, with each cluster in at most one of them. So the
    gains add up, and J never falls.

    Parameters
    ----------
    weights : csr_matrix of shape (n_nodes, n_nodes)
    labels : ndarray of shape (n_nodes,)

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
    """
    labels = labels.copy()
    loops = weights.diagonal()
    for _ in range(_REFINING_ROUNDS):
        node, target, gain = _find_moves(weights, labels, loops)
        touched: set[int] = set()
        for at in np.argsort(-gain, kind="stable"):
            old, new = int(labels[node[at]]), int(target[at])
            if old not in touched and new not in touched:
                touched |= {old, new}
                labels[node[at]] = new
        if not touched:
            break
    return labels


def _find_moves(
    weights: csr_matrix, labels: IntArray, loops: Values
) -> tuple[IntArray, IntArray, Values]:
    """The best move of each node that has one: node, new cluster, gain of J."""
    totals = _ClusterTotals(weights, labels)
    near = totals.of_node.tocoo()
    other = near.col != labels[near.row]
    node, target = near.row[other].astype(np.int64), near.col[other].astype(np.int64)
    to_target: Values = near.data[other]
    size = np.bincount(labels, minlength=len(totals.degree))
    alone = size[labels[node]] == 1  # a cluster is never emptied
    node, target, to_target = node[~alone], target[~alone], to_target[~alone]
    source = labels[node]
    degree, loop = totals.node_degree[node], loops[node]
    left = totals.links[source] - 2 * totals.own[node] + loop
    joined = totals.links[target] + 2 * to_target + loop
    gain = (
        _ratio(left, totals.degree[source] - degree)
        + _ratio(joined, totals.degree[target] + degree)
        - _ratio(totals.links[source], totals.degree[source])
        - _ratio(totals.links[target], totals.degree[target])
    )
    better = np.flatnonzero(gain > _LEAST_GAIN)
    best = better[np.lexsort((-gain[better], node[better]))]
    best = best[np.unique(node[best], return_index=True)[1]]
    return node[best], target[best], gain[best]


def _ratio(links: Values, degree: Values) -> Values:
    return np.divide(links, degree, out=np.zeros_like(links), where=degree > 1e-12)


GRACLUS = Rival(
    name="Graclus",
    family="paper",
    cluster=cluster_by_cuts,
    axes=(
        Axis("k", (5, 10)),
        Axis("mean_size", (2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 90.0), refine=True),
    ),
    start=build_weights,
    started_by=("k",),
    memory=lambda n, d, k: 4 * n * d + 400 * n * min(k, 10),
)
