"""GCN-V: a network that estimates how confident a vertex is (Yang et al., CVPR 2020).

The confidence of a vertex is high where its neighbours are near and of its own class:
``c_i = mean_j a_ij (1 if y_i = y_j else -1)``, which is the density of eq. 4. The network is a
graph convolution and a regression head, trained by squared error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import score_by_labels
from hilander.linkage.paper.encoder import GraphConvolution

_BLOCK = 8_192


@dataclass(frozen=True)
class GcnSettings:
    """How the peers' networks are trained.

    Parameters
    ----------
    epochs, batch_size, hidden : int
    learning_rate : float
        Of AdamW, annealed to zero along a cosine.
    seed : int
    """

    epochs: int = 60
    batch_size: int = 1_024
    hidden: int = 256
    learning_rate: float = 2e-3
    seed: int = 0


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
        shown = reflect_axes(x, generator)
        predicted = network(shown, rows, neighbours[rows], affinity[rows])
        return F.mse_loss(predicted, target[rows])

    descend(network, batch_loss, len(features), settings)
    return network.eval()


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


def reflect_axes(x: Tensor, generator: torch.Generator) -> Tensor:
    """Swap and mirror the axes at random, the same for all rows; cosines stay as they are.

    The published training does without. On a few hundred identities, rather than on ten thousand,
    the networks learn them by heart, and this keeps them from it.

    Parameters
    ----------
    x : Tensor of shape (..., dim)
    generator : torch.Generator
    """
    dim = x.shape[-1]
    order = torch.randperm(dim, generator=generator)
    sign = torch.randint(0, 2, (dim,), generator=generator) * 2 - 1
    return x[..., order] * sign


def descend(
    network: nn.Module,
    batch_loss: Callable[[Tensor], Tensor],
    n_examples: int,
    settings: GcnSettings,
) -> None:
    """Minimise a loss over batches of examples, in place.

    Parameters
    ----------
    network : Module
    batch_loss : callable rows -> scalar Tensor
    n_examples : int
        Every epoch sees each once, in random order.
    settings : GcnSettings
    """
    optimizer = torch.optim.AdamW(network.parameters(), settings.learning_rate, weight_decay=1e-5)
    rng = np.random.default_rng([settings.seed, 2])
    n_batches = -(-n_examples // settings.batch_size)
    n_steps, step = settings.epochs * n_batches, 0
    network.train()
    for _ in range(settings.epochs):
        for rows in np.array_split(rng.permutation(n_examples), n_batches):
            rate = settings.learning_rate * 0.5 * (1 + np.cos(np.pi * step / n_steps))
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = batch_loss(torch.from_numpy(rows))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            step += 1
