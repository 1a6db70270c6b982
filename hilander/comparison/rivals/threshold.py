"""The floor of every comparison: points whose cosine reaches a threshold are one cluster.

Connected components at any threshold are cut from one tree: the spanning tree of highest cosines
(the path between two points along it has the highest least cosine of all paths). So the tree is
grown once, and trying a hundred thresholds costs a hundred passes over n - 1 edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import EmbeddingError, LabelError, SettingError

N_THRESHOLDS = 200


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """The edges of the spanning tree of highest cosines, in the order they were found.

    Attributes
    ----------
    inside, added : ndarray of shape (n_points - 1,), int64
        The two ends of each edge.
    cosine : ndarray of shape (n_points - 1,), float32
    """

    inside: IntArray
    added: IntArray
    cosine: FloatArray

    def cut(self, threshold: float) -> IntArray:
        """Components along edges of at least this cosine, shape (n_points,), ints from 0."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        kept = self.cosine >= threshold
        n_points = len(self.cosine) + 1
        ends = (self.inside[kept], self.added[kept])
        edges = coo_matrix((np.ones(len(ends[0]), dtype=np.int8), ends), (n_points, n_points))
        labels: IntArray = connected_components(edges, directed=False)[1].astype(np.int64)
        return labels


def cluster_by_threshold(features: FloatArray, threshold: float) -> IntArray:
    """Connected components of the graph that joins points of at least this cosine.

    Exact, in memory linear and time quadratic in the number of points.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), float32
        L2-normalised embeddings.
    threshold : float, in [-1, 1]

    Returns
    -------
    labels : ndarray of shape (n_points,), int64, from 0
    """
    if not -1 <= threshold <= 1:
        raise SettingError(f"threshold={threshold!r} is not a cosine; use -1 to 1")
    return grow_tree(features).cut(threshold)


def choose_threshold(features: FloatArray, labels: npt.NDArray[Any]) -> float:
    """The threshold whose components agree best with known identities.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), float32
        L2-normalised embeddings of labelled identities.
    labels : ndarray of shape (n_points,)
        Their identities.

    Returns
    -------
    threshold : float, in [-1, 1]
        Of `N_THRESHOLDS` quantiles of the tree's cosines, the one of highest mean of pairwise and
        BCubed F; of equally good ones the highest.
    """
    if len(labels) != len(features):
        raise LabelError(
            f"got {len(labels)} labels for {len(features)} embeddings, expected one each; "
            "pass labels in the order of the embeddings"
        )
    tree = grow_tree(features)
    tried = np.unique(np.quantile(tree.cosine, np.linspace(0, 1, N_THRESHOLDS)))[::-1]
    identities = np.unique(labels, return_inverse=True)[1]
    scores = [mean_f(identities, tree.cut(float(threshold))) for threshold in tried]
    return float(np.clip(tried[int(np.argmax(scores))], -1, 1))


def grow_tree(features: FloatArray) -> SpanningTree:
    """Grow the spanning tree of highest cosines from the first point (Prim's algorithm).

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), float32
        L2-normalised embeddings.

    Returns
    -------
    tree : SpanningTree of n_points - 1 edges
    """
    n_points = len(features)
    if n_points < 2:
        raise EmbeddingError(f"got {n_points} embeddings, expected at least 2; give more")
    nearest = np.zeros(n_points, dtype=np.int64)  # the tree's point nearest to each point
    reach = features @ features[0]  # its cosine; -inf once the point is in the tree
    reach[0] = -np.inf
    inside = np.empty(n_points - 1, dtype=np.int64)
    added = np.empty(n_points - 1, dtype=np.int64)
    cosine = np.empty(n_points - 1, dtype=np.float32)
    for step in range(n_points - 1):
        new = int(np.argmax(reach))
        inside[step], added[step], cosine[step] = nearest[new], new, reach[new]
        candidates = features @ features[new]
        candidates[np.isneginf(reach)] = -np.inf
        reach[new] = candidates[new] = -np.inf
        closer = candidates > reach
        nearest[closer] = new
        reach[closer] = candidates[closer]
    return SpanningTree(inside, added, cosine)


def mean_f(true: IntArray, found: IntArray) -> float:
    """Mean of pairwise and BCubed F, in [0, 1]; here because stages cannot look ahead.

    Parameters
    ----------
    true, found : ndarray of shape (n_points,), ints from 0
    """
    pairs = true * (found.max() + 1) + found
    shared = np.unique(pairs, return_inverse=True, return_counts=True)
    together = shared[2][shared[1]].astype(np.float64)  # (n_points,) in the same cell
    in_identity = np.bincount(true)[true]
    in_cluster = np.bincount(found)[found]
    bcubed = _harmonic((together / in_cluster).mean(), (together / in_identity).mean())
    joined = (together - 1).sum()
    pairwise = 2 * joined / max((in_cluster - 1).sum() + (in_identity - 1).sum(), 1)
    return float((bcubed + pairwise) / 2)


def _harmonic(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall)
