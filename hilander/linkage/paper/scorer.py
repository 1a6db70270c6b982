"""The trained network as a scorer: a graph and its nodes in, edge scores out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilander.arrays.rows import FloatArray, row_blocks
from hilander.graph.knn_graph import KnnGraph, edge_blocks
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.nodes import Nodes
from hilander.graph.same_identity import estimate_by_links
from hilander.graph.scores import EdgeScores, edge_density, join_equal_rows
from hilander.learning.device import choose_device, run_blocks
from hilander.linkage.paper.lander import Lander, same_probability
from hilander.linkage.paper.node_table import NodeTable, make_input_table
from hilander.linkage.paper.settings import Features

_MAP_MEMORY = 2**31  # bytes of both maps up to which they are kept, if no limit is given
_GPU_BLOCKS = 32  # factor of the size of blocks on a GPU, which needs more parallel work


def make_inputs(nodes: Nodes, features: Features) -> FloatArray:
    """Input of the network for each node: identity, average, or both concatenated.

    Parameters
    ----------
    nodes : Nodes
    features : {"identity", "average", "concat"}

    Returns
    -------
    inputs : ndarray of shape (n_nodes, dim) or, for "concat", (n_nodes, 2 * dim)
    """
    if features == "identity":
        return nodes.identity
    if features == "average":
        return nodes.average
    if features == "concat":
        return np.concatenate([nodes.identity, nodes.average], axis=1)
    raise ValueError(f"unknown features {features!r}")


@dataclass(frozen=True, eq=False)
class LanderScorer:
    """Scores graphs with a trained network.

    Parameters
    ----------
    network : Lander
    device : str
        "auto" takes a GPU if there is one.
    join_equal_rows : bool
        Set the linkage of equal points to 1. Training has no such pairs, so the network's own
        value is arbitrary.
    memory : int, optional
        Bytes for the linkage head's two maps of the nodes. If both do not fit, one is kept and
        nodes are encoded twice. If one does not fit, it is stored in half precision, which changes
        linkages by some 1e-3. By default half precision is not used.
    """

    network: Lander
    device: str = "auto"
    join_equal_rows: bool = False
    memory: int | None = None

    def bind_points(self, features: FloatArray) -> None:
        """Do nothing: this scorer needs no measure of the points."""

    def measures(self) -> dict[str, Any]:
        """Nothing: this scorer needs no measure of the points."""
        return {}

    def bind_measures(self, measures: Mapping[str, Any]) -> None:
        """Do nothing: this scorer needs no measure of the points."""

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
        linkage = self._score_edges(self._open(graph, nodes))
        if self.join_equal_rows:
            linkage = join_equal_rows(graph, linkage)
        return EdgeScores(linkage, edge_density(graph.affinity, linkage))

    def score_first(
        self, graph: KnnGraph, nodes: Nodes, n_wanted: int, n_around: int
    ) -> EdgeScores:
        """Scores of the first points; encodings of the others are needed, so all are scored."""
        scores = self(graph, nodes)
        return EdgeScores(scores.linkage[:n_wanted], scores.density[:n_wanted])

    def estimate_merges(self, pairs: LinkedPairs) -> npt.NDArray[Any]:
        """The estimate from the links alone; the paper's levels keep none."""
        return estimate_by_links(pairs)

    def encode(self, graph: KnnGraph, nodes: Nodes) -> FloatArray:
        """Encodings h' of every node, shape (n_nodes, width)."""
        encoder = self._open(graph, nodes)
        return encoder.whole(encoder.last).cpu().numpy()

    def _open(self, graph: KnnGraph, nodes: Nodes) -> BlockEncoder:
        place = choose_device(self.device)
        network = self.network.to(place).eval()
        table = make_input_table(nodes, network.settings.features, place)
        return BlockEncoder(network, table, graph)

    def _score_edges(self, encoder: BlockEncoder) -> FloatArray:
        """Linkage of every edge, shape (n_nodes, k), a block of nodes at a time."""
        graph, place, head = encoder.graph, encoder.place, self.network.linkage
        shape = (graph.n_nodes, self.network.settings.head_width)
        number, kind = choose_maps(*shape, self.memory)
        linkage = np.empty((graph.n_nodes, graph.k), dtype=np.float32)
        with torch.inference_mode():
            maps = torch.empty((number, *shape), dtype=kind, device=place)

        def map_nodes(rows: slice) -> None:
            with torch.inference_mode():
                encoded = encoder.last(rows)
                for kept, of in zip(maps, (head.of_source, head.of_centre), strict=False):
                    kept[rows] = of(encoded)

        def score(rows: slice) -> None:
            with torch.inference_mode():
                own = maps[1][rows] if number == 2 else head.of_centre(encoder.last(rows))
                logits = head(maps[0], own, encoder.neighbours[rows])
                linkage[rows] = same_probability(logits).cpu().numpy()

        run_blocks(map_nodes, encoder.blocks, place)
        run_blocks(score, encoder.blocks, place)
        return linkage


def choose_maps(n_nodes: int, width: int, memory: int | None) -> tuple[int, torch.dtype]:
    """Number of the linkage head's maps that are kept, and their precision.

    Parameters
    ----------
    n_nodes, width : int
        Shape of a map.
    memory : int, optional
        Bytes for them; by default two maps are kept while they are small.
    """
    one = 4 * n_nodes * width
    if 2 * one <= (_MAP_MEMORY if memory is None else memory):
        return 2, torch.float32
    return 1, torch.float32 if memory is None or one <= memory else torch.float16


class BlockEncoder:
    """Encodes blocks of nodes. All layers but the last are computed for the whole graph first.

    Parameters
    ----------
    network : Lander
    table : NodeTable
        Inputs of the nodes.
    graph : KnnGraph
    """

    def __init__(self, network: Lander, table: NodeTable, graph: KnnGraph) -> None:
        self.graph, self.place = graph, table.place
        self.neighbours = torch.from_numpy(graph.neighbours).to(self.place)
        self.affinity = torch.from_numpy(graph.affinity).to(self.place)
        per_node = graph.k * network.settings.head_width
        if self.place.type != "cpu":
            per_node = max(1, per_node // _GPU_BLOCKS)
        self.blocks = list(edge_blocks(graph.n_nodes, per_node))
        for layer in network.encoder[:-1]:
            table = NodeTable([self.whole(self._encode_with(layer, table))], self.place)
        self.last = self._encode_with(network.encoder[-1], table)

    def whole(self, encode: Callable[[slice], Tensor]) -> Tensor:
        """Encodings of all nodes, shape (n_nodes, width)."""
        with torch.inference_mode():
            width = encode(slice(0, 1)).shape[1]
            encoded = torch.empty(self.graph.n_nodes, width, device=self.place)

        def fill(rows: slice) -> None:
            with torch.inference_mode():
                encoded[rows] = encode(rows)

        run_blocks(fill, self.blocks, self.place)
        return encoded

    def _encode_with(self, layer: Any, table: NodeTable) -> Callable[[slice], Tensor]:
        """A function that encodes a block of nodes; terms of single nodes are computed now."""
        with torch.inference_mode():
            blocks = row_blocks(table.n_nodes, table.width)
            terms = torch.cat([layer.node_terms(table.rows(rows)) for rows in blocks])

        def encode(rows: slice) -> Tensor:
            near = self.neighbours[rows], self.affinity[rows]
            encoded: Tensor = layer.encode_block(table, terms, rows, *near)
            return encoded

        return encode
