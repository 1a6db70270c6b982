"""The plan of a training run of the published method."""

from __future__ import annotations

from dataclasses import dataclass, field

from hilander.hierarchy.rules import Rules
from hilander.linkage.paper.settings import NetworkSettings
from hilander.linkage.paper.training import LearningSettings
from hilander.training.split import as_seed, check_split

TUNABLE = ("p_tau", "k", "features")


@dataclass(frozen=True)
class PaperPlan:
    """Everything that decides what is learned, besides the data.

    Parameters
    ----------
    network : NetworkSettings
    learning : LearningSettings
    rules : Rules
        Of inference; the settings that are tuned are replaced.
    val_fraction : float
        Share of the identities held out for tuning; 0 for no tuning.
    tune : tuple of str
        Settings to choose by validation: "p_tau", "k", "features".
    seed : int
    device : str
    """

    network: NetworkSettings
    learning: LearningSettings = field(default_factory=LearningSettings)
    rules: Rules = field(default_factory=Rules)
    val_fraction: float = 0.2
    tune: tuple[str, ...] = ("p_tau",)
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        check_split(self, TUNABLE)
        object.__setattr__(self, "seed", as_seed(self.seed))

    @property
    def fewest_points(self) -> int:
        """Points needed to build every graph."""
        return max(self.rules.k, *(k for k, _ in self.learning.hierarchies)) + 1
