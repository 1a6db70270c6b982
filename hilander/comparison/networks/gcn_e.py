"""GCN-E: which of a vertex's more confident neighbours it belongs to (Yang et al., CVPR 2020)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from hilander.arrays.rows import FloatArray, IntArray
from hilander.comparison.networks.subgraphs import (
    SubgraphNetwork,
    Subgraphs,
    connect_nodes,
    linkage_loss,
    make_subgraph_inputs,
)
from hilander.comparison.networks.training import GcnSettings, reflect_axes, train_on_examples
from hilander.graph.knn_graph import KnnGraph

NEAR = 5  # a candidate is joined to those of its nearest neighbours that are candidates too
_BLOCK = 512  # sub-graphs at a time, to bound the memory


def build_candidate_subgraphs(
    graph: KnnGraph, confidence: FloatArray, pivots: IntArray
) -> Subgraphs:
    """The sub-graph of each vertex's candidates: neighbours of higher confidence.

    Parameters
    ----------
    graph : KnnGraph
    confidence : ndarray of shape (n_nodes,)
    pivots : ndarray of shape (n_pivots,)

    Returns
    -------
    graphs : Subgraphs
        Node r of a pivot is its r-th neighbour; those that are no candidates are padding.
    """
    near = graph.neighbours[pivots]  # (n_pivots, k)
    real = confidence[near] > confidence[pivots][:, None]
    nodes = np.where(real, near, pivots[:, None])
    adjacency = connect_nodes(nodes, real, graph.neighbours[:, :NEAR])
    return Subgraphs(pivots, nodes, real, adjacency)


def train_gcn_e(
    features: FloatArray,
    graph: KnnGraph,
    labels: IntArray,
    confidence: FloatArray,
    settings: GcnSettings,
) -> SubgraphNetwork:
    """Train on the candidates of every vertex that has any.

    Parameters
    ----------
    features : ndarray of shape (n_nodes, dim)
    graph : KnnGraph of n_nodes nodes
    labels : ndarray of shape (n_nodes,)
    confidence : ndarray of shape (n_nodes,)
        As GCN-V estimates it, which is what the candidates of unseen data will follow.
    settings : GcnSettings

    Returns
    -------
    network : SubgraphNetwork
    """
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed + 1)
        network = SubgraphNetwork(features.shape[1])
    has_any = (confidence[graph.neighbours] > confidence[:, None]).any(axis=1)
    examples = np.flatnonzero(has_any)
    if not len(examples):
        return network.eval()

    generator = torch.Generator().manual_seed(settings.seed)

    def batch_loss(rows: Tensor) -> Tensor:
        graphs = build_candidate_subgraphs(graph, confidence, examples[rows.numpy()])
        same = labels[graphs.nodes] == labels[graphs.pivots][:, None]
        x, adjacency = make_subgraph_inputs(features, graphs)
        logits = network(reflect_axes(x, generator), adjacency)
        target = torch.from_numpy(same.astype(np.float32))
        return linkage_loss(logits, target, torch.from_numpy(graphs.real))

    train_on_examples(network, batch_loss, len(examples), settings)
    return network


def predict_candidate_linkage(
    network: SubgraphNetwork, features: FloatArray, graph: KnnGraph, confidence: FloatArray
) -> FloatArray:
    """Connectivity of each vertex with its candidates, 0 for other neighbours.

    Returns
    -------
    linkage : ndarray of shape (n_nodes, k), in [0, 1]
    """
    parts = []
    with torch.inference_mode():
        for rows in np.split(np.arange(len(features)), range(_BLOCK, len(features), _BLOCK)):
            graphs = build_candidate_subgraphs(graph, confidence, rows)
            linkage = torch.sigmoid(network(*make_subgraph_inputs(features, graphs)))
            parts.append(linkage * torch.from_numpy(graphs.real))
    return torch.cat(parts).numpy()
