"""Measures of edges between super-nodes: their sizes, and the links of their points."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.edges import dot_edges, look_up
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import Nodes
from hilander.linkage.evidence.background import Background

_QUANTILES = (0.5, 0.9)  # of the size of a point's cluster: the median and the ninth decile


class ClusterMeasures:
    """Measures of all edges of a graph of super-nodes.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    nodes : Nodes of the same length, with links
    background : Background of the points
    """

    def __init__(self, graph: KnnGraph, nodes: Nodes, background: Background) -> None:
        links = nodes.links
        if links is None:
            raise ValueError("the nodes have no links")
        self.graph, self.background, self.size = graph, background, nodes.size
        self.log_size = np.log(nodes.size.astype(np.float32))
        self.size_summary = summarise_sizes(nodes.size)
        average = nodes.average
        self.tightness = np.linalg.norm(average, axis=1)  # (n_nodes,)
        self.mean_cosine = background.rescale(dot_edges(average, average, graph))
        self.n_links = look_up(links.count, graph)
        self.link_affinity = look_up(links.affinity, graph)
        self.link_best = look_up(links.best, graph)
        self.link_probability = look_up(links.linkage, graph)
        self.link_log_odds = look_up(links.log_odds, graph)

    def block(self, rows: slice) -> ClusterBlock:
        """The measures of the edges of consecutive nodes."""
        return ClusterBlock(self, rows)


class ClusterBlock:
    """Measures of the edges (i, j) of consecutive super-nodes i.

    Arrays have shape (block, k), or (block, 1) where they depend on i alone.
    """

    def __init__(self, measures: ClusterMeasures, rows: slice) -> None:
        self.background, self.k = measures.background, measures.graph.k
        j = measures.graph.neighbours[rows]
        log_size, size = measures.log_size, measures.size
        self.log_size_i, self.log_size_j = log_size[rows, None], log_size[j]
        self.smaller = np.minimum(self.log_size_i, self.log_size_j)
        self.larger = np.maximum(self.log_size_i, self.log_size_j)
        self.smaller_size = np.minimum(size[rows, None], size[j]).astype(np.float32)
        self.median, self.ninth_decile, self.deviation = measures.size_summary
        self.tightness_i, self.tightness_j = measures.tightness[rows, None], measures.tightness[j]
        self.mean_cosine = measures.mean_cosine[rows]
        self.n_links = measures.n_links[rows]
        self.at_least_one = np.maximum(self.n_links, np.float32(1))  # a divisor that is never 0
        self.link_affinity = measures.link_affinity[rows]
        self.link_best = measures.link_best[rows]
        self.link_probability = measures.link_probability[rows]
        self.link_log_odds = measures.link_log_odds[rows]

    @cached_property
    def joined(self) -> FloatArray:
        """Log size of both ends together."""
        joined: FloatArray = np.logaddexp(self.log_size_i, self.log_size_j)
        return joined

    def rescale_links(self, cosine: FloatArray) -> FloatArray:
        """Rescale a cosine of links by the background; 0 where there are no links."""
        return np.where(self.n_links > 0, self.background.rescale(cosine), np.float32(0))


def summarise_sizes(size: IntArray) -> tuple[np.float32, np.float32, np.float32]:
    """Median, ninth decile and standard deviation of the log size of a point's cluster.

    Parameters
    ----------
    size : ndarray of shape (n_nodes,)
        Number of points of each super-node.
    """
    ordered = np.sort(size).astype(np.float64)
    points = np.cumsum(ordered)
    log_size = np.log(ordered)
    median, decile = log_size[np.searchsorted(points, np.array(_QUANTILES) * points[-1])]
    mean = np.average(log_size, weights=ordered)
    deviation = np.sqrt(np.average((log_size - mean) ** 2, weights=ordered))
    return np.float32(median), np.float32(decile), np.float32(deviation)
