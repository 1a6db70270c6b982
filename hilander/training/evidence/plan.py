"""The plan of a training run of the default method."""

from __future__ import annotations

from dataclasses import dataclass, field

from hilander.hierarchy.rules import Rules
from hilander.linkage.evidence.network import EvidenceSettings
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.training.split import as_seed, check_split

TUNABLE = ("p_tau",)


@dataclass(frozen=True)
class EvidencePlan:
    """Everything that decides what is learned, besides the data.

    Parameters
    ----------
    network : EvidenceSettings
    learning : EvidenceLearning
    rules : Rules
        Rules of inference; the thresholds are replaced if they are tuned.
    val_fraction : float
        Share of the identities held out for tuning; 0 for no tuning.
    tune : tuple of str
        ("p_tau",) or ().
    start : str, optional
        Folder of a model whose weights training starts from; None for random weights.
    prior : str, optional
        Folder of a model whose log-odds are averaged with those of the trained one.
    seed : int
    device : str
    """

    network: EvidenceSettings = field(default_factory=EvidenceSettings)
    learning: EvidenceLearning = field(default_factory=EvidenceLearning)
    rules: Rules = field(default_factory=Rules)
    val_fraction: float = 0.2
    tune: tuple[str, ...] = TUNABLE
    start: str | None = None
    prior: str | None = None
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        check_split(self, TUNABLE)
        object.__setattr__(self, "seed", as_seed(self.seed))

    @property
    def fewest_points(self) -> int:
        """Points needed to build a graph."""
        return self.rules.k + 1
