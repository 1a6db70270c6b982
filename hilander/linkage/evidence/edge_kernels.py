"""Compiled loops over edges: what the neighbour lists and the links of both ends have in common.

The entries of one node are written into an array of all nodes and serve all edges of the node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.compiled import compiled
from hilander.arrays.rows import FloatArray

_SEARCH_FROM = 16  # times as long as the other row: a longer row is searched, not read


@compiled
def compare_lists_of(
    listed: npt.NDArray[Any],
    first: int,
    last: int,
    close: int,
    place: npt.NDArray[np.int32],
    found: npt.NDArray[np.uint16],
) -> None:
    """Compare the lists of both ends of the edges of consecutive nodes.

    Parameters
    ----------
    listed : ndarray of shape (n_nodes, k)
        Neighbours of each node.
    first, last : int
        The nodes.
    close : int
        How many neighbours count as the closest.
    place : ndarray of shape (n_nodes,)
        Zeros; zeros again afterwards.
    found : ndarray of shape (3, n_nodes, k)
        Written: rank of i in the list of j from 1, 0 where it is not listed; number of neighbours
        that both have; the same among the closest neighbours of both.
    """
    k = listed.shape[1]
    for i in range(first, last):
        for rank in range(k):
            place[listed[i, rank]] = rank + 1
        for edge in range(k):
            j = listed[i, edge]
            back, shared, shared_close = 0, 0, 0
            for rank in range(k):
                m = listed[j, rank]
                back += (rank + 1) * (m == i)
                shared += place[m] > 0
            for rank in range(close):
                at = place[listed[j, rank]]
                shared_close += (at > 0) & (at <= close)
            found[0, i, edge], found[1, i, edge], found[2, i, edge] = back, shared, shared_close
        for rank in range(k):
            place[listed[i, rank]] = 0


@compiled
def count_entries(neighbours: npt.NDArray[Any], back: npt.NDArray[np.uint16]) -> Any:
    """Number of nodes that each node has an edge to or from, shape (n_nodes,)."""
    n_nodes, k = neighbours.shape
    count = np.full(n_nodes, k, dtype=np.int64)
    for i in range(n_nodes):
        for edge in range(k):
            if back[i, edge] == 0:
                count[neighbours[i, edge]] += 1
    return count


@compiled
def fill_rows(
    neighbours: npt.NDArray[Any],
    back: npt.NDArray[np.uint16],
    value: FloatArray,
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[Any],
    values: FloatArray,
) -> None:
    """Fill the rows of the symmetric matrix of edges, with the larger value of both directions."""
    n_nodes, k = neighbours.shape
    end = starts[:-1].copy()
    for i in range(n_nodes):
        for edge in range(k):
            j, rank = neighbours[i, edge], back[i, edge]
            larger = value[i, edge]
            if rank > 0:
                larger = max(larger, value[j, rank - 1])
            else:
                columns[end[j]], values[end[j]] = i, larger
                end[j] += 1
            columns[end[i]], values[end[i]] = j, larger
            end[i] += 1


@compiled
def sort_rows(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[Any],
    values: FloatArray,
    sorted_columns: npt.NDArray[Any],
    sorted_values: FloatArray,
) -> None:
    """Sort the rows of a symmetric matrix by column: its transpose is written row by row."""
    end = starts[:-1].copy()
    for i in range(len(starts) - 1):
        for entry in range(starts[i], starts[i + 1]):
            j = columns[entry]
            sorted_columns[end[j]], sorted_values[end[j]] = i, values[entry]
            end[j] += 1


@compiled
def sum_common(
    starts: npt.NDArray[np.int64],
    columns: npt.NDArray[Any],
    values: FloatArray,
    neighbours: npt.NDArray[Any],
    first: int,
    held: FloatArray,
    sums: FloatArray,
) -> None:
    """Sums over the common entries of the rows of both ends of the edges of consecutive nodes.

    Parameters
    ----------
    starts, columns, values : arrays of a sparse matrix with sorted rows of positive numbers
    neighbours : ndarray of shape (block, k)
        Of the nodes from `first` on.
    first : int
    held : ndarray of shape (n_nodes,)
        Zeros; zeros again afterwards.
    sums : ndarray of shape (4, block, k)
        Written: number of entries, sum of row i, sum of row j, sum of products.
    """
    block, k = neighbours.shape
    for row in range(block):
        begin, end = starts[first + row], starts[first + row + 1]
        for entry in range(begin, end):
            held[columns[entry]] = values[entry]
        for edge in range(k):
            start, stop = starts[neighbours[row, edge]], starts[neighbours[row, edge] + 1]
            count, of_i, of_j, both = 0, 0.0, 0.0, 0.0
            if stop - start > _SEARCH_FROM * (end - begin):
                # A hub, such as a point that thousands of equal points have as a neighbour.
                for entry in range(begin, end):
                    at = start + np.searchsorted(columns[start:stop], columns[entry])
                    if at < stop and columns[at] == columns[entry]:
                        count += 1
                        of_i += values[entry]
                        of_j += values[at]
                        both += values[entry] * values[at]
            else:
                for entry in range(start, stop):
                    own = held[columns[entry]]
                    count += own > 0
                    of_i += own
                    of_j += (own > 0) * values[entry]
                    both += own * values[entry]
            sums[0, row, edge], sums[1, row, edge] = count, of_i
            sums[2, row, edge], sums[3, row, edge] = of_j, both
        for entry in range(begin, end):
            held[columns[entry]] = 0
