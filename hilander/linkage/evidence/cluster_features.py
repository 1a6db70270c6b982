"""Evidence that super-nodes show besides that of points: their sizes, and what crosses between."""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.edges import dot_edges, look_up
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import Nodes
from hilander.linkage.evidence.background import Background

SIZE_EVIDENCE = (
    "smaller",
    "larger",
    "tightness_i",
    "tightness_j",
    "average_linkage",
)
LINK_EVIDENCE = (
    "crossing",
    "crossing_share",
    "crossing_mean",
    "crossing_best",
    "crossing_linkage",
    "crossing_log_odds",
)
SET_EVIDENCE = (
    "smaller_beside_usual",
    "larger_beside_usual",
    "joined_beside_usual",
    "joined_beside_large",
    "large_beside_usual",
    "size_spread",
)


def compare_sizes(graph: KnnGraph, nodes: Nodes, background: Background) -> list[FloatArray]:
    """Columns `SIZE_EVIDENCE` for every edge of a graph of super-nodes, each (n_nodes, k).

    Sizes and tightness of both ends, and the mean cosine of all pairs of their points.
    """
    size = np.log(nodes.size.astype(np.float32))
    average = nodes.average
    tightness = np.linalg.norm(average, axis=1)
    here, there = np.broadcast_to(size[:, None], graph.affinity.shape), size[graph.neighbours]
    return [
        np.minimum(here, there),
        np.maximum(here, there),
        np.broadcast_to(tightness[:, None], graph.affinity.shape),
        tightness[graph.neighbours],
        background.rescale(dot_edges(average, average, graph)),
    ]


def compare_with_set(graph: KnnGraph, nodes: Nodes) -> list[FloatArray]:
    """Columns `SET_EVIDENCE` for every edge of a graph of super-nodes, each (n_nodes, k).

    Sizes beside those of all the others: where clusters are of one size, two of that size are
    hardly pieces of one identity.
    """
    usual, large, spread = summarise_sizes(nodes.size)
    size = np.log(nodes.size.astype(np.float32))
    here, there = size[:, None], size[graph.neighbours]
    joined = np.logaddexp(here, there)
    return [
        np.minimum(here, there) - usual,
        np.maximum(here, there) - usual,
        joined - usual,
        joined - large,
        np.broadcast_to(large - usual, there.shape),
        np.broadcast_to(spread, there.shape),
    ]


def summarise_sizes(size: IntArray) -> tuple[np.float32, np.float32, np.float32]:
    """Median, ninth decile and standard deviation of the log size of a point's cluster.

    Parameters
    ----------
    size : ndarray of shape (n_nodes,)
        Points of each super-node.
    """
    ordered = np.sort(size).astype(np.float64)
    points = np.cumsum(ordered)
    log_size = np.log(ordered)
    usual, large = log_size[np.searchsorted(points, np.array([0.5, 0.9]) * points[-1])]
    mean = np.average(log_size, weights=ordered)
    spread = np.sqrt(np.average((log_size - mean) ** 2, weights=ordered))
    return np.float32(usual), np.float32(large), np.float32(spread)


def compare_links(graph: KnnGraph, nodes: Nodes, background: Background) -> list[FloatArray]:
    """Columns `LINK_EVIDENCE` for every edge of a graph of super-nodes, each (n_nodes, k)."""
    links = nodes.links
    if links is None:
        raise ValueError("the nodes have no links")
    count = look_up(links.count, graph)
    some = np.maximum(count, np.float32(1))
    smaller = np.minimum(nodes.size[:, None], nodes.size[graph.neighbours]).astype(np.float32)

    def rescale(cosine: FloatArray) -> FloatArray:
        return np.where(count > 0, background.rescale(cosine), np.float32(0))

    return [
        np.log1p(count),
        np.minimum(count / (smaller * graph.k), 2),
        rescale((look_up(links.affinity, graph) / some).astype(np.float32)),
        rescale(look_up(links.best, graph)),
        (look_up(links.linkage, graph) / some).astype(np.float32),
        (look_up(links.log_odds, graph) / np.sqrt(some)).astype(np.float32),
    ]
