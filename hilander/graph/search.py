"""k-NN search: one function in, indices out, so that the engine behind it can change."""

from __future__ import annotations

import numpy as np
from tqdm import tqdm

from hilander.data.arrays import FloatArray, IntArray
from hilander.errors import GraphError
from hilander.graph.knn_graph import KnnGraph, edge_blocks

_QUERY_BLOCK = 16_384
_QUIET_BELOW = 50_000


def build_knn_graph(features: FloatArray, k: int, *, verbose: bool = False) -> KnnGraph:
    """Find the k nearest neighbours of every row by cosine.

    The search is exact. A row is never its own neighbour, even when others equal it; neighbours
    are ordered by affinity and, where affinities are equal, by index.

    Parameters
    ----------
    features : ndarray of shape (n_nodes, dim), float32
        L2-normalised rows.
    k : int
        Number of neighbours, the node itself not counted.
    verbose : bool
        Draw a progress bar for large inputs (only on a terminal).

    Returns
    -------
    graph : KnnGraph of n_nodes nodes
    """
    check_k(k, len(features))
    found = _search_exactly(features, k + 1, verbose)
    # Ordered before one is dropped: the engine names equal ones in an order of its own.
    ordered, affinity = _order_edges(found, edge_affinity(features, found))
    return KnnGraph(*_drop_self(ordered, affinity))


def check_k(k: int, n_nodes: int) -> None:
    """Refuse a k that n_nodes points cannot have."""
    if k < 1:
        raise GraphError(f"k={k} is not a number of neighbours; use k >= 1")
    if k >= n_nodes:
        most = max(n_nodes - 1, 0)
        advice = f"use k <= {most}" if most else "give more embeddings"
        raise GraphError(f"k={k} needs {k + 1} embeddings, got only {n_nodes}; {advice}")


def edge_affinity(features: FloatArray, neighbours: IntArray) -> FloatArray:
    """Cosine of each edge, summed in one fixed order so that equal rows give equal values.

    Parameters
    ----------
    features : ndarray of shape (n_nodes, dim)
        L2-normalised rows.
    neighbours : ndarray of shape (n_nodes, k)

    Returns
    -------
    affinity : ndarray of shape (n_nodes, k), in [-1, 1]
    """
    affinity = np.empty(neighbours.shape, dtype=np.float32)
    for rows in edge_blocks(len(neighbours), neighbours.shape[1] * features.shape[1]):
        ends = features[neighbours[rows]]  # (block, k, dim)
        affinity[rows] = np.einsum("ikd,id->ik", ends, features[rows])
    return np.clip(affinity, -1.0, 1.0, out=affinity)


def _search_exactly(features: FloatArray, count: int, verbose: bool) -> IntArray:
    """Indices of the `count` most similar rows of each row, shape (n_nodes, count)."""
    import faiss

    index = faiss.IndexFlatIP(features.shape[1])
    index.add(features)
    found = np.empty((len(features), count), dtype=np.int64)
    starts = range(0, len(features), _QUERY_BLOCK)
    hide = None if verbose and len(features) > _QUIET_BELOW else True
    for start in tqdm(starts, desc="search", unit="block", disable=hide):
        rows = slice(start, start + _QUERY_BLOCK)
        found[rows] = index.search(features[rows], count)[1]
    return found


def _drop_self(found: IntArray, affinity: FloatArray) -> tuple[IntArray, FloatArray]:
    """Remove each row's own index from shape (n, k + 1), or its last entry if it is not there."""
    is_self = found == np.arange(len(found))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    shape = (len(found), -1)
    return found[~is_self].reshape(shape), affinity[~is_self].reshape(shape)


def _order_edges(neighbours: IntArray, affinity: FloatArray) -> tuple[IntArray, FloatArray]:
    """Sort each row by falling affinity, equal ones by rising index."""
    by_index = np.argsort(neighbours, axis=1, kind="stable")
    neighbours = np.take_along_axis(neighbours, by_index, axis=1)
    affinity = np.take_along_axis(affinity, by_index, axis=1)
    by_affinity = np.argsort(-affinity, axis=1, kind="stable")
    return (
        np.take_along_axis(neighbours, by_affinity, axis=1),
        np.take_along_axis(affinity, by_affinity, axis=1),
    )
