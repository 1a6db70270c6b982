"""The evidence network: linkage from what can be seen of an edge, not from raw embeddings.

Each edge is looked at twice. The first look sees its evidence alone; the second sees the same
evidence and what the first look said about the edges around it. Points and super-nodes have
weights of their own, for super-nodes show more.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hilander.arrays.rows import FloatArray
from hilander.errors import ModelError, SettingError
from hilander.graph.knn_graph import KnnGraph, edge_blocks
from hilander.learning.device import one_thread, run_blocks
from hilander.linkage.evidence.edge_features import (
    SECOND_STAGE,
    EdgeFeatures,
    SecondStageFeatures,
    n_edge_features,
    second_stage_features,
)
from hilander.linkage.evidence.set_context import (
    CONTEXT,
    N_CONTEXT_INPUTS,
    add_context,
    describe_context,
    take_context_inputs,
)

_EDGE_BLOCK = 8_192  # the layers of a member for so many edges stay in the processor's cache
_NUMBERS_PER_EDGE = 128  # evidence and layers, which a block shall hold in the cache
_FARTHEST = 6.0  # standard deviations beyond which evidence says no more
# Names of settings and parts in models of version 0.1.
_OLD_NAMES = {
    "beside_others": "relative_sizes",
    "few_points": "small_set_points",
    "in_context": "set_context",
    "adviser": "prior",
}
_OLD_PARTS = {"few": "small_set", "adviser": "prior"}
_CERTAIN = 10.0  # a logit that leaves no doubt


@dataclass(frozen=True)
class EvidenceSettings:
    """The shape of an evidence network.

    Parameters
    ----------
    hidden : int
        Width of the two hidden layers of each member.
    members : int
        Small networks in each look, whose logits are averaged. Where the data are unlike the
        training set they disagree, and their mean is more careful than any one of them.
    beside_others : bool
        Whether super-nodes show their sizes beside those of all others. It takes many sets of many
        sizes to learn what that says; from one labelled set its own sizes would be learnt.
    few_points : int
        Sets of up to so many points are judged by a network of their own; 0 for none. What near
        means differs between sets of dozens and of thousands, if they are of many embedders.
    in_context : bool
        Whether the second look at super-nodes sees what the edges of the whole set look like. It
        takes many sets to learn what that says, and many points to show it.
    adviser : EvidenceSettings, optional
        The shape of another trained network, whose log-odds are weighed with those of this one.
    own_weight : float
        What those of this one weigh, from 0 to 1; the adviser's weigh the rest.
    """

    hidden: int = 32
    members: int = 5
    relative_sizes: bool = False
    small_set_points: int = 0
    set_context: bool = False
    prior: EvidenceSettings | None = None
    own_weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.own_weight <= 1:
            raise SettingError(f"own_weight={self.own_weight!r} must be from 0 to 1")
        for name in ("relative_sizes", "set_context"):
            if not isinstance(getattr(self, name), bool):
                raise SettingError(f"{name}={getattr(self, name)!r} must be True or False")
        for name, least in (("hidden", 1), ("members", 1), ("small_set_points", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise SettingError(f"{name}={value!r} must be a whole number >= {least}")
            object.__setattr__(self, name, int(value))  # a numpy integer has no place in JSON

    def for_small_sets(self) -> EvidenceSettings:
        """The shape of the network for few points, whose edges are no context for each other."""
        return replace(self.alone(), small_set_points=0, set_context=False)

    def alone(self) -> EvidenceSettings:
        """The same shape without an adviser."""
        return replace(self, prior=None, own_weight=1.0)

    def is_shaped(self, other: EvidenceSettings) -> bool:
        """Whether layers are as wide and as many; what super-nodes show may differ."""
        return (self.hidden, self.members) == (other.hidden, other.members)

    def to_dict(self) -> dict[str, Any]:
        """Give the settings as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> EvidenceSettings:
        """Rebuild settings from `to_dict`."""
        values = {_OLD_NAMES.get(name, name): value for name, value in values.items()}
        known = {field.name for field in fields(cls)}
        if not {"hidden", "members"} <= set(values) <= known:  # early versions had these two
            raise ModelError(f"the model's settings {sorted(values)} are not of this version")
        prior = values.get("prior")
        return cls(**values | {"prior": cls.from_dict(prior) if prior else None})


class EnsembleLinear(nn.Module):
    """One linear layer for each member of a look, all in one product.

    Parameters
    ----------
    members, width, out : int
    """

    def __init__(self, members: int, width: int, out: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(width)
        self.weight = nn.Parameter(torch.empty(members, width, out).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, 1, out).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """From shape (members, n, width) to (members, n, out)."""
        return torch.baddbmm(self.bias, x, self.weight)

    def of(self, member: int, x: Tensor) -> Tensor:
        """The layer of one member, from shape (n, width) to (n, out)."""
        return torch.addmm(self.bias[member], x, self.weight[member])


class EdgeClassifier(nn.Module):
    """A few small networks on standardised evidence: one logit for each edge, their mean.

    Parameters
    ----------
    width : int
        Columns of the evidence.
    settings : EvidenceSettings
    """

    def __init__(self, width: int, settings: EvidenceSettings) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        members, hidden = settings.members, settings.hidden
        self.members = members
        self.layers = nn.Sequential(
            EnsembleLinear(members, width, hidden), nn.GELU(),
            EnsembleLinear(members, hidden, hidden), nn.GELU(),
        )  # fmt: skip
        self.last = EnsembleLinear(members, hidden, 1)

    def forward(self, evidence: Tensor) -> Tensor:
        """Logits of shape (n_edges,) from evidence of shape (n_edges, width)."""
        standard = self._standardise(evidence)
        # One member after the other: its layers stay in the cache, which those of all would not.
        logits = [self._ask(member, standard) for member in range(self.members)]
        return torch.stack(logits).mean(dim=0)

    def member_logits(self, evidence: Tensor) -> Tensor:
        """Logits of each member, shape (members, n_edges).

        Evidence has shape (n_edges, width), or (members, n_edges, width) where each member is
        asked about edges of its own.
        """
        hidden = self.layers(self._standardise(evidence).expand(self.members, -1, -1))
        logits: Tensor = self.last(hidden).squeeze(-1)
        return logits

    def _standardise(self, evidence: Tensor) -> Tensor:
        return ((evidence - self.centre) / self.scale).clamp(-_FARTHEST, _FARTHEST)

    def _ask(self, member: int, standard: Tensor) -> Tensor:
        """Logits of one member, shape (n_edges,)."""
        x = standard
        for layer in self.layers:
            x = layer.of(member, x) if isinstance(layer, EnsembleLinear) else layer(x)
        return self.last.of(member, x).squeeze(-1)

    def set_scaling(self, centre: Tensor, scale: Tensor) -> None:
        """Take the mean and spread of the training evidence, each of shape (width,)."""
        self.centre = centre
        self.scale = scale

    def reject_all(self) -> None:
        """Say no to every edge: what is right for a look that nothing could be learnt for."""
        with torch.no_grad():
            self.last.weight.zero_()
            self.last.bias.fill_(-_CERTAIN)

    def predict(self, evidence: FloatArray) -> FloatArray:
        """Probabilities of shape (n_nodes, k) from evidence of shape (n_nodes, k, width)."""
        device = self.centre.device
        flat = torch.from_numpy(evidence.reshape(-1, evidence.shape[-1]))
        with torch.inference_mode(), one_thread():
            parts = [
                torch.sigmoid(self(part.to(device))).cpu()
                for part in torch.split(flat, _EDGE_BLOCK)
            ]
        probability: FloatArray = torch.cat(parts).numpy().reshape(evidence.shape[:-1])
        return probability


class EvidenceNetwork(nn.Module):
    """Two looks at points and two at super-nodes, and perhaps as many more for few points.

    It may have an adviser: a whole network that was trained before, and is asked as well.

    Parameters
    ----------
    settings : EvidenceSettings
    """

    small_set: EvidenceNetwork | None
    prior: EvidenceNetwork | None

    def __init__(self, settings: EvidenceSettings) -> None:
        super().__init__()
        self.settings = settings
        for name, super_nodes in (("points", False), ("clusters", True)):
            width = n_edge_features(super_nodes=super_nodes, relative_sizes=settings.relative_sizes)
            more = len(SECOND_STAGE) + (len(CONTEXT) if super_nodes and settings.set_context else 0)
            classifiers = nn.ModuleList(
                [EdgeClassifier(width, settings), EdgeClassifier(width + more, settings)]
            )
            self.add_module(name, classifiers)
        self.small_set = (
            EvidenceNetwork(settings.for_small_sets()) if settings.small_set_points else None
        )
        self.prior = EvidenceNetwork(settings.prior) if settings.prior else None

    def for_size(self, n_points: int) -> EvidenceNetwork:
        """The network for sets of so many points: this one, or the one for few."""
        is_few = n_points <= self.settings.small_set_points
        return self.small_set if self.small_set is not None and is_few else self

    def ensemble_for(self, n_points: int) -> list[tuple[float, EvidenceNetwork]]:
        """Weights and networks that judge a set of so many points: this one and its advisers."""
        own = self.settings.own_weight if self.prior is not None else 1.0
        asked = [(own, self.for_size(n_points))]
        if self.prior is not None:
            asked += [((1 - own) * part, one) for part, one in self.prior.ensemble_for(n_points)]
        return asked

    def classifiers(self, *, super_nodes: bool) -> tuple[EdgeClassifier, EdgeClassifier]:
        """The first and the second look at points, or at super-nodes."""
        both = self.get_submodule("clusters" if super_nodes else "points")
        first, second = both.children()
        if not isinstance(first, EdgeClassifier) or not isinstance(second, EdgeClassifier):
            raise TypeError("the network's parts are not looks")
        return first, second

    def predict(self, graph: KnnGraph, evidence: EdgeFeatures) -> FloatArray:
        """Linkage of every edge, shape (n_nodes, k), from both stages.

        Edge features are computed for one block of nodes at a time, once for each stage, because
        those of all edges may not fit in memory.
        """
        first, second = self.classifiers(super_nodes=evidence.super_nodes)
        place = first.centre.device
        guess, linkage = np.empty((2, graph.n_nodes, graph.k), dtype=np.float32)
        blocks = list(edge_blocks(graph.n_nodes, graph.k * _NUMBERS_PER_EDGE))
        set_context = evidence.super_nodes and self.settings.set_context
        context_inputs = np.empty(
            (*guess.shape, N_CONTEXT_INPUTS if set_context else 0), dtype=np.float32
        )

        def classifier(rows: slice) -> None:
            seen = evidence.of(rows)
            guess[rows] = first.predict(seen)
            if set_context:
                context_inputs[rows] = take_context_inputs(seen)

        run_blocks(classifier, blocks, place)
        more = SecondStageFeatures(graph, guess, evidence.lists.back)
        context = describe_context(context_inputs, guess) if set_context else None

        def second_stage_features(rows: slice) -> None:
            seen = np.concatenate([evidence.of(rows), more.of(rows)], axis=-1)
            linkage[rows] = second.predict(seen if context is None else add_context(seen, context))

        run_blocks(second_stage_features, blocks, place)
        return linkage


def insert_part(
    settings: EvidenceSettings, network: EvidenceNetwork, name: str, part: EvidenceNetwork
) -> EvidenceNetwork:
    """A network of these settings with the weights of one, and of another as its part."""
    joined = EvidenceNetwork(settings)
    inside = {f"{name}.{key}": value for key, value in part.state_dict().items()}
    joined.load_state_dict(network.state_dict() | inside)
    return joined.eval()


def rename_old_weight(key: str) -> str:
    """The name that a weight of a model of version 0.1 has now."""
    return ".".join(_OLD_PARTS.get(part, part) for part in key.split("."))


def remove_prior(network: EvidenceNetwork) -> EvidenceNetwork:
    """The network itself, without its adviser."""
    network.prior, network.settings = None, network.settings.alone()
    return network


def add_second_stage(
    graph: KnnGraph, evidence: FloatArray, guess: FloatArray, *, set_context: bool = False
) -> FloatArray:
    """Evidence for the second look: the first look's, and what its guess says of the surroundings.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    evidence : ndarray of shape (n_nodes, k, width)
    guess : ndarray of shape (n_nodes, k)
    in_context : bool
        Whether it says what the whole set looks like, too; for super-nodes.

    Returns
    -------
    evidence : ndarray of shape (n_nodes, k, width + len(SECOND_LOOK))
        And `CONTEXT`, if asked for.
    """
    seen = np.concatenate([evidence, second_stage_features(graph, guess)], axis=-1)
    if not set_context:
        return seen
    return add_context(seen, describe_context(take_context_inputs(evidence), guess))


def edge_loss(logits: Tensor, same: Tensor) -> Tensor:
    """Mean cross-entropy of edges (eq. 10), counted both ways."""
    return F.binary_cross_entropy_with_logits(logits, same)
