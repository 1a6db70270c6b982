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
from hilander.linkage.evidence.registry import (
    compute_columns,
    context_inputs,
    feature_names,
    features_of,
    first_stage_groups,
)
from hilander.linkage.evidence.second_stage import SecondStageMeasures
from hilander.linkage.evidence.set_context import SetMeasures, add_context


class EdgeFeatures:
    """Features of the first stage, for a block of nodes at a time.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    nodes : Nodes of the same length
        If they have `links`, the features of super-nodes are added.
    background : Background of the points
    relative_sizes : bool
        Add the sizes of super-nodes relative to those of the whole set.
    """

    def __init__(
        self,
        graph: KnnGraph,
        nodes: Nodes,
        background: Background,
        *,
        relative_sizes: bool = False,
    ) -> None:
        self.super_nodes = nodes.links is not None
        groups = first_stage_groups(super_nodes=self.super_nodes, relative_sizes=relative_sizes)
        self.features = features_of(*groups)
        self.measures = EdgeMeasures(graph, nodes, background)

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


def compute_edge_features(
    graph: KnnGraph, nodes: Nodes, background: Background, *, relative_sizes: bool = False
) -> FloatArray:
    """Features of the first stage for every edge; the parameters are those of `EdgeFeatures`.

    Returns
    -------
    edge_features : ndarray of shape (n_nodes, k, n_features), float32
    """
    features = EdgeFeatures(graph, nodes, background, relative_sizes=relative_sizes)
    return features.of(slice(0, graph.n_nodes))


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


def select_context_inputs(edge_features: FloatArray) -> FloatArray:
    """The columns of super-nodes that the set context reads, shape (..., n_inputs)."""
    names = feature_names(*first_stage_groups(super_nodes=True))
    return edge_features[..., [names.index(name) for name in context_inputs()]]


def compute_context(inputs: FloatArray, probability: FloatArray) -> FloatArray:
    """The set context of a graph of super-nodes.

    Parameters
    ----------
    inputs : ndarray of shape (n_nodes, k, n_inputs)
        As `select_context_inputs` gives them.
    probability : ndarray of shape (n_nodes, k)
        Of the first stage.

    Returns
    -------
    context : ndarray of shape (n_context,), float32
    """
    measures = SetMeasures(inputs, context_inputs(), probability)
    values = [feature.kernel(measures) for feature in features_of("set context")]
    return np.asarray(values, dtype=np.float32)


def add_second_stage(
    graph: KnnGraph,
    edge_features: FloatArray,
    probability: FloatArray,
    *,
    set_context: bool = False,
) -> FloatArray:
    """Features of the first stage and those that the second stage adds, for every edge.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    edge_features : ndarray of shape (n_nodes, k, width)
    probability : ndarray of shape (n_nodes, k)
        Of the first stage.
    set_context : bool
        Add the set context, too; for super-nodes.

    Returns
    -------
    edge_features : ndarray of shape (n_nodes, k, wider), float32
    """
    both = np.concatenate([edge_features, compute_second_stage(graph, probability)], axis=-1)
    if not set_context:
        return both
    return add_context(both, compute_context(select_context_inputs(edge_features), probability))
