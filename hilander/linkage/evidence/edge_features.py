"""Edge features: the inputs of the edge classifiers, computed by the kernels of the registry."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray
from hilander.graph.knn_graph import KnnGraph, edge_blocks
from hilander.graph.nodes import Nodes
from hilander.linkage.evidence.background import Background
from hilander.linkage.evidence.common_neighbours import rank_back
from hilander.linkage.evidence.edge_measures import EdgeMeasures
from hilander.linkage.evidence.registry import compute_columns, features_of
from hilander.linkage.evidence.second_stage import SecondStageMeasures


class EdgeFeatures:
    """Features of the first stage, for a block of nodes at a time.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    nodes : Nodes of the same length
    background : Background of the points
    n_rows : int, optional
        Nodes whose edges have features, the first ones; all by default.
    """

    def __init__(
        self, graph: KnnGraph, nodes: Nodes, background: Background, n_rows: int | None = None
    ) -> None:
        self.features = features_of("edge")
        self.n_rows = graph.n_nodes if n_rows is None else n_rows
        self.measures = EdgeMeasures(graph, nodes, background, self.n_rows)

    @property
    def rank_back(self) -> npt.NDArray[np.uint16]:
        """Rank of each node in the list of its neighbour, from 1; 0 where it is not listed."""
        return self.measures.lists.back

    def of(self, rows: slice) -> FloatArray:
        """Features of the edges of consecutive nodes, shape (block, k, n_features), float32."""
        block = self.measures.block(rows)
        return compute_columns(self.features, block, block.affinity.shape)


class SecondStageFeatures:
    """Features that the second stage adds, for a block of nodes at a time.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    probability : ndarray of shape (n_nodes, k)
        Of the first stage.
    rank_back : ndarray of shape (n_nodes, k)
        Rank of each node in the list of its neighbour, from 1; 0 where it is not listed.
    """

    def __init__(
        self, graph: KnnGraph, probability: FloatArray, rank_back: npt.NDArray[np.uint16]
    ) -> None:
        self.features = features_of("second stage")
        self.measures = SecondStageMeasures(graph, probability, rank_back)

    def of(self, rows: slice) -> FloatArray:
        """Features of the edges of consecutive nodes, shape (block, k, n_features), float32."""
        block = self.measures.block(rows)
        return compute_columns(self.features, block, block.probability.shape)


def compute_edge_features(graph: KnnGraph, nodes: Nodes, background: Background) -> FloatArray:
    """Features of the first stage for every edge; the parameters are those of `EdgeFeatures`.

    Returns
    -------
    edge_features : ndarray of shape (n_nodes, k, n_features), float32
    """
    return EdgeFeatures(graph, nodes, background).of(slice(0, graph.n_nodes))


def compute_second_stage(graph: KnnGraph, probability: FloatArray) -> FloatArray:
    """Features that the second stage adds for every edge.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    probability : ndarray of shape (n_nodes, k)
        Of the first stage.

    Returns
    -------
    edge_features : ndarray of shape (n_nodes, k, n_features), float32
    """
    second = SecondStageFeatures(graph, probability, rank_back(graph))
    columns = np.empty((*probability.shape, len(second.features)), dtype=np.float32)
    for rows in edge_blocks(graph.n_nodes, graph.k * 2 * graph.k):
        columns[rows] = second.of(rows)
    return columns


def add_second_stage(
    graph: KnnGraph, edge_features: FloatArray, probability: FloatArray
) -> FloatArray:
    """Features of the first stage and those that the second stage adds, for every edge.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    edge_features : ndarray of shape (n_nodes, k, width)
    probability : ndarray of shape (n_nodes, k)
        Of the first stage.

    Returns
    -------
    edge_features : ndarray of shape (n_nodes, k, wider), float32
    """
    return np.concatenate([edge_features, compute_second_stage(graph, probability)], axis=-1)
