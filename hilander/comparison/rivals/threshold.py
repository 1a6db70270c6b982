"""The baseline of every comparison: points whose cosine reaches a threshold are one cluster.

The connected components at any threshold are those of the maximum spanning tree, cut at that
threshold. So the tree is built once, and each further threshold takes one pass over n - 1 edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.comparison.objective import mean_f
from hilander.errors import EmbeddingError, LabelError, SettingError

N_THRESHOLDS = 200  # quantiles to try; each step is half a percent of the edges


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """The edges of the maximum spanning tree by cosine, in the order in which they were added.

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
        """Components of the edges with at least this cosine, shape (n_points,), ints from 0."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        kept = self.cosine >= threshold
        n_points = len(self.cosine) + 1
        ends = (self.inside[kept], self.added[kept])
        edges = coo_matrix((np.ones(len(ends[0]), dtype=np.int8), ends), (n_points, n_points))
        labels: IntArray = connected_components(edges, directed=False)[1].astype(np.int64)
        return labels


def cluster_by_threshold(features: FloatArray, threshold: float) -> IntArray:
    """Connected components of the pairs with at least this cosine.

    Exact. Memory is linear and time is quadratic in the number of points.

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
    """The threshold whose components agree best with the identities.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), float32
        L2-normalised embeddings of labelled identities.
    labels : ndarray of shape (n_points,)
        Their identities.

    Returns
    -------
    threshold : float, in [-1, 1]
        Of `N_THRESHOLDS` quantiles of the cosines in the tree, the one with the highest mean of
        pairwise and BCubed F; of several equally good ones, the highest.
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
    """Build the maximum spanning tree by cosine, from the first point (Prim's algorithm).

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
    nearest = np.zeros(n_points, dtype=np.int64)  # nearest point of the tree to each point
    reach = features @ features[0]  # cosine with it; -inf for points in the tree
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
