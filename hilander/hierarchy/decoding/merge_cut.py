"""Where to stop merging in a set of an unknown kind.

The probability of a merge is that of a model. In a set of another kind than it was trained on, most
are too low or too high: text that one person wrote, or letters of one alphabet, are alike in other
ways than faces. So the threshold is chosen for each set, by what does not depend on it: clusters
are compact and apart from their neighbours in the embedding, and few likely links leave them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.nodes import Nodes
from hilander.hierarchy.decoding.contraction import number_by_appearance
from hilander.hierarchy.decoding.link_merges import MergeEstimate, agglomerate

# Thresholds to try: about half a unit of log-odds apart.
CUTS = (0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
# Where the worth hardly differs, the threshold stays near this one: the log of the worth is lowered
# by this much for a squared unit of log-odds.
_TYPICAL, _PULL = 0.7, 0.003
# Up to so many points the typical threshold is used: most clusters are too small to judge.
_SMALL_SET = 1000
# Nodes whose silhouettes are measured: every second, third … of a larger level.
_MOST_NODES = 20_000
_LEAST_LENGTH = 1e-6  # divisor of a vector of length 0
_LEAST_GAP = 1e-3  # divisor of the silhouette where two cosines are 1


def choose_cut(nodes: Nodes, pairs: LinkedPairs, estimate: MergeEstimate) -> tuple[IntArray, float]:
    """Clusters at the threshold at which they are most compact and best separated.

    The worth of a threshold is the mean silhouette of the points times the modularity of the links.
    A small set has the typical threshold.

    Parameters
    ----------
    nodes : Nodes of n_nodes nodes
    pairs : LinkedPairs of the same nodes
    estimate : callable pairs -> probability

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
        Numbered by first appearance.
    threshold : float
    """
    cuts = CUTS if nodes.size.sum() > _SMALL_SET else (_TYPICAL,)
    best, chosen, threshold = -np.inf, np.arange(len(nodes)), cuts[0]
    for cut, (merged, labels) in zip(cuts, agglomerate(pairs, estimate, cuts), strict=True):
        worth = max(mean_silhouette(nodes, pairs, labels), 0.0) * measure_modularity(merged)
        worth *= float(np.exp(-_PULL * (logit(cut) - logit(_TYPICAL)) ** 2))
        if worth > best:
            best, chosen, threshold = worth, labels, cut
    return number_by_appearance(chosen), threshold


def measure_modularity(pairs: LinkedPairs) -> float:
    """Linkage inside clusters as a share of all, less what is expected by chance, below 1."""
    inside = pairs.inside[1]
    total = inside.sum() + pairs.total.sum()
    if total == 0:
        return 0.0
    share = (2 * inside + pairs.leaving) / (2 * total)
    return float(inside.sum() / total - (share**2).sum())


def mean_silhouette(nodes: Nodes, pairs: LinkedPairs, labels: IntArray) -> float:
    """Mean silhouette of the points by the centres of their clusters, in [-1, 1].

    A point's cosine with the centre of its own cluster (without the point) is compared with that
    of the nearest linked cluster. The points of a node are taken together. A point that is alone
    has the mean cosine of all others with their centre in place of its own: it had better be alone
    where the nearest cluster is farther than that. Of a large level, some nodes stand for all.

    Parameters
    ----------
    nodes : Nodes of n_nodes nodes
    pairs : LinkedPairs of the same nodes
    labels : ndarray of shape (n_nodes,)
        Cluster of each node.
    """
    n_clusters = int(labels.max()) + 1
    sums = np.zeros((n_clusters, nodes.total.shape[1]), dtype=np.float32)
    np.add.at(sums, labels, nodes.total)
    length = np.maximum(np.linalg.norm(sums, axis=1), _LEAST_LENGTH)
    rows = np.arange(0, len(nodes), -(-len(nodes) // _MOST_NODES))
    size, at = nodes.size[rows], labels[rows]
    average: FloatArray = np.divide(nodes.total[rows], size[:, None], dtype=np.float32)
    # Mean of x · S over the points x of a node, for the sum S of its cluster.
    along = np.einsum("nd,nd->n", average, sums[at])
    own = (along - 1) / np.sqrt(np.maximum(length[at] ** 2 - 2 * along + 1, _LEAST_LENGTH))
    other = _nearest_other(rows, average, sums / length[:, None], pairs, labels)
    alone = np.bincount(labels, nodes.size)[at] == 1
    if alone.all():
        return 0.0
    own = np.where(alone, np.average(own[~alone], weights=size[~alone]), own)
    silhouette = (own - other) / np.maximum(1 - np.minimum(own, other), _LEAST_GAP)
    return float(np.average(np.clip(silhouette, -1, 1), weights=size))


def _nearest_other(
    rows: IntArray,
    average: FloatArray,
    centres: FloatArray,
    pairs: LinkedPairs,
    labels: IntArray,
) -> npt.NDArray[np.float64]:
    """Highest cosine of some nodes with the centre of a linked cluster, at least 0, (n_rows,)."""
    nearest, place = np.zeros(len(rows)), np.full(len(labels), -1)
    place[rows] = np.arange(len(rows))
    apart = labels[pairs.low] != labels[pairs.high]
    for here, there in ((pairs.low, pairs.high), (pairs.high, pairs.low)):
        wanted = apart & (place[here] >= 0)
        row, cluster = place[here[wanted]], labels[there[wanted]]
        # A node has several links to a cluster; one cosine is enough.
        row, cluster = np.divmod(np.unique(row * len(centres) + cluster), len(centres))
        np.maximum.at(nearest, row, np.einsum("nd,nd->n", average[row], centres[cluster]))
    return nearest
