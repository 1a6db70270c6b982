"""Pooling: each tree of a level becomes one node of the next (eq. 7)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from hilander.arrays.row_source import RowSource
from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.links import Links, cross_links
from hilander.graph.nodes import Nodes
from hilander.graph.scores import EdgeScores

_BLOCK_NUMBERS = 1_000_000  # values of members at a time, so that a block fits the CPU cache


def merge_nodes(
    nodes: Nodes, labels: IntArray, peaks: IntArray, links: Links | None = None
) -> Nodes:
    """Pool the nodes of each tree into one.

    Parameters
    ----------
    nodes : Nodes
    labels : ndarray of shape (n_nodes,)
        Tree of each node.
    peaks : ndarray of shape (n_trees,)
        Peak of each tree.
    links : Links of the trees, optional

    Returns
    -------
    merged : Nodes of length n_trees
    """
    n_trees = len(peaks)
    by_tree = np.argsort(labels, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_trees))])
    return Nodes(
        identity=RowSource(nodes.identity).take(peaks),
        total=_sum_trees(nodes.total, by_tree, starts),
        size=np.add.reduceat(nodes.size[by_tree], starts[:-1]),
        point=nodes.point[peaks],
        links=links,
    )


def _sum_trees(values: npt.NDArray[Any], by_tree: IntArray, starts: IntArray) -> FloatArray:
    """Sum of the members' values of each tree, shape (n_trees, dim), some trees at a time.

    Parameters
    ----------
    values : ndarray of shape (n_nodes, dim), float16 or float32, also a mapped file
    by_tree : ndarray of shape (n_nodes,)
        The nodes, tree by tree.
    starts : ndarray of shape (n_trees + 1,)
        Where each tree begins among them, and the end.
    """
    source, n_trees = RowSource(values), len(starts) - 1
    sums = np.empty((n_trees, source.dim), dtype=np.float32)
    size = max(1, _BLOCK_NUMBERS // source.dim)
    block = starts[:-1] // size  # about `size` members each
    cuts = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), n_trees]
    for first, last in pairwise(cuts):
        members = by_tree[starts[first] : starts[last]]
        ends = starts[first : last + 1] - starts[first]
        entries = np.ones(len(members), np.float32), np.arange(len(members)), ends
        membership = csr_matrix(entries, (last - first, len(members)))
        sums[first:last] = membership @ source.take(members)
    return sums


def link_trees(
    nodes: Nodes, graph: KnnGraph, scores: EdgeScores, labels: IntArray, n_trees: int
) -> Links:
    """Sum the edges of the points that cross between trees.

    Parameters
    ----------
    nodes : Nodes of the level
        With the links so far, unless they are points.
    graph, scores
        Of the level; used if the nodes are points.
    labels : ndarray of shape (n_nodes,)
        Tree of each node.
    n_trees : int
    """
    if nodes.links is not None:
        return nodes.links.merge(labels, n_trees)
    return cross_links(graph, scores.linkage, labels, n_trees)
