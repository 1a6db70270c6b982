"""How the level loop links and when it stops, held as data."""

from __future__ import annotations

from dataclasses import dataclass

from hilander.errors import SettingError


@dataclass(frozen=True)
class Rules:
    """Settings of the level loop.

    Parameters
    ----------
    k : int
        Neighbours of each node, the node itself not counted. A level with too few nodes uses all
        the others.
    p_tau : float
        Least linkage of an edge to a parent, in [0, 1].
    early_stop : bool
        Stop at a level that adds more than 1/k of the edges the level before added: a saving, not
        a criterion.
    max_levels : int
        Never build more levels than this.
    search_average : bool
        Search neighbours by the average feature in place of the identity feature.
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
    as_released: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or self.k < 1:
            raise SettingError(f"k={self.k!r} must be a whole number >= 1")
        if not 0 <= self.p_tau <= 1:
            raise SettingError(f"p_tau={self.p_tau!r} is not a probability; use 0 to 1")
        if self.max_levels < 1:
            raise SettingError(f"max_levels={self.max_levels!r} must be >= 1")

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
