"""Ids of clusters that stay the same from one clustering of some items to the next.

A cluster keeps its id while at least half of its members stay together. Of several that merge, the
largest one's id survives. A cluster without an id to take over gets a number that was never used.
A review is a clustering too: what it joins or splits off goes on under the ids of the review.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

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


@dataclass(frozen=True, eq=False)
class Reviewed:
    """The clusters of a run as its review leaves them.

    Parameters
    ----------
    ids : list of str
        Ids of the items.
    before, after : ndarray of shape (n_items,)
        Id of the cluster of each item in the run, and as reviewed.
    next_id : int
        The lowest number that was never the id of a cluster of the review.
    named : sequence of str
        Ids of items of clusters of different names, one of each.
    """

    ids: list[str]
    before: IntArray
    after: IntArray
    next_id: int
    named: Sequence[str] = ()

    def correct(self, ids: npt.NDArray[Any], clusters: IntArray) -> IntArray:
        """The clusters as reviewed, if they are those that the review is of; else as they are.

        Parameters
        ----------
        ids : ndarray of shape (n_items,)
        clusters : ndarray of shape (n_items,)
            Id of the cluster of each item.
        """
        is_of_these = np.array_equal(self.before, clusters)
        return self.after if is_of_these and self.ids == ids.astype(str).tolist() else clusters


def match_clusters(
    former: IntArray, labels: IntArray, next_id: int, before: IntArray | None = None
) -> ClusterMatch:
    """Give the clusters of a new clustering the ids of the former ones.

    Parameters
    ----------
    former : ndarray of shape (n_items,)
        Id of the former cluster of each item; -1 for an item that was not there.
    labels : ndarray of shape (n_items,), ints from 0
        New cluster of each item.
    next_id : int
        The lowest number that was never used as an id.
    before : ndarray of shape (n_items,), optional
        In place of `former` for what merged and split: the clusters before their review.
    """
    ids = np.full(int(labels.max(initial=-1)) + 1, NEW, dtype=np.int64)
    shares = _Shares.of_labels(former, labels)
    claims = shares.find_claims()
    wins = np.r_[True, np.diff(shares.new[claims]) != 0] if len(claims) else claims
    won = claims[wins]
    ids[shares.new[won]] = shares.ids[shares.old[won]]
    without = np.flatnonzero(ids == NEW)
    ids[without] = next_id + np.arange(len(without))

    shares = shares if before is None else _Shares.of_labels(before, labels)
    claims = shares.find_claims()
    ended = claims[~np.isin(shares.ids[shares.old[claims]], ids)]
    merged = np.column_stack([ids[shares.new[ended]], shares.ids[shares.old[ended]]])
    order = np.lexsort((shares.old, -shares.members, shares.new))  # the largest origin first
    origin = order[np.r_[True, np.diff(shares.new[order]) != 0]] if len(order) else order
    origin = origin[~np.isin(ids[shares.new[origin]], shares.ids)]
    split = np.column_stack([shares.ids[shares.old[origin]], ids[shares.new[origin]]])
    return ClusterMatch(ids, next_id + len(without), merged.reshape(-1, 2), split.reshape(-1, 2))


class _Shares(NamedTuple):
    """How the members of former clusters are shared out among new ones.

    Parameters
    ----------
    ids, sizes : ndarray of shape (n_former,)
        Id and number of members of each former cluster.
    old, new, members : ndarray of shape (n_pairs,)
        A former cluster, a new one, and the number of members that they have in common.
    """

    ids: IntArray
    sizes: IntArray
    old: IntArray
    new: IntArray
    members: IntArray

    @classmethod
    def of_labels(cls, former: IntArray, labels: IntArray) -> _Shares:
        """The shares; items without a former cluster are left out."""
        known, n_clusters = former >= 0, max(int(labels.max(initial=-1)) + 1, 1)
        ids, old = np.unique(former[known], return_inverse=True)
        pair, members = np.unique(old * n_clusters + labels[known], return_counts=True)
        return cls(ids, np.bincount(old, minlength=len(ids)), *np.divmod(pair, n_clusters), members)

    def find_claims(self) -> IntArray:
        """Pairs of a former cluster and the new one that has at least half of its members.

        They are sorted by the new cluster; of several on one, that of the largest comes first.
        """
        order = np.lexsort((self.new, -self.members, self.old))  # the largest share first
        first = order[np.r_[True, np.diff(self.old[order]) != 0]] if len(order) else order
        claims = first[self.members[first] >= _MAJORITY * self.sizes[self.old[first]]]
        old = self.old[claims]
        found: IntArray = claims[np.lexsort((self.ids[old], -self.sizes[old], self.new[claims]))]
        return found
