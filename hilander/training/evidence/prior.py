"""A prior model: a trained model whose log-odds are averaged with those of the one being trained.

The default is the pretrained model. It has seen more identities than a small training set has, but
of other domains. The two make different mistakes, so their mean makes fewer. The weight of the
prior model falls as the training set grows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hilander.errors import ModelError
from hilander.hierarchy.rules import DEFAULT_MERGE, Rules
from hilander.linkage.evidence.network import EvidenceNetwork, insert_part
from hilander.linkage.storage import as_evidence_network, read_network
from hilander.training.evidence.plan import EvidencePlan

# Training points at which the trained network weighs as much as the prior model.
EQUAL_WEIGHT_POINTS = 1000
# Training identities at which the two weights are equal, however many points there are.
EQUAL_WEIGHT_IDENTITIES = 12
# Weight of a prior model below which it is not used: it would double the time and change little.
LEAST_PRIOR_WEIGHT = 0.25


@dataclass(frozen=True, eq=False)
class PriorModel:
    """A trained network, its thresholds, and its weight.

    Parameters
    ----------
    network : EvidenceNetwork
    p_tau, p_tau_merge : float
        Thresholds that were chosen for it.
    own_weight : float
        Weight of the log-odds of the network being trained, in [0, 1]. The prior model has the
        rest.
    adapt_merges : bool
        Whether its threshold of merges is chosen for each set.
    """

    network: EvidenceNetwork
    p_tau: float
    p_tau_merge: float
    own_weight: float
    adapt_merges: bool = False

    def join(self, network: EvidenceNetwork) -> EvidenceNetwork:
        """Return `network` with this network as its prior model."""
        settings = replace(
            network.settings, prior=self.network.settings, own_weight=self.own_weight
        )
        return insert_part(settings, network, "prior", self.network)

    def resolve_rules(self, plan: EvidencePlan) -> Rules:
        """The plan's rules with this model's thresholds, for use without held-out identities."""
        rules = replace(plan.rules, p_tau_merge=self.p_tau_merge, adapt_merges=self.adapt_merges)
        return replace(rules, p_tau=self.p_tau) if "p_tau" in plan.tune else rules

    def default_p_tau(self, alone: float) -> float:
        """The default p_tau of the joined networks: the weighted mean of both log-odds.

        Parameters
        ----------
        alone : float
            Default p_tau of a network without a prior model.
        """
        odds = [np.log(p / (1 - p)) for p in (alone, self.p_tau)]
        mean = self.own_weight * odds[0] + (1 - self.own_weight) * odds[1]
        return float(1 / (1 + np.exp(-mean)))


def weight_of_trained(n_identities: int, n_points: int) -> float:
    """Weight of the trained network beside a prior model, in [0, 1).

    The smaller of two weights: one grows with the number of points, the other with the number of
    identities. Many points of two or three identities show little of how identities differ.
    """
    by_points = n_points / (n_points + EQUAL_WEIGHT_POINTS)
    by_identities = n_identities**2 / (n_identities**2 + EQUAL_WEIGHT_IDENTITIES**2)
    return min(by_points, by_identities)


def is_worth_using(own_weight: float) -> bool:
    """Whether a prior model has enough weight to be used."""
    return 1 - own_weight >= LEAST_PRIOR_WEIGHT


def warn_unused_prior(asked: str | Path, n_identities: int, n_points: int) -> None:
    """Warn that a prior model that the user named is not used. No warning for the default."""
    own_weight = weight_of_trained(n_identities, n_points)
    if asked in ("auto", "none") or is_worth_using(own_weight):
        return
    warnings.warn(
        f"prior={str(asked)!r} is not used: with {n_points:,} training points of "
        f"{n_identities:,} identities its weight would be {1 - own_weight:.0%}, and a prior model "
        f"is used from {LEAST_PRIOR_WEIGHT:.0%} on. Leave it out, or start training from it: "
        f"start={str(asked)!r}.",
        stacklevel=4,
    )


def read_prior(folder: str | None, n_identities: int, n_points: int) -> PriorModel | None:
    """The prior model in a folder, for a training set with these numbers of identities and points.

    Returns
    -------
    prior : PriorModel, or None
        None if there is no folder, or if its weight would be too small.
    """
    own_weight = weight_of_trained(n_identities, n_points)
    if folder is None or not is_worth_using(own_weight):
        return None
    stored = read_network(Path(folder))
    rules: dict[str, Any] = stored.description.get("rules", {})
    network = as_evidence_network(stored.network)
    if network is None or rules.get("p_tau_merge") is None:
        raise ModelError(
            f'the model in {folder} is of method="paper", a prior model has to be of "evidence"; '
            'use prior="pretrained" or "none", or the folder of such a model'
        )
    merge = DEFAULT_MERGE if stored.merged_by_classifiers else rules["p_tau_merge"]
    adapt_merges = rules.get("adapt_merges", False)
    return PriorModel(network, rules["p_tau"], merge, own_weight, adapt_merges)
