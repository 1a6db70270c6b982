"""What the two ends of an edge have in common: neighbours, and links to them."""

from __future__ import annotations

from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from hilander.arrays.rows import FloatArray
from hilander.engines.threads import open_workers
from hilander.graph.knn_graph import KnnGraph

_SMALLEST_BLOCK = 4_096  # nodes
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
    from hilander.linkage.evidence.edge_kernels import compare_lists_of

    listed = _small_indices(graph)
    found = np.empty((3, *listed.shape), dtype=np.uint16)

    def compare(rows: slice) -> None:
        place = np.zeros(graph.n_nodes, dtype=np.int32)
        compare_lists_of(listed, rows.start, rows.stop, close, place, found)

    with open_workers(alone=listed.size <= _SINGLE_THREAD) as workers:
        workers.map(compare, _large_blocks(graph.n_nodes))
    return CommonLists(*found)


def _large_blocks(n_nodes: int) -> list[slice]:
    """A few blocks for each thread, because each takes memory for all nodes."""
    size = max(_SMALLEST_BLOCK, n_nodes // 16)
    return [slice(at, min(at + size, n_nodes)) for at in range(0, n_nodes, size)]


def rank_back(graph: KnnGraph) -> npt.NDArray[np.uint16]:
    """Rank of each node in the list of each of its neighbours, from 1; 0 where not listed."""
    return compare_lists(graph, 0).back


def _small_indices(graph: KnnGraph) -> npt.NDArray[Any]:
    """Neighbours as int32 if the node numbers fit: twice as many fill a cache line."""
    small = graph.n_nodes < np.iinfo(np.int32).max
    return graph.neighbours.astype(np.int32) if small else graph.neighbours


def link_both_ways(
    graph: KnnGraph, value: FloatArray, rank_back: npt.NDArray[np.uint16]
) -> csr_matrix:
    """The symmetric matrix of the edges, with the larger value of both directions.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    value : ndarray of shape (n_nodes, k), float32
        Of each edge.
    rank_back : ndarray of shape (n_nodes, k)
        Rank of each node in the list of its neighbour, from 1; 0 where it is not listed.

    Returns
    -------
    links : csr_matrix of shape (n_nodes, n_nodes), rows sorted by column
    """
    from hilander.linkage.evidence.edge_kernels import count_entries, fill_rows, sort_rows

    listed = _small_indices(graph)
    starts = np.concatenate([[0], np.cumsum(count_entries(listed, rank_back))])
    columns, ordered = np.empty((2, starts[-1]), dtype=listed.dtype)
    values, ordered_values = np.empty((2, starts[-1]), dtype=np.float32)
    fill_rows(listed, rank_back, value, starts, columns, values)
    sort_rows(starts, columns, values, ordered, ordered_values)
    return csr_matrix((ordered_values, ordered, starts), (graph.n_nodes, graph.n_nodes))


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
        self._scratch = local()  # zeros for all nodes, once for each thread

    def of(self, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Number, sum of i, sum of j and sum of products, each of shape (block, k)."""
        from hilander.linkage.evidence.edge_kernels import sum_common

        links, neighbours = self.links, self.graph.neighbours[rows]
        sums = np.empty((4, *neighbours.shape), dtype=np.float32)
        if not hasattr(self._scratch, "held"):
            self._scratch.held = np.zeros(self.graph.n_nodes, dtype=np.float32)
        held = self._scratch.held
        sum_common(links.indptr, links.indices, links.data, neighbours, rows.start, held, sums)
        count, of_i, of_j, both = sums
        return count, of_i, of_j, both
