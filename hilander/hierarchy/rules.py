"""How the level loop links and when it stops, held as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import expit, logit

from hilander.errors import GraphError, SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.decoding.decode import DECODERS, Decoder
from hilander.knn.search import check_k

FEWEST_K = 3  # neighbours in the smallest sets
# Threshold of merges where validation shows no preference: the best of most sets is .6 to .85.
DEFAULT_MERGE = 0.7
# Names in models of version 0.1.
_OLD_NAMES = {
    "points_for_each": "points_per_neighbour",
    "strangers": "between_cosine",
}
# Settings of earlier versions that are no longer rules.
_DROPPED = {"max_levels", "keep_pieces", "keep_fragments", "p_tau_rise", "p_tau_slope"}
# Log-odds of the threshold of merges for each unit of the log of how many fewer points a set has.
_FEW_POINTS_WEIGHT = 0.5
FEWEST_OF_SHARE = 5  # neighbours where k is a share of the points


@dataclass(frozen=True)
class Rules:
    """Settings of the level loop.

    Parameters
    ----------
    k : int
        Neighbours of each node, the node itself not counted. A level with too few nodes uses all
        the others.
    points_per_neighbour : int
        Small sets have one neighbour for each so many points, but at least five; 0 for k neighbours
        in sets of any size. Most neighbours in a small set are of other identities, and a
        pretrained model does not know how similar two identities are in the data at hand.
    p_tau : float
        Least linkage of an edge to a parent, in [0, 1].
    early_stop : bool
        Stop at a level that adds more than 1/k of the edges the level before added: a saving, not
        a criterion.
    search_average : bool
        Search neighbours by the average feature in place of the identity feature.
    decoder : {"parents", "contract", "leiden", "infomap"}
        How edges of points become clusters, see `hilander.hierarchy.decoding.decode`. "leiden" and
        "infomap" are for points; without `keep_links`, later levels then use "contract".
    p_tau_merge : float, optional
        `p_tau` of the levels after the first; None for the same. With `keep_links`, clusters merge
        while two of them are one identity with at least this probability.
    adapt_merges : bool
        Choose the threshold of merges for each set, in place of `p_tau_merge`, see
        `hilander.hierarchy.decoding.merge_cut`; for models of no particular kind of sets.
    training_points : int
        Number of points of the training set; 0 if it does not matter. Identities of a smaller set
        have fewer points each, so its merges need more evidence.
    keep_links : bool
        Keep the edges between points of different clusters, and merge clusters by them.
    between_cosine : float, optional
        Median cosine of two identities of the training set. It is the background of a set in which
        one identity has most of the points. None for a model of no particular embedder.
    as_released : bool
        Decode exactly as the released code: a parent must be strictly denser and its linkage
        strictly above p_tau; k counts the node itself in the early stop and in the smallest level
        that is still clustered; the last level is kept even if it merged nothing.
    """

    k: int = 10
    p_tau: float = 0.5
    early_stop: bool = False
    search_average: bool = False
    decoder: Decoder = "parents"
    p_tau_merge: float | None = None
    adapt_merges: bool = False
    training_points: int = 0
    keep_links: bool = False
    as_released: bool = False
    points_per_neighbour: int = 0
    between_cosine: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("k", 1), ("points_per_neighbour", 0), ("training_points", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise SettingError(f"{name}={value!r} must be a whole number >= {least}")
            object.__setattr__(self, name, int(value))  # JSON takes no numpy integer
        if self.decoder not in DECODERS:
            raise SettingError(f"decoder={self.decoder!r} is not known; use one of {DECODERS}")
        for name in ("p_tau", "p_tau_merge"):
            tau: Any = getattr(self, name)
            if name == "p_tau_merge" and tau is None:
                continue
            if not isinstance(tau, Real) or not 0 <= float(tau) <= 1:
                raise SettingError(f"{name}={tau!r} is not a probability; use 0 to 1")
            object.__setattr__(self, name, float(tau))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Rules:
        """Rebuild rules from `dataclasses.asdict`, also of models of version 0.1."""
        renamed = {_OLD_NAMES.get(name, name): value for name, value in values.items()}
        return cls(**{name: value for name, value in renamed.items() if name not in _DROPPED})

    def with_threshold(self, p_tau: float) -> Rules:
        """The rules with a fixed p_tau that the user gave.

        Later levels use at least the same threshold; otherwise they would join the fragments that a
        higher one leaves.
        """
        fixed = replace(self, p_tau=p_tau, adapt_merges=False, training_points=0)
        if fixed.p_tau_merge is None:
            return fixed
        return replace(fixed, p_tau_merge=max(fixed.p_tau, fixed.p_tau_merge))

    def for_points(self, n_points: int) -> Rules:
        """The rules with the threshold of merges for a set of so many points."""
        if not self.training_points or self.p_tau_merge is None or self.adapt_merges:
            return self
        fewer = np.log(max(self.training_points / n_points, 1))
        p_tau = float(expit(logit(self.p_tau_merge) + _FEW_POINTS_WEIGHT * fewer))
        return replace(self, p_tau_merge=p_tau, training_points=0)

    def threshold(self, level: int) -> float:
        """The p_tau of a level."""
        return self.p_tau if level == 0 or self.p_tau_merge is None else self.p_tau_merge

    def decoder_of(self, level: int) -> Decoder:
        """The decoder of a level."""
        return "contract" if level and self.decoder in ("leiden", "infomap") else self.decoder

    def adapted_to(self, n_points: int) -> Rules:
        """The rules with k reduced for a small set."""
        k = self.k
        if self.points_per_neighbour:
            k = min(k, max(n_points // self.points_per_neighbour, FEWEST_OF_SHARE))
        return replace(self, k=fit_k(k, n_points))

    @property
    def stopping_k(self) -> int:
        """The k of the early stop."""
        return self.k + 1 if self.as_released else self.k

    def is_early_stop(self, added: int, added_before: int | None) -> bool:
        """Whether early stopping ends at a level that added so many edges."""
        if added == 0:
            return True
        return added_before is not None and added * self.stopping_k > added_before

    def can_cluster(self, n_nodes: int) -> bool:
        """Whether a level of so many nodes can be clustered."""
        return n_nodes > self.k + 1 if self.as_released else n_nodes > 1


def fit_k(k: int, n_points: int, fewest: int = FEWEST_K) -> int:
    """k, reduced to n_points - 1 where there are fewer points, but not below `fewest`."""
    return max(min(k, n_points - 1), min(k, fewest))


def resolve_rules(
    rules: Rules,
    n_points: int,
    graph: KnnGraph | None = None,
    *,
    adapt_k: bool = True,
    **asked: Any,
) -> Rules:
    """The rules for a set: the model's, but for what is asked for otherwise.

    Parameters
    ----------
    rules : Rules of the model
    n_points : int
    graph : KnnGraph, optional
        The user's own graph; its k is used.
    adapt_k : bool
        Whether few points have fewer neighbours, unless k is asked for.
    **asked
        k, p_tau, early_stop, decoder; None for the model's own.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    if (p_tau := given.pop("p_tau", None)) is not None:
        rules = rules.with_threshold(p_tau)
    rules = rules.for_points(n_points)
    if graph is not None:
        if not isinstance(graph, KnnGraph):
            raise SettingError(
                f"graph is a {type(graph).__name__}, expected a KnnGraph; make one with "
                "hilander.graph.knn_graph.KnnGraph(neighbours, affinity), or leave it out"
            )
        if graph.n_nodes != n_points:
            raise SettingError(
                f"the graph has {graph.n_nodes} nodes, X has {n_points} rows; "
                "give the graph of these embeddings"
            )
        return replace(rules, **given | {"k": graph.k})
    rules = replace(rules, **given)
    if "k" not in given and adapt_k:
        if n_points <= FEWEST_K:
            raise GraphError(
                f"got only {n_points} embeddings, grouping needs at least {FEWEST_K + 1}; give more"
            )
        rules = rules.adapted_to(n_points)
    check_k(rules.k, n_points)
    return rules
