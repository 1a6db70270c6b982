"""L-GCN: linkage of a pivot with its neighbours, from the sub-graph around it (Wang, 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.comparison.networks.subgraphs import (
    SubgraphNetwork,
    Subgraphs,
    connect_nodes,
    linkage_loss,
    make_subgraph_inputs,
)
from hilander.comparison.networks.training import GcnSettings, reflect_axes, train_on_examples
from hilander.graph.knn_graph import KnnGraph

_BLOCK = 512  # sub-graphs at a time, to bound the memory


@dataclass(frozen=True)
class PivotShape:
    """Size of the sub-graph around a pivot.

    Parameters
    ----------
    first, second : int
        Neighbours of the pivot, and of each of them, that belong to it.
    near : int
        A node is joined to those of its nearest neighbours that belong to it.
    most : int
        Largest number of nodes; the nearest hops stay.
    """

    first: int = 10
    second: int = 4
    near: int = 5
    most: int = 40


def build_pivot_subgraphs(graph: KnnGraph, pivots: IntArray, shape: PivotShape) -> Subgraphs:
    """Sub-graphs of two hops around pivots; the pivot itself is not in its own.

    Parameters
    ----------
    graph : KnnGraph
    pivots : ndarray of shape (n_pivots,)
    shape : PivotShape

    Returns
    -------
    graphs : Subgraphs
        The first `first` nodes are the pivot's neighbours, nearest first.
    """
    neighbours = graph.neighbours
    first = neighbours[pivots][:, : shape.first]  # (n_pivots, first)
    second = neighbours[first][:, :, : shape.second].reshape(len(pivots), -1)
    found = np.concatenate([first, second], axis=1)
    fresh = _first_occurrence(found) & (found != pivots[:, None])
    # Fresh nodes move to the front in their order, and the row is cut to its width.
    order = np.argsort(~fresh, axis=1, kind="stable")[:, : shape.most]
    real = np.take_along_axis(fresh, order, axis=1)
    nodes = np.where(real, np.take_along_axis(found, order, axis=1), pivots[:, None])
    return Subgraphs(pivots, nodes, real, connect_nodes(nodes, real, neighbours[:, : shape.near]))


def _first_occurrence(rows: IntArray) -> BoolArray:
    """Whether an entry is the first of its value in its row, the same shape."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    new = np.ones_like(rows, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty_like(new)
    np.put_along_axis(first, order, new, axis=1)
    return first


def train_l_gcn(
    features: FloatArray,
    graph: KnnGraph,
    labels: IntArray,
    settings: GcnSettings,
    shape: PivotShape,
) -> SubgraphNetwork:
    """Train on the sub-graph of every point; the loss counts the pivot's neighbours alone.

    Parameters
    ----------
    features : ndarray of shape (n_nodes, dim)
    graph : KnnGraph of n_nodes nodes
    labels : ndarray of shape (n_nodes,)
    settings : GcnSettings
    shape : PivotShape

    Returns
    -------
    network : SubgraphNetwork
    """
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = SubgraphNetwork(features.shape[1])
    hop = min(shape.first, graph.k)

    generator = torch.Generator().manual_seed(settings.seed)

    def batch_loss(rows: Tensor) -> Tensor:
        graphs = build_pivot_subgraphs(graph, rows.numpy(), shape)
        x, adjacency = make_subgraph_inputs(features, graphs)
        logits = network(reflect_axes(x, generator), adjacency)[:, :hop]
        same = labels[graphs.nodes[:, :hop]] == labels[graphs.pivots][:, None]
        counted = torch.from_numpy(graphs.real[:, :hop])
        return linkage_loss(logits, torch.from_numpy(same.astype(np.float32)), counted)

    train_on_examples(network, batch_loss, len(features), settings)
    return network


def predict_pivot_linkage(
    network: SubgraphNetwork, features: FloatArray, graph: KnnGraph, shape: PivotShape
) -> FloatArray:
    """Probability that each point and its nearest neighbours are one identity.

    Returns
    -------
    linkage : ndarray of shape (n_nodes, min(first, k))
    """
    hop = min(shape.first, graph.k)
    parts = []
    with torch.inference_mode():
        for rows in np.split(np.arange(len(features)), range(_BLOCK, len(features), _BLOCK)):
            graphs = build_pivot_subgraphs(graph, rows, shape)
            logits = network(*make_subgraph_inputs(features, graphs))[:, :hop]
            parts.append(torch.sigmoid(logits))
    return torch.cat(parts).numpy()
