"""What the two ends of an edge have in common: neighbours, and links to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from hilander.arrays.rows import FloatArray, IntArray
from hilander.engines.threads import open_workers
from hilander.graph.edges import edge_matrix, find_entries, overlap_rows
from hilander.graph.knn_graph import KnnGraph, edge_blocks

_ALL_PAIRS = 48  # largest k at which all pairs of two lists are compared
_HUB = 1_000  # entries of a row; a longer row is searched, not copied for every edge
_ENTRY_BLOCK = 2_000_000  # entries of rows in a block, to bound the memory
_SINGLE_THREAD = 20_000  # edges; with fewer, a second thread costs more than it saves


@dataclass(frozen=True, eq=False)
class CommonLists:
    """Comparison of the neighbour lists of both ends of every edge, each of shape (n_nodes, k).

    Parameters
    ----------
    back : ndarray of uint16
        Rank of i in the list of its neighbour j, from 1; 0 where it is not listed.
    shared : ndarray of uint16
        Number of neighbours that both have.
    shared_close : ndarray of uint16
        The same among the closest neighbours of both.
    """

    back: npt.NDArray[np.uint16]
    shared: npt.NDArray[np.uint16]
    shared_close: npt.NDArray[np.uint16]


def compare_lists(graph: KnnGraph, close: int) -> CommonLists:
    """Compare the neighbour lists of both ends of every edge.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    close : int
        How many neighbours count as the closest.
    """
    k, listed = graph.k, _small_indices(graph)
    found = [np.zeros(listed.shape, dtype=np.uint16) for _ in range(3)]
    back, shared, shared_close = found

    def compare(rows: slice) -> None:
        own = listed[rows]
        other = np.take(listed, graph.neighbours[rows], axis=0, mode="clip")  # (block, k, k)
        back[rows] = _rank_in(other, np.arange(rows.start, rows.stop, dtype=listed.dtype))
        if k <= _ALL_PAIRS:
            shared[rows] = _count_common(own, other)
        shared_close[rows] = _count_common(own[:, :close], other[:, :, :close])

    with open_workers(alone=listed.size <= _SINGLE_THREAD) as workers:
        workers.map(compare, edge_blocks(graph.n_nodes, k * k))
    if k > _ALL_PAIRS:
        ones = edge_matrix(graph, np.ones(listed.shape, dtype=np.float32))
        shared[:] = overlap_rows(ones, ones, graph)
    return CommonLists(back, shared, shared_close)


def rank_back(graph: KnnGraph) -> npt.NDArray[np.uint16]:
    """Rank of each node in the list of each of its neighbours, from 1; 0 where not listed."""
    listed = _small_indices(graph)
    back = np.zeros(listed.shape, dtype=np.uint16)
    for rows in edge_blocks(graph.n_nodes, graph.k * graph.k):
        other = np.take(listed, graph.neighbours[rows], axis=0, mode="clip")
        back[rows] = _rank_in(other, np.arange(rows.start, rows.stop, dtype=listed.dtype))
    return back


def _small_indices(graph: KnnGraph) -> npt.NDArray[Any]:
    """Neighbours as int32 if the node numbers fit: twice as many fill a cache line."""
    small = graph.n_nodes < np.iinfo(np.int32).max
    return graph.neighbours.astype(np.int32) if small else graph.neighbours


def _rank_in(lists: npt.NDArray[Any], node: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rank of each node in k lists, from 1, shape (block, k); 0 where it is not listed."""
    hit = lists == node[:, None, None]
    rank: npt.NDArray[Any] = np.where(hit.any(axis=2), hit.argmax(axis=2) + 1, 0)
    return rank


def _count_common(own: npt.NDArray[Any], lists: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Number of entries of k lists that are in a node's own list, shape (block, k)."""
    hit = np.zeros(lists.shape, dtype=bool)
    for place in range(own.shape[1]):
        hit |= lists == own[:, place, None, None]
    count: npt.NDArray[Any] = hit.sum(axis=2)
    return count


class CommonLinks:
    """Sums over the nodes that both ends of an edge are linked to.

    ``l`` is a symmetric sparse matrix of links. For an edge (i, j) and the nodes m where both rows
    have an entry: the number of m, ``sum_m l_im``, ``sum_m l_jm`` and ``sum_m l_im * l_jm``.

    Parameters
    ----------
    links : csr_matrix of shape (n_nodes, n_nodes)
    graph : KnnGraph of n_nodes nodes
    """

    def __init__(self, links: csr_matrix, graph: KnnGraph) -> None:
        links.sort_indices()
        self.links, self.graph = links, graph
        self._entries = np.diff(links.indptr)
        # Thousands of equal points have the same few neighbours. Copies of the row of such a hub
        # for each of its edges would take memory quadratic in their number.
        is_hub = self._entries >= _HUB
        at_hub = is_hub[graph.neighbours] | is_hub[:, None] if is_hub.any() else None
        self._hub_edges = np.arange(0) if at_hub is None else np.flatnonzero(at_hub)
        self._hub_sums = self._search_short_rows(self._hub_edges)

    def of(self, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Number, sum of i, sum of j and sum of products, each of shape (block, k)."""
        k = self.graph.k
        sums = np.zeros((4, (rows.stop - rows.start) * k), dtype=np.float32)
        first, last = np.searchsorted(self._hub_edges, [rows.start * k, rows.stop * k])
        plain = np.ones(sums.shape[1], dtype=bool)
        plain[self._hub_edges[first:last] - rows.start * k] = False
        left = np.repeat(np.arange(rows.start, rows.stop), k)[plain]
        sums[:, plain] = self._compare(left, self.graph.neighbours[rows].ravel()[plain])
        sums[:, ~plain] = self._hub_sums[:, first:last]
        count, of_i, of_j, both = sums.reshape(4, -1, k)
        return count, of_i, of_j, both

    def _compare(self, left: IntArray, right: IntArray) -> FloatArray:
        """The four sums for pairs of rows, shape (4, n_pairs), by merging their sorted entries."""
        here, there = self.links[left], self.links[right]
        of_i, of_j = here.multiply(_ones_like(there)), _ones_like(here).multiply(there)
        count = np.diff(of_i.indptr)
        pair = np.repeat(np.arange(len(left)), count)
        return np.stack(
            [
                count,
                np.bincount(pair, of_i.data, len(left)),
                np.bincount(pair, of_j.data, len(left)),
                np.bincount(pair, of_i.data * of_j.data, len(left)),
            ]
        ).astype(np.float32)

    def _search_short_rows(self, edges: IntArray) -> FloatArray:
        """The four sums of edges at hubs, shape (4, n_edges), from the shorter rows."""
        sums = np.zeros((4, len(edges)), dtype=np.float32)
        left, right = edges // self.graph.k, self.graph.neighbours.ravel()[edges]
        swap = self._entries[left] > self._entries[right]
        short, long = np.where(swap, right, left), np.where(swap, left, right)
        taken = np.cumsum(self._entries[short].astype(np.int64)) // _ENTRY_BLOCK
        for part in np.split(np.arange(len(edges)), np.flatnonzero(np.diff(taken)) + 1):
            entries = self.links[short[part]]
            pair = np.repeat(np.arange(len(part)), np.diff(entries.indptr))
            needed, place = np.unique(long[part], return_inverse=True)
            found = find_entries(self.links[needed], place[pair], entries.indices)
            is_common, n_pairs = found != 0, len(part)
            sums[0, part] = np.bincount(pair, is_common, n_pairs)
            sums[1, part] = np.bincount(pair, entries.data * is_common, n_pairs)
            sums[2, part] = np.bincount(pair, found, n_pairs)
            sums[3, part] = np.bincount(pair, entries.data * found, n_pairs)
        sums[1:3, swap] = sums[2:0:-1, swap]
        return sums


def _ones_like(matrix: csr_matrix) -> csr_matrix:
    """The same entries, all 1."""
    ones = csr_matrix((np.ones_like(matrix.data), matrix.indices, matrix.indptr), matrix.shape)
    ones.has_canonical_format = True  # like the matrix; saves a check of every entry
    return ones
