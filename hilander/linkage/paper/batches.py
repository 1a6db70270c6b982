"""Mini-batches of nodes with their exact neighbourhoods."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Hop:
    """What one encoder layer needs; all indices are rows of the layer's input.

    Parameters
    ----------
    centres : Tensor of shape (n_centres,)
    neighbours : Tensor of shape (n_centres, k)
    affinity : Tensor of shape (n_centres, k)
    """

    centres: Tensor
    neighbours: Tensor
    affinity: Tensor


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A batch of nodes and, layer by layer, all that their edges' scores depend on.

    Parameters
    ----------
    hops : list of Hop, one for each encoder layer
        The first reads rows of the whole graph's features, each later one the output of the hop
        before. Nothing is sampled: the scores equal those of the whole graph.
    nodes : Tensor of shape (n_batch,)
        The batch's nodes, as rows of the last hop's output.
    neighbours : Tensor of shape (n_batch, k)
        Their neighbours, as rows of the last hop's output.
    """

    hops: list[Hop]
    nodes: Tensor
    neighbours: Tensor


def gather_neighbourhood(
    neighbours: Tensor, affinity: Tensor, nodes: Tensor, layers: int
) -> Neighbourhood:
    """Collect what the edges of `nodes` depend on through `layers` encoder layers.

    Parameters
    ----------
    neighbours : Tensor of shape (n_nodes, k), of the whole graph
    affinity : Tensor of shape (n_nodes, k)
    nodes : Tensor of shape (n_batch,)
        The nodes to score.
    layers : int
        Number of encoder layers.

    Returns
    -------
    neighbourhood : Neighbourhood
    """
    n_nodes = len(neighbours)
    needed = [_with_neighbours(nodes, neighbours)]  # nodes each layer must encode, last first
    for _ in range(layers - 1):
        needed.append(_with_neighbours(needed[-1], neighbours))
    needed.reverse()

    hops, place = [], None  # the first layer reads the whole graph: a node's place is its index
    for centres in needed:
        reached = neighbours[centres]
        at = centres if place is None else place[centres]
        hops.append(Hop(at, reached if place is None else place[reached], affinity[centres]))
        place = torch.empty(n_nodes, dtype=torch.int64, device=nodes.device)
        place[centres] = torch.arange(len(centres), device=nodes.device)
    if place is None:
        raise ValueError("layers must be at least 1")
    return Neighbourhood(hops, place[nodes], place[neighbours[nodes]])


def _with_neighbours(nodes: Tensor, neighbours: Tensor) -> Tensor:
    """The nodes and all their neighbours, once each, rising."""
    reached = torch.zeros(len(neighbours), dtype=torch.bool, device=nodes.device)
    reached[nodes] = True
    reached[neighbours[nodes].flatten()] = True
    return torch.nonzero(reached).flatten()
