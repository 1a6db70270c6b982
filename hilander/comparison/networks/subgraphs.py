"""Small graphs around a pivot, and the network that L-GCN and GCN-E run on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hilander.arrays.rows import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Subgraphs:
    """One padded sub-graph for each of several pivots.

    Parameters
    ----------
    pivots : ndarray of shape (n_pivots,)
    nodes : ndarray of shape (n_pivots, width)
        The sub-graph's nodes; padding repeats the pivot.
    real : ndarray of shape (n_pivots, width), bool
        False for padding.
    adjacency : ndarray of shape (n_pivots, width, width), float32
        Rows that sum to 1 over a node's neighbours within the sub-graph, or are all 0.
    """

    pivots: IntArray
    nodes: IntArray
    real: BoolArray
    adjacency: FloatArray


def connect_nodes(nodes: IntArray, real: BoolArray, neighbours: IntArray) -> FloatArray:
    """Join two nodes of a sub-graph if one is among the nearest neighbours of the other.

    Parameters
    ----------
    nodes : ndarray of shape (n_pivots, width)
    real : ndarray of shape (n_pivots, width), bool
    neighbours : ndarray of shape (n_nodes, u)
        The u nearest neighbours of every node of the whole graph.

    Returns
    -------
    adjacency : ndarray of shape (n_pivots, width, width), float32
        Symmetric before each row is divided by its sum.
    """
    n_pivots, width = nodes.shape
    joined = np.zeros((n_pivots, width, width), dtype=bool)
    for column in range(neighbours.shape[1]):
        near = neighbours[nodes, column]  # (n_pivots, width)
        joined |= near[:, :, None] == nodes[:, None, :]
    joined |= joined.transpose(0, 2, 1)
    joined &= real[:, :, None] & real[:, None, :]
    total = joined.sum(axis=2, keepdims=True)
    adjacency: FloatArray = (joined / np.maximum(total, 1)).astype(np.float32)
    return adjacency


class SubgraphNetwork(nn.Module):
    """Graph convolutions with the mean of neighbours, then a linkage score for every node.

    ``h' = relu(W [h, A h])`` in each layer; the input is a node's feature minus its pivot's.
    """

    def __init__(self, dim: int, widths: tuple[int, ...] = (128, 128, 64)) -> None:
        super().__init__()
        self.scale = nn.BatchNorm1d(dim, affine=False)
        pairs = zip((dim, *widths[:-1]), widths, strict=True)
        self.layers = nn.ModuleList([nn.Linear(2 * before, after) for before, after in pairs])
        last = widths[-1]
        self.classify = nn.Sequential(nn.Linear(last, last), nn.PReLU(last), nn.Linear(last, 1))

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        """Logit that a node is of its pivot's identity.

        Parameters
        ----------
        x : Tensor of shape (n_pivots, width, dim)
        adjacency : Tensor of shape (n_pivots, width, width)

        Returns
        -------
        logits : Tensor of shape (n_pivots, width)
        """
        x = self.scale(x.flatten(0, 1)).view_as(x)
        for layer in self.layers:
            x = F.relu(layer(torch.cat([x, adjacency @ x], dim=2)))
        logits: Tensor = self.classify(x.flatten(0, 1))
        return logits.view(x.shape[:2])


def make_subgraph_inputs(features: FloatArray, graphs: Subgraphs) -> tuple[Tensor, Tensor]:
    """Inputs of the network: differences to the pivot (n_pivots, width, dim), and adjacency."""
    difference = features[graphs.nodes] - features[graphs.pivots][:, None, :]
    return torch.from_numpy(difference), torch.from_numpy(graphs.adjacency)


def linkage_loss(logits: Tensor, same: Tensor, counted: Tensor) -> Tensor:
    """Mean binary cross-entropy over the counted nodes; 0 if there are none."""
    if not bool(counted.any()):
        return logits.sum() * 0
    return F.binary_cross_entropy_with_logits(logits[counted], same[counted])
