"""The nearest points of a set to rows that are not in it, and the points that would list them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hilander.arrays.row_source import RowSource
from hilander.arrays.rows import FloatArray, IntArray, sort_by_group, unit_rows
from hilander.graph.nodes import start_nodes
from hilander.hierarchy.pooling import merge_nodes

if TYPE_CHECKING:
    from hilander.hierarchy.hierarchy import Hierarchy

_EXACT_UP_TO = 50_000  # points; a row is compared with all of them
_CANDIDATES = 4_096  # points that a row is compared with in larger sets


@dataclass(frozen=True, eq=False)
class Nearest:
    """What one row finds in a set.

    Parameters
    ----------
    neighbours : ndarray of shape (k,)
        Nearest points, the most similar first.
    affinity : ndarray of shape (k,), float32
    listing : ndarray of shape (n_listing,), rising
        Points that would have the row in their list.
    listing_affinity : ndarray of shape (n_listing,), float32
    """

    neighbours: IntArray
    affinity: FloatArray
    listing: IntArray
    listing_affinity: FloatArray


class SetSearch:
    """Searches the points of a hierarchy.

    A large set is searched by its clusters: a row is compared with the means of the clusters, and
    then with the points of the most similar ones.

    Parameters
    ----------
    hierarchy : Hierarchy with a basis
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        basis = hierarchy.basis
        self.source, self.k = RowSource(basis.features), basis.k
        self.floor = np.array(basis.affinity[:, -1])
        self.centres: FloatArray | None = None
        if len(self.source) > _EXACT_UP_TO:
            labels, peaks = hierarchy.labels(-1), hierarchy.peaks(-1)
            total = merge_nodes(start_nodes(self.source.features), labels, peaks).total
            self.centres = unit_rows(total)
            self.members, self.starts = sort_by_group(labels, len(peaks))

    def find(self, row: FloatArray) -> Nearest:
        """The nearest points to a row of shape (dim,)."""
        candidates = self._candidates(row)
        if candidates is None:
            cosine = np.asarray(self.source.features @ row, dtype=np.float32)
            candidates = np.arange(len(cosine))
            floor = self.floor
        else:
            cosine = self.source.take(candidates) @ row
            floor = self.floor[candidates]
        np.clip(cosine, -1, 1, out=cosine)
        best = np.argpartition(-cosine, self.k - 1)[: self.k]
        best = best[np.lexsort((best, -cosine[best]))]
        listing = np.flatnonzero(cosine > floor)
        return Nearest(candidates[best], cosine[best], candidates[listing], cosine[listing])

    def _candidates(self, row: FloatArray) -> IntArray | None:
        """Points of the nearest clusters, rising; None for all."""
        if self.centres is None:
            return None
        cosine = self.centres @ row
        some = min(_CANDIDATES, len(cosine))
        near = np.argpartition(-cosine, some - 1)[:some]
        near = near[np.argsort(-cosine[near], kind="stable")]
        sizes = np.diff(self.starts)[near]
        near = near[: int(np.searchsorted(np.cumsum(sizes), _CANDIDATES)) + 1]
        parts = [self.members[self.starts[one] : self.starts[one + 1]] for one in near]
        return np.sort(np.concatenate(parts))
