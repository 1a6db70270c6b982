"""Ids of clusters that stay the same from one clustering of some items to the next.

A cluster keeps its id while at least half of its members stay together. Of several that merge, the
largest one's id survives. A cluster without an id to take over gets a number that was never used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.arrays.rows import IntArray

NEW = -1  # former cluster of an item that was not there before
# Share of the members of a former cluster that one cluster must have to take over its id; as for
# names in `hilander.explorer.review.carry`.
_MAJORITY = 0.5


@dataclass(frozen=True, eq=False)
class ClusterMatch:
    """Ids of the clusters of a new clustering.

    Parameters
    ----------
    ids : ndarray of shape (n_clusters,), int64
    next_id : int
        The lowest number that was never used.
    merged : ndarray of shape (n_merged, 2)
        Surviving id, and id that ended in it.
    split : ndarray of shape (n_split, 2)
        Former id, and new id of a cluster whose former members were mostly of it.
    """

    ids: IntArray
    next_id: int
    merged: IntArray
    split: IntArray


def match_clusters(former: IntArray, labels: IntArray, next_id: int) -> ClusterMatch:
    """Give the clusters of a new clustering the ids of the former ones.

    Parameters
    ----------
    former : ndarray of shape (n_items,)
        Id of the former cluster of each item; -1 for an item that was not there.
    labels : ndarray of shape (n_items,), ints from 0
        New cluster of each item.
    next_id : int
        The lowest number that was never used as an id.
    """
    n_clusters = int(labels.max(initial=-1)) + 1
    known = former >= 0
    old_ids, old = np.unique(former[known], return_inverse=True)
    size = np.bincount(old, minlength=len(old_ids))
    pair, count = np.unique(old * max(n_clusters, 1) + labels[known], return_counts=True)
    old, new = np.divmod(pair, max(n_clusters, 1))

    order = np.lexsort((new, -count, old))  # the largest share of each former cluster first
    first = order[np.r_[True, np.diff(old[order]) != 0]] if len(order) else order
    claims = first[count[first] >= _MAJORITY * size[old[first]]]
    # Of several claims on one cluster, that of the largest former cluster comes first.
    claims = claims[np.lexsort((old_ids[old[claims]], -size[old[claims]], new[claims]))]
    wins = np.r_[True, np.diff(new[claims]) != 0] if len(claims) else np.zeros(0, dtype=bool)
    ids = np.full(n_clusters, NEW, dtype=np.int64)
    ids[new[claims[wins]]] = old_ids[old[claims[wins]]]
    lost = claims[~wins]
    merged = np.column_stack([ids[new[lost]], old_ids[old[lost]]])

    without = np.flatnonzero(ids == NEW)
    ids[without] = next_id + np.arange(len(without))
    order = np.lexsort((old, -count, new))  # the largest origin of each new cluster first
    origin = order[np.r_[True, np.diff(new[order]) != 0]] if len(order) else order
    origin = origin[np.isin(new[origin], without)]
    split = np.column_stack([old_ids[old[origin]], ids[new[origin]]])
    return ClusterMatch(ids, next_id + len(without), merged.reshape(-1, 2), split.reshape(-1, 2))
