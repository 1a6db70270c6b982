"""How the level loop links and when it stops, held as data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from hilander.errors import SettingError
from hilander.hierarchy.decoding.decode import DECODERS, Decoder

FEWEST_K = 3  # neighbours, however few the points
FEWEST_OF_SHARE = 5  # where k is a share of the points


@dataclass(frozen=True)
class Rules:
    """Settings of the level loop.

    Parameters
    ----------
    k : int
        Neighbours of each node, the node itself not counted. A level with too few nodes uses all
        the others.
    points_for_each : int
        A set of few points has one neighbour for each so many points, but at least five; 0 for k
        however few the points. A model of no embedder has not learned how near strangers are in
        the data at hand, and of few points most neighbours are strangers.
    p_tau : float
        Least linkage of an edge to a parent, in [0, 1].
    early_stop : bool
        Stop at a level that adds more than 1/k of the edges the level before added: a saving, not
        a criterion.
    max_levels : int
        Never build more levels than this.
    search_average : bool
        Search neighbours by the average feature in place of the identity feature.
    decoder : {"parents", "contract", "leiden", "infomap"}
        How edges of points become clusters; see `hilander.hierarchy.decoding.decode.decode`. Communities are
        for points alone: above them, super-nodes are merged by "contract".
    p_tau_merge : float, optional
        `p_tau` of the levels after the first; None for the same.
    p_tau_rise : float
        Log-odds by which the `p_tau` of the points rises for each unit by which the sizes spread
        more than is usual, and falls where they spread less; see `hilander.hierarchy.decoding.adaptive_threshold`.
    keep_links : bool
        Carry the edges of the points along, as evidence for merging super-nodes.
    keep_pieces : bool
        Leave communities whose likely links mostly lead out of them apart, as "leiden" cuts large
        clusters to pieces; for training, in which their merges are learned.
    strangers : float, optional
        Cosine of two identities of the training set: the background of a set of which one identity
        has most of the points or all. None for a model of no embedder.
    as_released : bool
        Follow the released code to the letter: a parent must be strictly denser and its linkage
        strictly above p_tau; its k counts the node itself, in the early stop and in the smallest
        level it still clusters; the last level is kept even if it merged nothing.
    """

    k: int = 10
    p_tau: float = 0.5
    early_stop: bool = False
    max_levels: int = 100
    search_average: bool = False
    decoder: Decoder = "parents"
    p_tau_merge: float | None = None
    p_tau_rise: float = 0.0
    keep_links: bool = False
    as_released: bool = False
    points_for_each: int = 0
    keep_pieces: bool = False
    strangers: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("k", 1), ("max_levels", 1), ("points_for_each", 0)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise SettingError(f"{name}={value!r} must be a whole number >= {least}")
            object.__setattr__(self, name, int(value))  # a numpy integer has no place in JSON
        if self.decoder not in DECODERS:
            raise SettingError(f"decoder={self.decoder!r} is not known; use one of {DECODERS}")
        for name in ("p_tau", "p_tau_merge"):
            tau: Any = getattr(self, name)
            if name == "p_tau_merge" and tau is None:
                continue
            if not isinstance(tau, Real) or not 0 <= float(tau) <= 1:
                raise SettingError(f"{name}={tau!r} is not a probability; use 0 to 1")
            object.__setattr__(self, name, float(tau))
        rise: Any = self.p_tau_rise
        if not isinstance(rise, Real) or not 0 <= float(rise) < math.inf:
            raise SettingError(f"p_tau_rise={rise!r} must be a finite number >= 0")
        object.__setattr__(self, "p_tau_rise", float(rise))

    def with_threshold(self, p_tau: float) -> Rules:
        """The same with a p_tau that someone has named, and means.

        It does not move with the sizes, and no later merge takes less: else the pieces that a
        higher one leaves would be joined by the next level.
        """
        named = replace(self, p_tau=p_tau, p_tau_rise=0.0)
        if named.p_tau_merge is None:
            return named
        return replace(named, p_tau_merge=max(named.p_tau, named.p_tau_merge))

    def threshold(self, level: int) -> float:
        """The p_tau of a level."""
        return self.p_tau if level == 0 or self.p_tau_merge is None else self.p_tau_merge

    def decoder_of(self, level: int) -> Decoder:
        """The decoder of a level."""
        return "contract" if level and self.decoder in ("leiden", "infomap") else self.decoder

    def suited_to(self, n_points: int) -> Rules:
        """The same with as many neighbours as suit so many points, if there are so many."""
        k = self.k
        if self.points_for_each:
            k = min(k, max(n_points // self.points_for_each, FEWEST_OF_SHARE))
        return replace(self, k=fit_k(k, n_points))

    @property
    def stopping_k(self) -> int:
        """The k of the early stop."""
        return self.k + 1 if self.as_released else self.k

    def says_stop(self, added: int, added_before: int | None) -> bool:
        """Whether a level that added so many edges is where early stopping ends."""
        if added == 0:
            return True
        return added_before is not None and added * self.stopping_k > added_before

    def can_cluster(self, n_nodes: int) -> bool:
        """Whether a level of so many nodes is still worth clustering."""
        return n_nodes > self.k + 1 if self.as_released else n_nodes > 1


def fit_k(k: int, n_points: int, fewest: int = FEWEST_K) -> int:
    """Fewer neighbours for few points, but never below the fewest."""
    return max(min(k, n_points - 1), min(k, fewest))
