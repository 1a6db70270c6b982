"""The protocol of a method: from parameters to a plan, a model and a scorer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.preparation import Preparation
from hilander.hierarchy.budget import MethodCost
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import MeasuringScorer
from hilander.training.model import Model
from hilander.training.parameters import Parameters


class Plan(Protocol):
    """Everything that decides what is learned, besides the data."""

    @property
    def rules(self) -> Rules:
        """Rules of inference, before validation."""


class Method(Protocol):
    """One way to learn to cluster.

    Attributes
    ----------
    name : str
        Value of the estimator's parameter `method`.
    merges_equal_rows : bool
        Whether equal embeddings are clustered once and stay together.
    only_parameters : mapping of str to value
        Parameters that this method alone reads, with their defaults.
    learning_options : tuple of str
        Names that `learning_from_options` reads.
    scores_synthetic_sets : bool
        Whether validation scores are of synthetic sets of the held-out identities.
    """

    name: str
    merges_equal_rows: bool
    only_parameters: Mapping[str, Any]
    learning_options: tuple[str, ...]
    scores_synthetic_sets: bool

    def plan(self, parameters: Parameters, points: FloatArray, labels: IntArray) -> Any:
        """Check the parameters and return the plan of a training run."""

    def prepare(
        self, parameters: Parameters, points: FloatArray, labels: IntArray, plan: Any
    ) -> Preparation:
        """Learn how embeddings are normalised, centred and mapped."""

    def learn(
        self,
        features: FloatArray,
        labels: IntArray,
        plan: Any,
        *,
        checkpoint_folder: Path | None = None,
        verbose: bool = False,
    ) -> Model:
        """Train on prepared embeddings, as planned."""

    def make_scorer(
        self, network: Any, rules: Rules, device: str, memory: int | None = None
    ) -> MeasuringScorer:
        """The scorer of a trained network; it may keep at most `memory` bytes of the nodes."""

    def cost(self, hidden: int) -> MethodCost:
        """Cost of scoring and decoding with a network of this width, for estimates of a run."""

    def learning_settings(self, values: Mapping[str, Any]) -> Any:
        """Learning settings rebuilt from plain values."""

    def learning_from_options(self, options: Mapping[str, Any]) -> Any:
        """Learning settings from flat options; one that is absent keeps its default."""
