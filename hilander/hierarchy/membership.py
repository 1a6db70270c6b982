"""Soft membership: the probabilities of the clusters that a point may belong to.

The links of a point to the members of a cluster are evidence for it. With k links of the point, of
which n lead to cluster c and have the mean linkage p, the odds of c against "none of them" are::

    log o_c = a * logit(p) + b * log(n / k) + c0

and ``P(c) = o_c / (1 + sum of all o)``; ``1 / (1 + sum of all o)`` is left for a new cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, row_blocks
from hilander.errors import SettingError
from hilander.graph.edges import logit_of

if TYPE_CHECKING:
    from hilander.hierarchy.hierarchy import Hierarchy

# Fitted by maximum likelihood to five real training sets that the pretrained model clustered:
# whether the majority of a cluster has the identity of the point. On each of them, the mean
# probability of the first cluster is within 0.14 of the share of points for which it is right.
LINKAGE_WEIGHT, SHARE_WEIGHT, OFFSET = 0.5, 0.7, 1.8
NO_CLUSTER = -1


@dataclass(frozen=True, eq=False)
class Membership:
    """The most probable clusters of each row.

    Parameters
    ----------
    clusters : ndarray of shape (n_rows, top), int64
        Ids of clusters (`Hierarchy.cluster_ids`), the most probable first; -1 in a place that no
        cluster has.
    probability : ndarray of shape (n_rows, top), float32, in [0, 1]
        0 in such a place.
    new : ndarray of shape (n_rows,), float32, in [0, 1]
        Probability that the row belongs to none of the clusters.
    """

    clusters: IntArray
    probability: FloatArray
    new: FloatArray


def find_membership(hierarchy: Hierarchy, top: int = 5) -> Membership:
    """The most probable clusters of each point of a run, from the links that leave it.

    The point itself is not a member in this. A point that is alone in its cluster has no link to
    it, and `new` is the probability that it belongs to no other.
    """
    basis, labels = hierarchy.basis, hierarchy.labels(-1)
    check_top(top)
    blocks = [
        summarise_links(
            labels[basis.neighbours[rows]], basis.linkage[rows], hierarchy.cluster_ids, top
        )
        for rows in row_blocks(*basis.linkage.shape)
    ]
    parts = zip(*((one.clusters, one.probability, one.new) for one in blocks), strict=True)
    return Membership(*map(np.concatenate, parts))


def summarise_links(
    found: IntArray, linkage: FloatArray, cluster_ids: IntArray, top: int
) -> Membership:
    """The most probable clusters of rows, from their links.

    Parameters
    ----------
    found : ndarray of shape (n_rows, k)
        Cluster that each link leads to.
    linkage : ndarray of shape (n_rows, k)
    cluster_ids : ndarray of shape (n_clusters,)
    top : int
    """
    n_rows, k = found.shape
    order = np.argsort(found, axis=1, kind="stable")
    found = np.take_along_axis(found, order, axis=1).ravel()
    linkage = np.take_along_axis(linkage, order, axis=1).ravel().astype(np.float64)
    row = np.repeat(np.arange(n_rows), k)
    starts = np.flatnonzero(np.r_[True, (found[1:] != found[:-1]) | (row[1:] != row[:-1])])
    count = np.diff(np.r_[starts, len(found)])
    odds = link_odds(np.add.reduceat(linkage, starts) / count, count / k)
    row, found = row[starts], found[starts]
    total = 1 + np.bincount(row, odds, n_rows)

    best = np.lexsort((found, -odds, row))
    rank = np.arange(len(best)) - np.searchsorted(row[best], row[best])
    best = best[rank < top]
    rank = rank[rank < top]
    clusters = np.full((n_rows, top), NO_CLUSTER, dtype=np.int64)
    probability = np.zeros((n_rows, top), dtype=np.float32)
    clusters[row[best], rank] = cluster_ids[found[best]]
    probability[row[best], rank] = odds[best] / total[row[best]]
    return Membership(clusters, probability, (1 / total).astype(np.float32))


def link_odds(linkage: npt.NDArray[Any], share: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Odds of clusters, from the mean linkage to each and the share of links that lead to it."""
    log_odds = LINKAGE_WEIGHT * logit_of(linkage) + SHARE_WEIGHT * np.log(share) + OFFSET
    odds: npt.NDArray[np.float64] = np.exp(log_odds)
    return odds


def check_top(top: Any) -> None:
    """Refuse a number of clusters that is not 1 or more."""
    if not isinstance(top, Integral) or top < 1:
        raise SettingError(f"top={top!r} is not a number of clusters; use 1 or more")
