"""Trees from parent pointers, by pointer doubling."""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import GraphError


def find_roots(parent: IntArray) -> IntArray:
    """Follow parents to the root of each node's tree.

    Every pass doubles the distance a pointer spans, so about log2(depth) passes suffice.

    Parameters
    ----------
    parent : ndarray of shape (n_nodes,)
        Parent of each node; a root is its own parent.

    Returns
    -------
    root : ndarray of shape (n_nodes,)
    """
    parent = np.asarray(parent, dtype=np.int64)
    root = parent
    for _ in range(max(len(root), 2).bit_length() + 1):
        further = root[root]
        if np.array_equal(further, root):
            # Pointers also stop changing on a cycle of 2, 4, 8 … nodes, but not at a root there.
            if np.array_equal(parent[root], root):
                return root
            break
        root = further
    raise GraphError("the parents form a cycle; every parent must come later in one fixed order")


def label_trees(parent: IntArray) -> tuple[IntArray, IntArray]:
    """Number the trees by the order of their peaks.

    Parameters
    ----------
    parent : ndarray of shape (n_nodes,)
        Parent of each node; a peak is its own parent.

    Returns
    -------
    labels : ndarray of shape (n_nodes,), in [0, n_trees)
    peaks : ndarray of shape (n_trees,), rising
        The node at the root of each tree: ``labels[peaks[c]] == c``.
    """
    peaks = np.flatnonzero(parent == np.arange(len(parent)))
    number = np.empty(len(parent), dtype=np.int64)
    number[peaks] = np.arange(len(peaks))
    return number[find_roots(parent)], peaks
