"""Representatives: the medoid of each cluster.

The peak of a cluster is where its links end. It can be an odd member: at a later level the densest
of a few nodes is the peak, and its first point may be one that nothing resembled at first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray, read_rows, row_blocks
from hilander.errors import SettingError
from hilander.graph.nodes import start_nodes
from hilander.hierarchy.pooling import merge_nodes

if TYPE_CHECKING:
    from hilander.hierarchy.hierarchy import Hierarchy


def find_representatives(hierarchy: Hierarchy, level: int = -1) -> IntArray:
    """The medoid of each cluster: the member of the highest mean cosine to all members.

    Without the embeddings of the hierarchy it is the densest member.

    Returns
    -------
    representatives : ndarray of shape (n_clusters,)
        Rows of points; of equal members the first.
    """
    labels = hierarchy.labels(level)
    try:
        features = hierarchy.basis.features
    except SettingError:
        return _best_members(labels, hierarchy.density)
    return find_medoids(features, labels, hierarchy.peaks(level))


def find_medoids(features: npt.NDArray[Any], labels: IntArray, peaks: IntArray) -> IntArray:
    """The medoid of each cluster of unit rows, shape (n_clusters,).

    ``argmax_i sum_j x_i · x_j``, which is ``argmax_i x_i · s`` with s the sum of the members.
    """
    total = merge_nodes(start_nodes(features), labels, peaks).total
    cosine = np.empty(len(labels), dtype=np.float32)
    for rows in row_blocks(*features.shape):
        cosine[rows] = np.einsum("id,id->i", read_rows(features, rows), total[labels[rows]])
    return _best_members(labels, cosine)


def _best_members(labels: IntArray, value: npt.NDArray[np.float32]) -> IntArray:
    """The member of the highest value of each cluster, rounded so that equal members are equal."""
    order = np.lexsort((np.arange(len(labels)), -np.round(value, 5), labels))
    best: IntArray = order[np.r_[True, np.diff(labels[order]) != 0]]
    return best
