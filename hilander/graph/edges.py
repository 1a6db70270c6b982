"""Arithmetic over the edges of a graph: one value for each, shape (n_nodes, k)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from hilander.arrays.row_source import RowSource
from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph, edge_blocks

_ENTRY_BLOCK = 500_000  # entries compared at a time; more leave the cache and take twice as long
_HUB = 1_000  # entries of a row, from which on it is searched instead of copied for every edge


def logit_of(probability: FloatArray, least: float = 1e-4) -> FloatArray:
    """``log(p / (1 - p))``, with p kept `least` away from 0 and 1."""
    kept = np.clip(probability, least, 1 - least)
    logit: FloatArray = np.log(kept / (1 - kept))
    return logit


def edge_matrix(graph: KnnGraph, values: FloatArray) -> csr_matrix:
    """A sparse matrix of shape (n_nodes, n_nodes) with one value for each edge."""
    starts = np.arange(0, values.size + 1, graph.k)
    shape = (graph.n_nodes, graph.n_nodes)
    return csr_matrix((values.ravel(), graph.neighbours.ravel(), starts), shape).sorted_indices()


def look_up(matrix: csr_matrix, graph: KnnGraph) -> FloatArray:
    """Entry (i, j) of a sparse matrix for every edge, shape (n_nodes, k); 0 where there is none."""
    values = find_entries(matrix, _edge_rows(graph), graph.neighbours.ravel())
    return values.astype(np.float32).reshape(graph.neighbours.shape)


def find_entries(matrix: csr_matrix, rows: IntArray, columns: IntArray) -> FloatArray:
    """Entries at the given rows and columns, 0 where there is none."""
    matrix.sort_indices()
    n_rows, n_columns = matrix.shape
    held = _keys(np.repeat(np.arange(n_rows), np.diff(matrix.indptr)), matrix.indices, n_columns)
    wanted = _keys(rows, columns, n_columns)
    at = np.minimum(np.searchsorted(held, wanted), max(len(held) - 1, 0))
    found = held[at] == wanted if len(held) else np.zeros(len(wanted), dtype=bool)
    values: FloatArray = np.where(found, matrix.data[at] if len(held) else 0, 0)
    return values


def overlap_rows(left: csr_matrix, right: csr_matrix, graph: KnnGraph) -> FloatArray:
    """``sum_m left[i, m] * right[j, m]`` for every edge (i, j), shape (n_nodes, k)."""
    rows, columns = _edge_rows(graph), graph.neighbours.ravel()
    here, there = np.diff(left.indptr)[rows], np.diff(right.indptr)[columns]
    sums = np.empty(len(rows), dtype=np.float32)
    # Thousands of equal points have the same few neighbours. Copying the row of such a hub for
    # each of its edges would take memory of their number squared, so the hub is searched instead.
    is_plain = np.maximum(here, there) < _HUB
    for part in _blocks(np.flatnonzero(is_plain), here + there):
        product = left[rows[part]].multiply(right[columns[part]])
        sums[part] = np.asarray(product.sum(axis=1)).ravel()
    for part in _blocks(np.flatnonzero(~is_plain & (here <= there)), here):
        sums[part] = _sum_products(left, rows[part], right, columns[part])
    for part in _blocks(np.flatnonzero(~is_plain & (here > there)), there):
        sums[part] = _sum_products(right, columns[part], left, rows[part])
    return sums.reshape(graph.neighbours.shape)


def _blocks(edges: IntArray, entries: IntArray) -> list[IntArray]:
    """Cut a list of edges into blocks whose rows have about `_ENTRY_BLOCK` entries."""
    block = np.cumsum(entries[edges].astype(np.int64)) // _ENTRY_BLOCK
    return [part for part in np.split(edges, np.flatnonzero(np.diff(block)) + 1) if len(part)]


def _sum_products(
    short: csr_matrix, short_rows: IntArray, long: csr_matrix, long_rows: IntArray
) -> FloatArray:
    """``sum_m short[i, m] * long[j, m]`` for pairs (i, j) of rows, by looking up row i in row j."""
    entries = short[short_rows]
    pair = np.repeat(np.arange(len(short_rows)), np.diff(entries.indptr))
    needed, place = np.unique(long_rows, return_inverse=True)
    found = find_entries(long[needed], place[pair], entries.indices)
    total = np.bincount(pair, entries.data * found, minlength=len(short_rows))
    return total.astype(np.float32)


def dot_edges(left: FloatArray, right: FloatArray, graph: KnnGraph) -> FloatArray:
    """``left[i] · right[j]`` for every edge (i, j), shape (n_nodes, k)."""
    products = np.empty(graph.neighbours.shape, dtype=np.float32)
    source = RowSource(right)
    for rows in edge_blocks(graph.n_nodes, graph.k * left.shape[1]):
        ends = source.take(graph.neighbours[rows])  # (block, k, dim)
        products[rows] = dot_block(left[rows], ends)
    return products


def dot_block(left: npt.NDArray[Any], ends: FloatArray) -> FloatArray:
    """``left[i] · ends[i, j]``, shape (block, k), for ends of shape (block, k, dim)."""
    products: FloatArray = np.matmul(ends, left.astype(np.float32, copy=False)[:, :, None])
    return products[:, :, 0]


def _edge_rows(graph: KnnGraph) -> IntArray:
    return np.repeat(np.arange(graph.n_nodes), graph.k)


def _keys(rows: IntArray, columns: IntArray, n_columns: int) -> IntArray:
    return rows.astype(np.int64) * n_columns + columns
