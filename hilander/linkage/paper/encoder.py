"""Graph attention and graph convolution on a fixed-degree graph.

A layer encodes any subset of nodes ("centres") if the features of their neighbours are given. The
same code serves the whole graph, a block of it in inference and a mini-batch in training.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_NEGATIVE_SLOPE = 0.2  # of the attention logits' leaky ReLU


def mix_neighbours(x: Tensor, neighbours: Tensor, weights: Tensor) -> Tensor:
    """Weighted sum of each centre's neighbours, without an edge-sized tensor of features.

    Parameters
    ----------
    x : Tensor of shape (n_sources, width)
    neighbours : Tensor of shape (n_centres, k), int64, rows of x
    weights : Tensor of shape (n_centres, k)

    Returns
    -------
    mixed : Tensor of shape (n_centres, width)
    """
    return F.embedding_bag(neighbours, x, per_sample_weights=weights, mode="sum")


def convolution_weights(affinity: Tensor) -> Tensor:
    """Affinities as weights that sum to one over each node's neighbours.

    A negative cosine has weight 0. A node without a positive neighbour takes the plain mean of its
    neighbours.

    Parameters
    ----------
    affinity : Tensor of shape (n_centres, k)

    Returns
    -------
    weights : Tensor of shape (n_centres, k), each row summing to 1
    """
    positive = affinity.clamp(min=0)
    total = positive.sum(dim=1, keepdim=True)
    even = torch.full_like(affinity, 1 / affinity.shape[1])
    return torch.where(total > 0, positive / total.clamp(min=1e-12), even)


class Table(Protocol):
    """Rows of features in any storage; see `hilander.linkage.paper.node_table`."""

    @property
    def n_nodes(self) -> int: ...  # noqa: D102
    def rows(self, rows: slice) -> Tensor: ...  # noqa: D102
    def mix(self, neighbours: Tensor, weights: Tensor) -> Tensor: ...  # noqa: D102


class GraphConvolution(nn.Module):
    """``h'_i = relu(W [h_i, sum_j w_ij h_j] + b)`` with w the affinities, each row summing to 1."""

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * width_in, width_out)

    def forward(self, x: Tensor, centres: Tensor, neighbours: Tensor, affinity: Tensor) -> Tensor:
        """Encode the centres.

        Parameters
        ----------
        x : Tensor of shape (n_sources, width_in)
        centres : Tensor of shape (n_centres,), rows of x
        neighbours : Tensor of shape (n_centres, k), rows of x
        affinity : Tensor of shape (n_centres, k)

        Returns
        -------
        encoded : Tensor of shape (n_centres, width_out)
        """
        mixed = mix_neighbours(x, neighbours, convolution_weights(affinity))
        return F.relu(self.linear(torch.cat([x.index_select(0, centres), mixed], dim=1)))

    def node_terms(self, inputs: Tensor) -> Tensor:
        """No terms: a convolution needs the neighbours of a node, shape (block, 0)."""
        return inputs[:, :0]

    def encode_block(
        self, table: Table, terms: Tensor, rows: slice, neighbours: Tensor, affinity: Tensor
    ) -> Tensor:
        """What `forward` gives for consecutive centres, from a table.

        Parameters
        ----------
        table : Table of n_nodes rows
        terms : Tensor of shape (n_nodes, n_terms)
            `node_terms` of all rows.
        rows : slice
            The centres.
        neighbours, affinity : Tensor of shape (n_centres, k)

        Returns
        -------
        encoded : Tensor of shape (n_centres, width_out)
        """
        mixed = table.mix(neighbours, convolution_weights(affinity))
        return F.relu(self.linear(torch.cat([table.rows(rows), mixed], dim=1)))


class GraphAttention(nn.Module):
    """Attention over neighbours, averaged over heads.

    ``e_ij = leaky_relu(a_source · W h_j + a_centre · W h_i)``, ``alpha = softmax_j(e)``,
    ``h'_i = relu(mean_heads(W sum_j alpha_ij h_j + b))``. The logits are two products with single
    vectors, and mixing commutes with W, so it happens in the narrower of the two widths.
    """

    def __init__(self, width_in: int, width_out: int, heads: int) -> None:
        super().__init__()
        self.heads, self.width_out = heads, width_out
        self.weight = nn.Parameter(torch.empty(heads, width_out, width_in))
        self.attend_source = nn.Parameter(torch.empty(heads, width_out))
        self.attend_centre = nn.Parameter(torch.empty(heads, width_out))
        self.bias = nn.Parameter(torch.zeros(heads, width_out))
        gain = nn.init.calculate_gain("relu")
        nn.init.xavier_normal_(self.weight.view(heads * width_out, width_in), gain=gain)
        nn.init.xavier_normal_(self.attend_source, gain=gain)
        nn.init.xavier_normal_(self.attend_centre, gain=gain)

    def forward(self, x: Tensor, centres: Tensor, neighbours: Tensor, affinity: Tensor) -> Tensor:
        """Encode the centres; `affinity` is not used (see `GraphConvolution` for shapes)."""
        source = torch.einsum("how,ho->wh", self.weight, self.attend_source)  # (width_in, heads)
        centre = torch.einsum("how,ho->wh", self.weight, self.attend_centre)
        # Gathered by embedding: the gradient of plain indexing is summed in an order that depends
        # on the number of threads.
        from_source = F.embedding(neighbours, x @ source)  # (n_centres, k, heads)
        from_centre = F.embedding(centres, x @ centre).unsqueeze(1)  # (n_centres, 1, heads)
        logits = F.leaky_relu(from_source + from_centre, _NEGATIVE_SLOPE)
        alpha = logits.softmax(dim=1)

        outputs = []
        for head in range(self.heads):
            outputs.append(self._mix_and_map(x, neighbours, alpha[:, :, head].contiguous(), head))
        mean = torch.stack(outputs).mean(dim=0) if self.heads > 1 else outputs[0]
        return F.relu(mean + self.bias.mean(dim=0))

    def node_terms(self, inputs: Tensor) -> Tensor:
        """Terms of each node in the logits, as a neighbour and as a centre, (block, 2 * heads)."""
        vectors = [
            torch.einsum("how,ho->wh", self.weight, attend)
            for attend in (self.attend_source, self.attend_centre)
        ]
        return inputs @ torch.cat(vectors, dim=1)

    def encode_block(
        self, table: Table, terms: Tensor, rows: slice, neighbours: Tensor, affinity: Tensor
    ) -> Tensor:
        """What `forward` gives for consecutive centres (see `GraphConvolution.encode_block`)."""
        from_source = F.embedding(neighbours, terms)[:, :, : self.heads]
        from_centre = terms[rows, self.heads :].unsqueeze(1)
        alpha = F.leaky_relu(from_source + from_centre, _NEGATIVE_SLOPE).softmax(dim=1)
        total = torch.zeros(len(neighbours), self.width_out, device=neighbours.device)
        for head, weight in enumerate(self.weight):
            total += table.mix(neighbours, alpha[:, :, head].contiguous()) @ weight.T
        return F.relu(total / self.heads + self.bias.mean(dim=0))

    def _mix_and_map(self, x: Tensor, neighbours: Tensor, alpha: Tensor, head: int) -> Tensor:
        """``W sum_j alpha_ij h_j`` for one head, shape (n_centres, width_out)."""
        weight = self.weight[head]
        if x.shape[1] <= self.width_out:
            return mix_neighbours(x, neighbours, alpha) @ weight.T
        return mix_neighbours(x @ weight.T, neighbours, alpha)
