"""The trained network as a scorer: a graph and its nodes in, edge scores out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hilander.data.arrays import FloatArray
from hilander.graph import EdgeScores, KnnGraph, Nodes, edge_density, join_copies
from hilander.model.device import choose_device
from hilander.model.lander import Lander, same_probability
from hilander.model.settings import Features

_NODE_BLOCK = 8_192


def show_nodes(nodes: Nodes, features: Features) -> FloatArray:
    """What each node shows the network: identity, average, or both side by side.

    Parameters
    ----------
    nodes : Nodes
    features : {"identity", "average", "concat"}

    Returns
    -------
    shown : ndarray of shape (n_nodes, dim) or, for "concat", (n_nodes, 2 * dim)
    """
    if features == "identity":
        return nodes.identity
    if features == "average":
        return nodes.average
    if features == "concat":
        return np.concatenate([nodes.identity, nodes.average], axis=1)
    raise ValueError(f"unknown features {features!r}")


@dataclass(frozen=True, eq=False)
class Predictor:
    """Scores graphs with a trained network.

    Parameters
    ----------
    network : Lander
    device : str
        "auto" takes a GPU if there is one.
    join_copies : bool
        Hold exact copies to be one identity, whatever the network says of a pair it was never
        shown in training.
    """

    network: Lander
    device: str = "auto"
    join_copies: bool = False

    def __call__(self, graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        """Linkage of every edge and density of every node.

        Parameters
        ----------
        graph : KnnGraph of n_nodes nodes
        nodes : Nodes of the same length

        Returns
        -------
        scores : EdgeScores
        """
        place = choose_device(self.device)
        network = self.network.to(place).eval()
        with torch.inference_mode():
            x = torch.from_numpy(show_nodes(nodes, network.settings.features)).to(place)
            sources, centres = self._map_nodes(x, graph, place)
            linkage = self._score_edges(sources, centres, graph, place)
        if self.join_copies:
            linkage = join_copies(graph, linkage)
        return EdgeScores(linkage, edge_density(graph.affinity, linkage))

    def encode(self, graph: KnnGraph, nodes: Nodes) -> FloatArray:
        """Encodings h' of every node, shape (n_nodes, width)."""
        place = choose_device(self.device)
        network = self.network.to(place).eval()
        with torch.inference_mode():
            x = torch.from_numpy(show_nodes(nodes, network.settings.features)).to(place)
            blocks = [part.cpu() for part in self._encode_blocks(x, graph, place)]
        return torch.cat(blocks).numpy()

    def _encode_blocks(self, x: Tensor, graph: KnnGraph, place: torch.device) -> Iterator[Tensor]:
        """Encodings, a block of nodes at a time; all layers but the last are done whole first."""
        neighbours = torch.from_numpy(graph.neighbours).to(place)
        affinity = torch.from_numpy(graph.affinity).to(place)
        everyone = torch.arange(graph.n_nodes, device=place)
        for layer in self.network.encoder[:-1]:
            parts = [
                layer(x, rows, neighbours[rows], affinity[rows])
                for rows in torch.split(everyone, _NODE_BLOCK)
            ]
            x = torch.cat(parts)
        for rows in torch.split(everyone, _NODE_BLOCK):
            yield self.network.encoder[-1](x, rows, neighbours[rows], affinity[rows])

    def _map_nodes(self, x: Tensor, graph: KnnGraph, place: torch.device) -> tuple[Tensor, Tensor]:
        """The linkage head's two per-node maps, each of shape (n_nodes, head_width)."""
        head, width = self.network.linkage, self.network.settings.head_width
        sources = torch.empty(graph.n_nodes, width, device=place)
        centres = torch.empty(graph.n_nodes, width, device=place)
        done = 0
        for encoded in self._encode_blocks(x, graph, place):
            rows = slice(done, done + len(encoded))
            sources[rows], centres[rows] = head.of_source(encoded), head.of_centre(encoded)
            done = rows.stop
        return sources, centres

    def _score_edges(
        self, sources: Tensor, centres: Tensor, graph: KnnGraph, place: torch.device
    ) -> FloatArray:
        """Linkage of every edge, shape (n_nodes, k), a block of nodes at a time."""
        linkage = np.empty((graph.n_nodes, graph.k), dtype=np.float32)
        for start in range(0, graph.n_nodes, _NODE_BLOCK):
            rows = slice(start, start + _NODE_BLOCK)
            reached = torch.from_numpy(graph.neighbours[rows]).to(place)
            logits = self.network.linkage(sources, centres[rows], reached)
            linkage[rows] = same_probability(logits).cpu().numpy()
        return linkage
