"""LANDER: encode nodes, then predict for each edge whether it joins one identity."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hilander.linkage.paper.batches import Neighbourhood
from hilander.linkage.paper.encoder import GraphAttention, GraphConvolution
from hilander.linkage.paper.settings import NetworkSettings


class LinkageHead(nn.Module):
    """Two logits (different, same) for each edge, from the encodings of its two ends.

    The first linear map of the concatenation ``[h'_j, h'_i]`` is the sum of a map of the neighbour
    and one of the centre, so it is computed once for each node, not for each edge.
    """

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        self.of_source = nn.Linear(width_in, width)
        self.of_centre = nn.Linear(width_in, width)
        self.classify = nn.Sequential(
            nn.PReLU(width), nn.Linear(width, width), nn.PReLU(width), nn.Linear(width, 2)
        )

    def forward(self, sources: Tensor, centres: Tensor, neighbours: Tensor) -> Tensor:
        """Logits of the edges from each centre.

        Parameters
        ----------
        sources : Tensor of shape (n_sources, width)
            `of_source` of the encodings.
        centres : Tensor of shape (n_centres, width)
            `of_centre` of the encodings.
        neighbours : Tensor of shape (n_centres, k), rows of sources

        Returns
        -------
        logits : Tensor of shape (n_centres, k, 2)
        """
        pairs = F.embedding(neighbours, sources) + centres.unsqueeze(1)
        logits: Tensor = self.classify(pairs.flatten(0, 1))
        return logits.view(*neighbours.shape, 2)


class Lander(nn.Module):
    """The network: encoder layers and a linkage head, shared by all levels.

    Parameters
    ----------
    settings : NetworkSettings
    """

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__()
        self.settings = settings
        self.encoder = nn.ModuleList()
        for width_in, width_out in settings.layer_widths:
            if settings.encoder == "attention":
                self.encoder.append(GraphAttention(width_in, width_out, settings.heads))
            else:
                self.encoder.append(GraphConvolution(width_in, width_out))
        self.linkage = LinkageHead(settings.layer_widths[-1][1], settings.head_width)

    def encode(self, x: Tensor, hops: Neighbourhood) -> Tensor:
        """Encode the nodes of the last hop, shape (n_last, width)."""
        for layer, hop in zip(self.encoder, hops.hops, strict=True):
            x = layer(x, hop.centres, hop.neighbours, hop.affinity)
            x = F.dropout(x, self.settings.dropout, self.training)
        return x

    def forward(self, x: Tensor, batch: Neighbourhood) -> Tensor:
        """Logits of every edge that leaves the batch's nodes.

        Parameters
        ----------
        x : Tensor of shape (n_nodes, input_width)
            Input of each node of the whole graph.
        batch : Neighbourhood
            The nodes to score, with the neighbours that their encodings need.

        Returns
        -------
        logits : Tensor of shape (n_batch, k, 2), for (different, same)
        """
        encoded = self.encode(x, batch)
        sources = self.linkage.of_source(encoded)
        centres = self.linkage.of_centre(encoded.index_select(0, batch.nodes))
        logits: Tensor = self.linkage(sources, centres, batch.neighbours)
        return logits


def same_probability(logits: Tensor) -> Tensor:
    """``p_ij = P(y_i = y_j)``, shape (..., k), from logits of shape (..., k, 2)."""
    return torch.softmax(logits, dim=-1)[..., 1]
