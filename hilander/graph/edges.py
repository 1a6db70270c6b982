"""Arithmetic over the edges of a graph: one value for each, shape (n_nodes, k)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from hilander.data.arrays import FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph

_ROW_BLOCK = 4_096
_EDGE_BLOCK = 400_000


def logit_of(probability: FloatArray, least: float = 1e-4) -> FloatArray:
    """``log(p / (1 - p))``, with p kept `least` away from 0 and 1."""
    kept = np.clip(probability, least, 1 - least)
    logit: FloatArray = np.log(kept / (1 - kept))
    return logit


def edge_matrix(graph: KnnGraph, values: FloatArray) -> csr_matrix:
    """A sparse (n_nodes, n_nodes) matrix with one value for each edge; columns are not sorted."""
    starts = np.arange(0, values.size + 1, graph.k)
    shape = (graph.n_nodes, graph.n_nodes)
    return csr_matrix((values.ravel(), graph.neighbours.ravel(), starts), shape).sorted_indices()


def look_up(matrix: csr_matrix, graph: KnnGraph) -> FloatArray:
    """Entry (i, j) of a sparse matrix for every edge, shape (n_nodes, k); 0 where there is none."""
    matrix.sort_indices()
    n_nodes = matrix.shape[0]
    held = _keys(np.repeat(np.arange(n_nodes), np.diff(matrix.indptr)), matrix.indices, n_nodes)
    wanted = _keys(_edge_rows(graph), graph.neighbours.ravel(), n_nodes)
    at = np.minimum(np.searchsorted(held, wanted), max(len(held) - 1, 0))
    found = held[at] == wanted if len(held) else np.zeros(len(wanted), dtype=bool)
    values = np.where(found, matrix.data[at] if len(held) else 0, 0)
    return values.astype(np.float32).reshape(graph.neighbours.shape)


def overlap_rows(left: csr_matrix, right: csr_matrix, graph: KnnGraph) -> FloatArray:
    """``sum_m left[i, m] * right[j, m]`` for every edge (i, j), shape (n_nodes, k)."""
    rows, columns = _edge_rows(graph), graph.neighbours.ravel()
    sums = np.empty(len(rows), dtype=np.float32)
    for start in range(0, len(rows), _EDGE_BLOCK):
        part = slice(start, start + _EDGE_BLOCK)
        product = left[rows[part]].multiply(right[columns[part]])
        sums[part] = np.asarray(product.sum(axis=1)).ravel()
    return sums.reshape(graph.neighbours.shape)


def dot_edges(left: FloatArray, right: FloatArray, graph: KnnGraph) -> FloatArray:
    """``left[i] · right[j]`` for every edge (i, j), shape (n_nodes, k)."""
    products = np.empty(graph.neighbours.shape, dtype=np.float32)
    for start in range(0, graph.n_nodes, _ROW_BLOCK):
        rows = slice(start, start + _ROW_BLOCK)
        products[rows] = np.einsum("ikd,id->ik", right[graph.neighbours[rows]], left[rows])
    return products


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Rows of unit length; a zero row stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = vectors / np.maximum(length, np.float32(1e-12))
    return unit


def _edge_rows(graph: KnnGraph) -> IntArray:
    return np.repeat(np.arange(graph.n_nodes), graph.k)


def _keys(rows: IntArray, columns: IntArray, n_nodes: int) -> IntArray:
    return rows.astype(np.int64) * n_nodes + columns
