"""Where a clustering may be wrong: uncertain merges, and pairs of clusters that may be one.

The explorer's review queue and `hilander doubts` use this ranking.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, row_blocks
from hilander.errors import SettingError
from hilander.hierarchy.hierarchy import Hierarchy

MERGE, PAIR = "merge", "pair"
MOST_DOUBTS = 2000
# Merges of at least this linkage are not listed.
_CERTAIN = 0.98


@dataclass(frozen=True)
class Doubt:
    """Two sides that may be one identity or two.

    Parameters
    ----------
    kind : {"merge", "pair"}
        A merge that was made and may be wrong, or two clusters that may be one identity.
    a, b : int
        Points that represent the two sides; in a merge, b was attached to a.
    level : int
        The level of the merge, or of the two clusters.
    nodes : tuple of int
        The two nodes of the level (merge), or the two clusters (pair).
    linkage : float, in [0, 1]
        Linkage of the merge, or summed linkage between the two clusters, see `ClusterPairs`.
    weight : float
        Rank, larger first: uncertainty times the logarithm of the size of the smaller side.
    """

    kind: str
    a: int
    b: int
    level: int
    nodes: tuple[int, int]
    linkage: float
    weight: float

    @property
    def key(self) -> str:
        """Identifies the doubt within its run."""
        first = self.level if self.kind == MERGE else self.nodes[0]
        return f"{self.kind}-{first}-{self.nodes[1]}"


@dataclass(frozen=True, eq=False)
class ClusterPairs:
    """Pairs of clusters that edges run between, the strongest first.

    Parameters
    ----------
    a, b : ndarray of shape (n_pairs,)
        Clusters, a < b.
    strength : ndarray of shape (n_pairs,), float32, in [0, 1]
        Summed linkage of the edges between the two, divided by the number of edges of the smaller.
    strongest : ndarray of shape (n_pairs,), float32, in [0, 1]
        Largest linkage of an edge between the two.
    """

    a: IntArray
    b: IntArray
    strength: FloatArray
    strongest: FloatArray


def find_doubtful_merges(hierarchy: Hierarchy, limit: int = MOST_DOUBTS) -> list[Doubt]:
    """Rank the merges of clusters by uncertainty and by the size of the smaller side.

    With a single level the merges are those of points.

    Parameters
    ----------
    hierarchy : Hierarchy
    limit : int
        Most merges to give.

    Returns
    -------
    merges : list of Doubt, the most doubtful first
    """
    found: list[Doubt] = []
    for level in range(1 if hierarchy.n_levels > 1 else 0, hierarchy.n_levels):
        chosen = hierarchy.levels[level]
        nodes = np.flatnonzero(chosen.linkage < _CERTAIN)  # NaN, a peak, is never below
        sizes, peaks = _sizes_and_peaks(hierarchy, level)
        smaller = np.minimum(sizes[nodes], sizes[chosen.parent[nodes]])
        weight = (1 - chosen.linkage[nodes]) * np.log2(1.0 + smaller)
        for place in np.argsort(-weight, kind="stable")[:limit].tolist():
            found.append(
                _merge_doubt(hierarchy, level, int(nodes[place]), peaks, float(weight[place]))
            )
    found.sort(key=lambda doubt: -doubt.weight)
    return found[:limit]


def doubt_merge(hierarchy: Hierarchy, level: int, node: int) -> Doubt:
    """The doubt about one merge; its weight is 0, for it is not ranked."""
    known = 0 <= level < hierarchy.n_levels and 0 <= node < hierarchy.levels[level].n_nodes
    if not known or np.isnan(hierarchy.levels[level].linkage[node]):
        raise SettingError(f"there is no merge of node {node} at level {level}; reload the queue")
    return _merge_doubt(hierarchy, level, node, _sizes_and_peaks(hierarchy, level)[1], 0.0)


def _merge_doubt(
    hierarchy: Hierarchy, level: int, node: int, peaks: IntArray, weight: float
) -> Doubt:
    chosen = hierarchy.levels[level]
    parent, linkage = int(chosen.parent[node]), float(chosen.linkage[node])
    ends = int(peaks[parent]), int(peaks[node])
    return Doubt(MERGE, *ends, level, (parent, node), linkage, weight)


def _sizes_and_peaks(hierarchy: Hierarchy, level: int) -> tuple[IntArray, IntArray]:
    """Number of points and peak of each node of a level."""
    if level == 0:
        return np.ones(hierarchy.n_points, np.int64), np.arange(hierarchy.n_points)
    return hierarchy.sizes(level - 1), hierarchy.peaks(level - 1)


def find_merge_candidates(
    hierarchy: Hierarchy, neighbours: IntArray, linkage: FloatArray, limit: int = MOST_DOUBTS
) -> list[Doubt]:
    """Rank the pairs of clusters of the last level that may be one identity.

    Parameters
    ----------
    hierarchy : Hierarchy of n_points points
    neighbours, linkage : ndarray of shape (n_points, k)
        The first level's graph, and the linkage of its edges.
    limit : int
        Most pairs to give.

    Returns
    -------
    pairs : list of Doubt, largest weight first
    """
    labels, sizes, peaks = hierarchy.labels(-1), hierarchy.sizes(-1), hierarchy.peaks(-1)
    level = hierarchy.n_levels - 1
    pairs = pair_clusters(neighbours, linkage, labels, sizes, limit)
    weights = weigh_pairs(pairs.strength, np.minimum(sizes[pairs.a], sizes[pairs.b]))
    columns = zip(pairs.a, pairs.b, pairs.strength, weights, strict=True)
    return [
        Doubt(PAIR, int(peaks[a]), int(peaks[b]), level, (int(a), int(b)), float(s), float(w))
        for a, b, s, w in columns
    ]


def weigh_pairs(strength: FloatArray, smaller: IntArray) -> FloatArray:
    """Weight of each pair: its strength times the logarithm of the size of its smaller side."""
    weights: FloatArray = strength * np.log2(1.0 + smaller)
    return weights


def pair_clusters(
    neighbours: IntArray, linkage: FloatArray, labels: IntArray, sizes: IntArray, limit: int
) -> ClusterPairs:
    """Find the pairs of clusters with the most linkage between them.

    Parameters
    ----------
    neighbours, linkage : ndarray of shape (n_points, k)
    labels : ndarray of shape (n_points,)
    sizes : ndarray of shape (n_clusters,)
    limit : int
        Most pairs to give.
    """
    n_clusters, k = len(sizes), neighbours.shape[1]
    keys, weights = [], []
    for block in row_blocks(len(labels), k):
        own = labels[block][:, None]
        other = labels[neighbours[block]]
        probable = np.asarray(linkage[block])
        crossing = (own != other) & (probable > 0)
        low, high = np.minimum(own, other)[crossing], np.maximum(own, other)[crossing]
        keys.append(low * n_clusters + high)
        weights.append(probable[crossing])
    key, weight = np.concatenate(keys), np.concatenate(weights)
    pairs, inverse = np.unique(key, return_inverse=True)
    total = np.bincount(inverse, weight, len(pairs))
    strongest = np.zeros(len(pairs), dtype=np.float32)
    np.maximum.at(strongest, inverse, weight)
    a, b = pairs // n_clusters, pairs % n_clusters
    smaller = np.minimum(sizes[a], sizes[b])
    # Edges of both sides count, so the sum can exceed the number of edges of the smaller side.
    strength = np.minimum(total / (k * smaller), 1).astype(np.float32)
    best = np.argsort(-weigh_pairs(strength, smaller), kind="stable")[:limit]
    return ClusterPairs(a[best], b[best], strength[best], strongest[best])
