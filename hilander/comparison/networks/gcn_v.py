"""GCN-V: a network that estimates the confidence of a vertex (Yang et al., CVPR 2020).

The confidence of a vertex is high if its neighbours are near and of its own class:
``c_i = mean_j a_ij (1 if y_i = y_j else -1)``, which is the density of eq. 4. The network is a
graph convolution and a regression head, trained by squared error.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hilander.arrays.rows import FloatArray, IntArray
from hilander.comparison.networks.training import GcnSettings, reflect_axes, train_on_examples
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import score_by_labels
from hilander.linkage.paper.encoder import GraphConvolution

_BLOCK = 8_192  # vertices at a time, to bound the memory


class GcnV(nn.Module):
    """One graph convolution on ``[x_i, sum_j w_ij x_j]``, then a regression to one value."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.encoder = GraphConvolution(dim, hidden)
        self.regress = nn.Sequential(
            nn.Linear(hidden, hidden), nn.PReLU(hidden), nn.Linear(hidden, 1)
        )

    def forward(self, x: Tensor, nodes: Tensor, neighbours: Tensor, affinity: Tensor) -> Tensor:
        """Confidence of some nodes, shape (n_batch,).

        Parameters
        ----------
        x : Tensor of shape (n_nodes, dim)
        nodes : Tensor of shape (n_batch,), rows of x
        neighbours : Tensor of shape (n_batch, k), rows of x
        affinity : Tensor of shape (n_batch, k)
        """
        confidence: Tensor = self.regress(self.encoder(x, nodes, neighbours, affinity))
        return confidence.squeeze(1)


def vertex_confidence(graph: KnnGraph, labels: IntArray) -> FloatArray:
    """Ground-truth confidence of each vertex, shape (n_nodes,), in [-1, 1]."""
    return score_by_labels(graph, labels).density


def train_gcn_v(
    features: FloatArray, graph: KnnGraph, labels: IntArray, settings: GcnSettings
) -> GcnV:
    """Train a network to estimate the confidence of vertices.

    Parameters
    ----------
    features : ndarray of shape (n_nodes, dim)
    graph : KnnGraph of n_nodes nodes
    labels : ndarray of shape (n_nodes,)
    settings : GcnSettings

    Returns
    -------
    network : GcnV
    """
    x, neighbours = torch.from_numpy(features), torch.from_numpy(graph.neighbours)
    affinity = torch.from_numpy(graph.affinity)
    target = torch.from_numpy(vertex_confidence(graph, labels))
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        network = GcnV(features.shape[1], settings.hidden)

    generator = torch.Generator().manual_seed(settings.seed)

    def batch_loss(rows: Tensor) -> Tensor:
        predicted = network(reflect_axes(x, generator), rows, neighbours[rows], affinity[rows])
        return F.mse_loss(predicted, target[rows])

    train_on_examples(network, batch_loss, len(features), settings)
    return network


def estimate_confidence(network: GcnV, features: FloatArray, graph: KnnGraph) -> FloatArray:
    """Confidence of every vertex, shape (n_nodes,)."""
    x, neighbours = torch.from_numpy(features), torch.from_numpy(graph.neighbours)
    affinity = torch.from_numpy(graph.affinity)
    with torch.inference_mode():
        parts = [
            network(x, rows, neighbours[rows], affinity[rows])
            for rows in torch.split(torch.arange(len(features)), _BLOCK)
        ]
    return torch.cat(parts).numpy()
