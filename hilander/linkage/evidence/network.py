"""The evidence network: linkage from edge features, not from raw embeddings.

Every edge between two points is classified in two stages. The first stage sees the features of the
edge alone. The second sees the same features and the probabilities of the first stage around the
edge. Edges of super-nodes have no features: their linkage follows from the links of their points,
by a formula or also by a third classifier.
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
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.same_identity import estimate_by_links
from hilander.learning.device import run_blocks
from hilander.linkage.evidence.averaging import average_log_odds
from hilander.linkage.evidence.compiled_classifier import CompiledClassifier
from hilander.linkage.evidence.edge_features import EdgeFeatures, SecondStageFeatures
from hilander.linkage.evidence.merge_features import N_MERGE_FEATURES, compute_merge_features
from hilander.linkage.evidence.registry import FEATURES, features_of

_EDGE_BLOCK = 8_192  # edges that a GPU scores at a time
_NUMBERS_PER_EDGE = 128  # features and layers of an edge, which a block has to hold in the cache
_LARGEST_DEVIATION = 6.0  # standard deviations; standardised features are clipped to this
# Names of settings and of parts of the network in models of version 0.1.
_OLD_NAMES = {"few_points": "small_set_points", "adviser": "prior"}
_OLD_PARTS = {"few": "small_set", "adviser": "prior"}
# Settings and parts of the classifiers of super-nodes, in models of versions up to 0.2.
_DROPPED_NAMES = {"beside_others", "relative_sizes", "in_context", "set_context"}
_DROPPED_PART = "clusters"


@dataclass(frozen=True)
class EvidenceSettings:
    """The shape of an evidence network.

    Parameters
    ----------
    hidden : int
        Width of the two hidden layers of each member.
    members : int
        Small networks in each edge classifier, whose logits are averaged. They disagree where the
        data differ from the training set, and their mean is then less certain than each of them.
    learned_merges : bool
        Whether a classifier judges the merges of clusters; else a formula does, which needs no
        training set of the same kind.
    small_set_points : int
        Sets of up to this many points have a network of their own; 0 for none. The same
        edge features mean something else in a set of dozens of points than in one of thousands.
    prior : EvidenceSettings, optional
        The shape of a prior model: a second trained network whose log-odds are averaged with those
        of this one.
    own_weight : float
        Weight of this network's log-odds in that average, in [0, 1]; the prior model has the rest.
    """

    hidden: int = 32
    members: int = 5
    learned_merges: bool = False
    small_set_points: int = 0
    prior: EvidenceSettings | None = None
    own_weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.own_weight <= 1:
            raise SettingError(f"own_weight={self.own_weight!r} must be from 0 to 1")
        for name, least in (("hidden", 1), ("members", 1), ("small_set_points", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise SettingError(f"{name}={value!r} must be a whole number >= {least}")
            object.__setattr__(self, name, int(value))  # JSON cannot hold a numpy integer

    def for_small_sets(self) -> EvidenceSettings:
        """The shape of the network for small sets."""
        return replace(self.alone(), small_set_points=0)

    def alone(self) -> EvidenceSettings:
        """The same shape without a prior model."""
        return replace(self, prior=None, own_weight=1.0)

    def is_shaped(self, other: EvidenceSettings) -> bool:
        """Whether width and number of members are equal; the features may differ."""
        return (self.hidden, self.members) == (other.hidden, other.members)

    def to_dict(self) -> dict[str, Any]:
        """Give the settings as plain values for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> EvidenceSettings:
        """Rebuild settings from `to_dict`, also of earlier versions."""
        kept = {name: value for name, value in values.items() if name not in _DROPPED_NAMES}
        values = {_OLD_NAMES.get(name, name): value for name, value in kept.items()}
        known = {field.name for field in fields(cls)}
        if not {"hidden", "members"} <= set(values) <= known:  # in early versions, only these two
            raise ModelError(f"the model's settings {sorted(values)} are not of this version")
        prior = values.get("prior")
        return cls(**values | {"prior": cls.from_dict(prior) if prior else None})


class EnsembleLinear(nn.Module):
    """One linear layer for each member of a classifier, all in one product.

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
    """An ensemble of small networks on standardised edge features; its logit is their mean.

    Parameters
    ----------
    width : int
        Number of edge features.
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

    def forward(self, edge_features: Tensor) -> Tensor:
        """Logits of shape (n_edges,) from edge features of shape (n_edges, width)."""
        standard = self._standardise(edge_features)
        logits = [self._score_member(member, standard) for member in range(self.members)]
        return torch.stack(logits).mean(dim=0)

    def member_logits(self, edge_features: Tensor) -> Tensor:
        """Logits of each member, shape (members, n_edges).

        Edge features have shape (n_edges, width), or (members, n_edges, width) if each member has
        its own edges.
        """
        hidden = self.layers(self._standardise(edge_features).expand(self.members, -1, -1))
        logits: Tensor = self.last(hidden).squeeze(-1)
        return logits

    def _standardise(self, edge_features: Tensor) -> Tensor:
        standard = (edge_features - self.centre) / self.scale
        return standard.clamp(-_LARGEST_DEVIATION, _LARGEST_DEVIATION)

    def _score_member(self, member: int, standard: Tensor) -> Tensor:
        """Logits of one member, shape (n_edges,)."""
        x = standard
        for layer in self.layers:
            x = layer.of(member, x) if isinstance(layer, EnsembleLinear) else layer(x)
        return self.last.of(member, x).squeeze(-1)

    def set_scaling(self, centre: Tensor, scale: Tensor) -> None:
        """Set mean and standard deviation of the edge features, each of shape (width,)."""
        self.centre = centre
        self.scale = scale

    def predict(self, edge_features: FloatArray) -> FloatArray:
        """Probabilities of shape (n_nodes, k) from edge features of shape (n_nodes, k, width)."""
        if self.centre.device.type == "cpu":
            return self.compiled().predict(edge_features)
        flat = torch.from_numpy(edge_features.reshape(-1, edge_features.shape[-1]))
        with torch.inference_mode():
            parts = [
                torch.sigmoid(self(part.to(self.centre.device))).cpu()
                for part in torch.split(flat, _EDGE_BLOCK)
            ]
        probability: FloatArray = torch.cat(parts).numpy().reshape(edge_features.shape[:-1])
        return probability

    def compiled(self) -> CompiledClassifier:
        """The classifier as a compiled loop with the present weights, for the processor."""
        layers = [layer for layer in self.layers if isinstance(layer, EnsembleLinear)]
        weights = tuple((layer.weight, layer.bias) for layer in (*layers, self.last))
        return CompiledClassifier.pack((self.centre, self.scale), _LARGEST_DEVIATION, weights)


class EvidenceNetwork(nn.Module):
    """Edge classifiers of two stages.

    It may contain a second such network for small sets, and a prior model.

    Parameters
    ----------
    settings : EvidenceSettings
    """

    small_set: EvidenceNetwork | None
    prior: EvidenceNetwork | None

    def __init__(self, settings: EvidenceSettings) -> None:
        super().__init__()
        self.settings = settings
        width, wider = len(features_of("edge")), len(FEATURES)
        self.points = nn.ModuleList(
            [EdgeClassifier(width, settings), EdgeClassifier(wider, settings)]
        )
        self.merges = (
            EdgeClassifier(N_MERGE_FEATURES, settings) if settings.learned_merges else None
        )
        self.small_set = (
            EvidenceNetwork(settings.for_small_sets()) if settings.small_set_points else None
        )
        self.prior = EvidenceNetwork(settings.prior) if settings.prior else None

    def for_size(self, n_points: int) -> EvidenceNetwork:
        """The network for a set of this many points: this one, or the one for small sets."""
        is_small = n_points <= self.settings.small_set_points
        return self.small_set if self.small_set is not None and is_small else self

    def ensemble_for(self, n_points: int) -> list[tuple[float, EvidenceNetwork]]:
        """Networks that score a set of this many points, with the weights of their log-odds."""
        own = self.settings.own_weight if self.prior is not None else 1.0
        ensemble = [(own, self.for_size(n_points))]
        if self.prior is not None:
            ensemble += [((1 - own) * part, one) for part, one in self.prior.ensemble_for(n_points)]
        return ensemble

    def classifiers(self) -> tuple[EdgeClassifier, EdgeClassifier]:
        """The classifiers of the first and the second stage."""
        first, second = self.points
        if not isinstance(first, EdgeClassifier) or not isinstance(second, EdgeClassifier):
            raise TypeError("the parts of the network are not edge classifiers")
        return first, second

    def predict(
        self, graph: KnnGraph, edge_features: EdgeFeatures, n_wanted: int | None = None
    ) -> FloatArray:
        """Linkage of the edges of the first nodes, from both stages.

        Edge features are computed for one block of nodes at a time, once for each stage, because
        those of all edges may not fit in memory.

        Parameters
        ----------
        graph : KnnGraph of n_nodes nodes
        edge_features : EdgeFeatures
            The first stage is computed for the nodes that they are of.
        n_wanted : int, optional
            Nodes of the second stage; all by default.

        Returns
        -------
        linkage : ndarray of shape (n_wanted, k)
        """
        n_wanted = graph.n_nodes if n_wanted is None else n_wanted
        classifiers = self.classifiers()
        device = classifiers[0].centre.device
        first, second = (one.compiled() if device.type == "cpu" else one for one in classifiers)
        probability = np.zeros((graph.n_nodes, graph.k), dtype=np.float32)
        linkage = np.empty((n_wanted, graph.k), dtype=np.float32)

        def score_first_stage(rows: slice) -> None:
            probability[rows] = first.predict(edge_features.of(rows))

        numbers = graph.k * _NUMBERS_PER_EDGE
        run_blocks(score_first_stage, list(edge_blocks(edge_features.n_rows, numbers)), device)
        added = SecondStageFeatures(graph, probability, edge_features.rank_back)

        def score_second_stage(rows: slice) -> None:
            columns = np.concatenate([edge_features.of(rows), added.of(rows)], axis=-1)
            linkage[rows] = second.predict(columns)

        run_blocks(score_second_stage, list(edge_blocks(n_wanted, numbers)), device)
        return linkage

    def estimate_merges(self, pairs: LinkedPairs) -> FloatArray:
        """Probability that both clusters of each pair are one identity, shape (n_pairs,).

        The mean log-odds of the learned classifier and of the formula: clusters of a new set may be
        larger than any that the classifier was trained on.
        """
        by_links = estimate_by_links(pairs).astype(np.float32)
        if self.merges is None:
            return by_links
        merges = self.merges.compiled() if self.merges.centre.device.type == "cpu" else self.merges
        learned = merges.predict(compute_merge_features(pairs))
        return average_log_odds([(0.5, learned), (0.5, by_links)])


def insert_part(
    settings: EvidenceSettings, network: EvidenceNetwork, name: str, part: EvidenceNetwork
) -> EvidenceNetwork:
    """Insert one network into another, as its network for small sets or its prior model.

    Parameters
    ----------
    settings : EvidenceSettings
        Settings of the joined network.
    network : EvidenceNetwork
        Source of all weights outside of the inserted part.
    name : {"small_set", "prior"}
        Where to insert the part.
    part : EvidenceNetwork
        Source of the weights of the inserted part.

    Returns
    -------
    joined : EvidenceNetwork
    """
    joined = EvidenceNetwork(settings)
    inside = {f"{name}.{key}": value for key, value in part.state_dict().items()}
    joined.load_state_dict(network.state_dict() | inside)
    return joined.eval()


def rename_old_weight(key: str) -> str | None:
    """The present name of a weight of an earlier version; None if it is no longer used."""
    parts = [_OLD_PARTS.get(part, part) for part in key.split(".")]
    return None if _DROPPED_PART in parts else ".".join(parts)


def edge_loss(logits: Tensor, same: Tensor) -> Tensor:
    """Mean cross-entropy of edges (eq. 10), a scalar; every edge counts, in both directions."""
    return F.binary_cross_entropy_with_logits(logits, same)
