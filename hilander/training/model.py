"""The trained model as one value, shared by the estimator, the model folder and the commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hilander.arrays.rows import BoolArray, IntArray
from hilander.embeddings.preparation import PerSetPreparation, Preparation
from hilander.hierarchy.rules import Rules
from hilander.learning.checkpoint import EpochRecord
from hilander.linkage.storage import Network


@dataclass(frozen=True, eq=False)
class Model:
    """The result of training, and the input of clustering.

    Parameters
    ----------
    network : Lander or EvidenceNetwork
    rules : Rules
        Of inference, with the settings that validation chose.
    preparation : Preparation or PerSetPreparation
        How embeddings are normalised, centred and mapped.
    history : list of dict
        One record for each epoch of the final training.
    summary : dict
        Counts, the validation table and the choices.
    n_features : int, optional
        Width of the embeddings; None for a model of no particular embedder.
    """

    network: Network
    rules: Rules
    preparation: Preparation | PerSetPreparation = field(default_factory=lambda: Preparation(None))
    history: list[EpochRecord] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)
    n_features: int | None = None

    @property
    def prepares_each_set(self) -> bool:
        """Whether each set is prepared by itself, because the model belongs to no one embedder."""
        return self.n_features is None

    def describe(self) -> str:
        """The choices of training, in one line."""
        text = f"embeddings are {self.preparation.describe()}; p_tau = {self.rules.p_tau:g}"
        if "prior" in self.summary:
            weight = 1 - self.summary["own_weight"]
            text += (
                f"; averaged with the prior model {self.summary['prior']!r} (weight {weight:.0%})"
            )
        return text


def summarise(labels: IntArray, held_out: BoolArray, table: list[dict[str, Any]]) -> dict[str, Any]:
    """The summary of a training run: counts, and the table of settings that were tried."""
    return {
        "n_points": len(labels),
        "n_identities": len(np.unique(labels)),
        "n_validation_identities": len(np.unique(labels[held_out])),
        "validation": table,
    }
