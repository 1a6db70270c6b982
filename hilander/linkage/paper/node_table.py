"""Inputs of the nodes, gathered for a block at a time from memory or from a mapped file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from hilander.graph.nodes import Nodes
from hilander.linkage.paper.encoder import mix_neighbours
from hilander.linkage.paper.settings import Features


class NodeTable:
    """Concatenated rows of features, without a copy of all rows.

    Parameters
    ----------
    parts : sequence of ndarray or Tensor, each of shape (n_nodes, some width)
        float32 is used in place. Half precision and mapped files are read in blocks, as float32.
        A part that is given twice is gathered once.
    place : torch device
    """

    def __init__(self, parts: Sequence[npt.NDArray[Any] | Tensor], place: torch.device) -> None:
        self.place = place
        different = {id(part): part for part in parts}
        self._stored = [_store(part, place) for part in different.values()]
        names = list(different)
        self._order = [names.index(id(part)) for part in parts]

    @property
    def width(self) -> int:
        """Width of a row, all parts together."""
        return sum(int(self._stored[number].shape[1]) for number in self._order)

    @property
    def n_nodes(self) -> int:
        """Number of rows."""
        return len(self._stored[0])

    def rows(self, rows: slice) -> Tensor:
        """Consecutive rows, shape (block, width), float32."""
        blocks = [
            part[rows]
            if isinstance(part, Tensor)
            else torch.from_numpy(np.array(part[rows], dtype=np.float32))
            for part in self._stored
        ]
        return self._join(blocks)

    def mix(self, neighbours: Tensor, weights: Tensor) -> Tensor:
        """Weighted sums of rows, shape (block, width).

        Parameters
        ----------
        neighbours : Tensor of shape (block, k), int64
        weights : Tensor of shape (block, k)
        """
        return self._join([_mix_stored(part, neighbours, weights) for part in self._stored])

    def _join(self, blocks: list[Tensor]) -> Tensor:
        if len(self._order) == 1:
            return blocks[0]
        return torch.cat([blocks[number] for number in self._order], dim=1)


def make_input_table(nodes: Nodes, features: Features, place: torch.device) -> NodeTable:
    """Inputs of all nodes, as `make_inputs` but without a copy of the features.

    Parameters
    ----------
    nodes : Nodes
    features : {"identity", "average", "concat"}
    place : torch device
    """
    identity = nodes.identity
    if features == "identity":
        return NodeTable([identity], place)
    # A point is its own average.
    is_point = nodes.total is nodes.identity and bool((nodes.size == 1).all())
    average = identity if is_point else nodes.average
    if features == "average":
        return NodeTable([average], place)
    if features == "concat":
        return NodeTable([identity, average], place)
    raise ValueError(f"unknown features {features!r}")


def _store(part: npt.NDArray[Any] | Tensor, place: torch.device) -> npt.NDArray[Any] | Tensor:
    """A tensor if torch can use the memory without a copy, or on a GPU; else the array."""
    if isinstance(part, Tensor):
        return part.to(place)
    if place.type != "cpu":
        return torch.from_numpy(np.require(part, np.float32, ("C", "W"))).to(place)
    as_it_is = part.dtype == np.float32 and part.flags.writeable and part.flags.c_contiguous
    return torch.from_numpy(part) if as_it_is else part


def _mix_stored(part: npt.NDArray[Any] | Tensor, neighbours: Tensor, weights: Tensor) -> Tensor:
    if isinstance(part, Tensor):
        return mix_neighbours(part, neighbours, weights)
    needed, place = np.unique(neighbours.numpy(), return_inverse=True)
    rows = torch.from_numpy(np.take(part, needed, axis=0).astype(np.float32, copy=False))
    return mix_neighbours(rows, torch.from_numpy(place.reshape(neighbours.shape)), weights)
