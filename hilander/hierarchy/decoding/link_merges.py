"""Merges of super-nodes by their links: agglomeration, the most probable pair first.

Each merge adds up the links of both sides to every third super-node, and the probability that two
are one identity is estimated anew. So one probable link between two large clusters is outweighed by
the many that are missing, and fragments of a large identity merge however many they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from hilander.arrays.rows import BoolArray, IntArray
from hilander.graph.linked_pairs import LinkedPairs
from hilander.hierarchy.decoding.contraction import find_dominant, number_by_appearance

# Probability that the two clusters of each pair are one identity, shape (n_pairs,).
MergeEstimate = Callable[[LinkedPairs], npt.NDArray[np.float64]]

# Both ends of a merge prefer each other: nearly always the result of merging one pair at a time.
_MUTUALLY_BEST = 1.0


def merge_by_links(pairs: LinkedPairs, estimate: MergeEstimate, least: float) -> IntArray:
    """Merge clusters while two of them are one identity with a probability of `least` or more.

    Parameters
    ----------
    pairs : LinkedPairs of n_clusters clusters
    estimate : callable pairs -> probability
    least : float, in [0, 1]

    Returns
    -------
    labels : ndarray of shape (n_clusters,)
        Numbered by first appearance.
    """
    ((_, labels),) = agglomerate(pairs, estimate, [least])
    return number_by_appearance(labels)


def agglomerate(
    pairs: LinkedPairs, estimate: MergeEstimate, thresholds: Sequence[float]
) -> Iterator[tuple[LinkedPairs, IntArray]]:
    """Merge down to each threshold in turn; they fall.

    Yields
    ------
    pairs : LinkedPairs of the clusters that are left
    labels : ndarray of shape (n_clusters,)
        Present cluster of each cluster that the first pairs are of.
    """
    labels = np.arange(len(pairs.size))
    same = _estimate(pairs, estimate)
    for least in thresholds:
        while (chosen := _find_best(pairs, same, least)).any():
            number = _join(pairs, chosen)
            labels = number[labels]
            merged, source = pairs.merge(number, int(number.max()) + 1)
            # Only pairs with a cluster that grew are estimated again.
            grown = np.bincount(number)[np.stack([merged.low, merged.high])].max(axis=0) > 1
            pairs, same = merged, same[source]
            same[grown] = _estimate(pairs.take(grown), estimate)
        yield pairs, labels


def _estimate(pairs: LinkedPairs, estimate: MergeEstimate) -> npt.NDArray[np.float64]:
    """The estimates; 0 where all links have linkage 0."""
    if not len(pairs):
        return np.zeros(0)
    return np.where(pairs.total > 0, estimate(pairs), 0.0)


def _find_best(pairs: LinkedPairs, same: npt.NDArray[np.float64], least: float) -> BoolArray:
    """Pairs of at least this probability whose clusters prefer each other, shape (n_pairs,)."""
    likely = np.flatnonzero(same >= least)
    ends = pairs.low[likely], pairs.high[likely]
    best = np.zeros(len(pairs), dtype=bool)
    best[likely] = find_dominant(*ends, same[likely], len(pairs.size), _MUTUALLY_BEST)
    return best


def _join(pairs: LinkedPairs, chosen: BoolArray) -> IntArray:
    """New number of each cluster after the chosen pairs merged, shape (n_clusters,)."""
    ends = pairs.low[chosen], pairs.high[chosen]
    n_clusters = len(pairs.size)
    joins = coo_matrix((np.ones(len(ends[0])), ends), (n_clusters, n_clusters))
    number: IntArray = connected_components(joins, directed=False)[1].astype(np.int64)
    return number
