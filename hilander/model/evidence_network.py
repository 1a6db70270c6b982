"""The evidence network: linkage from what can be seen of an edge, not from raw embeddings.

Each edge is looked at twice. The first look sees its evidence alone; the second sees the same
evidence and what the first look said about the edges around it. Points and super-nodes have
weights of their own, for super-nodes show more.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hilander.data.arrays import FloatArray
from hilander.errors import ModelError, SettingError
from hilander.graph import (
    Background,
    EdgeScores,
    KnnGraph,
    Nodes,
    edge_density,
    join_copies,
    look_again,
    measure_background,
    n_evidence,
    weigh_edges,
)
from hilander.graph.evidence import SECOND_LOOK
from hilander.model.device import choose_device

_EDGE_BLOCK = 262_144
_FARTHEST = 6.0  # standard deviations beyond which evidence says no more
_CERTAIN = 10.0  # a logit that leaves no doubt


@dataclass(frozen=True)
class EvidenceSettings:
    """The shape of an evidence network.

    Parameters
    ----------
    hidden : int
        Width of each look's two hidden layers.
    """

    hidden: int = 64

    def __post_init__(self) -> None:
        hidden: Any = self.hidden
        if not isinstance(hidden, Integral) or hidden < 1:
            raise SettingError(f"hidden={hidden!r} must be a whole number >= 1")
        object.__setattr__(self, "hidden", int(hidden))  # a numpy integer has no place in JSON

    def to_dict(self) -> dict[str, Any]:
        """Give the settings as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> EvidenceSettings:
        """Rebuild settings from `to_dict`."""
        if set(values) != {"hidden"}:
            raise ModelError(f"the model's settings {sorted(values)} are not of this version")
        return cls(**values)


class Look(nn.Module):
    """A small network on standardised evidence: one logit for each edge."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.layers = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
            nn.Linear(hidden, 1),
        )  # fmt: skip

    def forward(self, evidence: Tensor) -> Tensor:
        """Logits of shape (n_edges,) from evidence of shape (n_edges, width)."""
        standard = (evidence - self.centre) / self.scale
        logits: Tensor = self.layers(standard.clamp(-_FARTHEST, _FARTHEST)).squeeze(-1)
        return logits

    def adapt(self, centre: Tensor, scale: Tensor) -> None:
        """Take the mean and spread of the training evidence, each of shape (width,)."""
        self.centre = centre
        self.scale = scale

    def abstain(self) -> None:
        """Say no to every edge: what is right for a look that nothing could be learnt for."""
        last = self.layers[-1]
        if not isinstance(last, nn.Linear):
            raise TypeError("the last layer of a look is not linear")
        with torch.no_grad():
            last.weight.zero_()
            last.bias.fill_(-_CERTAIN)

    def judge(self, evidence: FloatArray) -> FloatArray:
        """Probabilities of shape (n_nodes, k) from evidence of shape (n_nodes, k, width)."""
        device = self.centre.device
        flat = torch.from_numpy(evidence.reshape(-1, evidence.shape[-1]))
        with torch.inference_mode():
            parts = [
                torch.sigmoid(self(part.to(device))).cpu()
                for part in torch.split(flat, _EDGE_BLOCK)
            ]
        probability: FloatArray = torch.cat(parts).numpy().reshape(evidence.shape[:-1])
        return probability


class EvidenceNetwork(nn.Module):
    """Two looks at points and two at super-nodes.

    Parameters
    ----------
    settings : EvidenceSettings
    """

    def __init__(self, settings: EvidenceSettings) -> None:
        super().__init__()
        self.settings = settings
        for name, super_nodes in (("points", False), ("clusters", True)):
            width = n_evidence(super_nodes=super_nodes)
            looks = nn.ModuleList(
                [Look(width, settings.hidden), Look(width + len(SECOND_LOOK), settings.hidden)]
            )
            self.add_module(name, looks)

    def looks(self, *, super_nodes: bool) -> tuple[Look, Look]:
        """The first and the second look at points, or at super-nodes."""
        both = self.get_submodule("clusters" if super_nodes else "points")
        first, second = both.children()
        if not isinstance(first, Look) or not isinstance(second, Look):
            raise TypeError("the network's parts are not looks")
        return first, second

    def judge(self, graph: KnnGraph, evidence: FloatArray, *, super_nodes: bool) -> FloatArray:
        """Linkage of every edge, shape (n_nodes, k), from both looks."""
        first, second = self.looks(super_nodes=super_nodes)
        return second.judge(add_second_look(graph, evidence, first.judge(evidence)))


def add_second_look(graph: KnnGraph, evidence: FloatArray, guess: FloatArray) -> FloatArray:
    """Evidence for the second look: the first look's, and what its guess says of the surroundings.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    evidence : ndarray of shape (n_nodes, k, width)
    guess : ndarray of shape (n_nodes, k)

    Returns
    -------
    evidence : ndarray of shape (n_nodes, k, width + len(SECOND_LOOK))
    """
    return np.concatenate([evidence, look_again(graph, guess)], axis=-1)


class EvidencePredictor:
    """Scores graphs with an evidence network.

    The background is measured when the points themselves are scored and kept for the levels that
    follow, so one predictor scores one hierarchy at a time.

    Parameters
    ----------
    network : EvidenceNetwork
    device : str
        "auto" takes a GPU if there is one.
    """

    def __init__(self, network: EvidenceNetwork, device: str = "auto") -> None:
        self.network, self.device = network, device
        self._background: Background | None = None

    def __call__(self, graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        """Linkage of every edge and density of every node."""
        super_nodes = nodes.links is not None
        if not super_nodes or self._background is None:
            self._background = measure_background(nodes.identity)
        network = self.network.to(choose_device(self.device)).eval()
        evidence = weigh_edges(graph, nodes, self._background)
        linkage = join_copies(graph, network.judge(graph, evidence, super_nodes=super_nodes))
        return EdgeScores(linkage, edge_density(graph.affinity, linkage))


def edge_loss(logits: Tensor, same: Tensor) -> Tensor:
    """Mean cross-entropy of edges (eq. 10), counted both ways."""
    return F.binary_cross_entropy_with_logits(logits, same)
