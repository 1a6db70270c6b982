"""Pairs of linked clusters, while clusters merge."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import triu

from hilander.arrays.rows import IntArray
from hilander.graph.links import Links, sum_by

Sums = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LinkedPairs:
    """Pairs of clusters with links between them, once each, and the clusters.

    Parameters
    ----------
    low, high : ndarray of shape (n_pairs,)
        The two clusters, low < high.
    count, total : ndarray of shape (n_pairs,)
        Number of links between the two, and the sum of their linkages.
    size : ndarray of shape (n_clusters,)
        Points of each cluster.
    inside : ndarray of shape (2, n_clusters)
        Number of the edges inside each cluster, and the sum of their linkages.
    k : int
        Neighbours of each point.
    """

    low: IntArray
    high: IntArray
    count: Sums
    total: Sums
    size: Sums
    inside: Sums
    k: int

    @classmethod
    def of_links(cls, links: Links, size: npt.NDArray[np.integer]) -> LinkedPairs:
        """The pairs of a level's nodes."""
        count, total = triu(links.count, format="coo"), triu(links.linkage, format="coo")
        ends = count.row.astype(np.int64), count.col.astype(np.int64)
        sums = count.data.astype(np.float64), total.data.astype(np.float64)
        return cls(*ends, *sums, size.astype(np.float64), links.inside, links.k)

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def smaller(self) -> Sums:
        """Points of the smaller cluster of each pair, shape (n_pairs,)."""
        return np.minimum(self.size[self.low], self.size[self.high])

    @cached_property
    def leaving(self) -> Sums:
        """Sum of the linkages of all links of each cluster, shape (n_clusters,)."""
        n_clusters = len(self.size)
        ends, totals = np.concatenate([self.low, self.high]), np.tile(self.total, 2)
        return sum_by(ends, totals, n_clusters)

    def take(self, chosen: npt.NDArray[np.bool_]) -> LinkedPairs:
        """Some of the pairs, with what the clusters have with all others."""
        part = LinkedPairs(
            self.low[chosen], self.high[chosen], self.count[chosen], self.total[chosen],
            self.size, self.inside, self.k,
        )  # fmt: skip
        part.__dict__["leaving"] = self.leaving
        return part

    def merge(self, number: IntArray, n_clusters: int) -> tuple[LinkedPairs, IntArray]:
        """The pairs after clusters merged.

        Parameters
        ----------
        number : ndarray of shape (n_clusters_before,)
            Cluster of each former cluster.
        n_clusters : int

        Returns
        -------
        pairs : LinkedPairs
        source : ndarray of shape (n_pairs,)
            One former pair of each.
        """
        here, there = number[self.low], number[self.high]
        joined = here == there
        inside = np.stack(
            [
                sum_by(number, before, n_clusters) + sum_by(here[joined], sums[joined], n_clusters)
                for before, sums in zip(self.inside, (self.count, self.total), strict=True)
            ]
        )
        apart = np.flatnonzero(~joined)
        low, high = np.minimum(here, there)[apart], np.maximum(here, there)[apart]
        key = low * n_clusters + high
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order], prepend=-1))
        source = apart[order]
        count, total = (np.add.reduceat(one[source], starts) for one in (self.count, self.total))
        first = order[starts]
        size = sum_by(number, self.size, n_clusters)
        merged = LinkedPairs(low[first], high[first], count, total, size, inside, self.k)
        return merged, source[starts]
