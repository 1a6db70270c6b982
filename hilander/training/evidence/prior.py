"""A model that was trained before, as adviser of the one that is learned: the box, as a rule.

Few identities teach less than the model in the box has seen already, and what it has seen is of
other domains. Each is wrong where the other is not; so both are asked about every edge and their
log-odds averaged. The more there is to learn from, the less the adviser weighs.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hilander.errors import ModelError
from hilander.hierarchy.rules import Rules
from hilander.linkage.evidence.network import EvidenceNetwork, insert_part
from hilander.linkage.storage import as_evidence_network, read_network

if TYPE_CHECKING:
    from hilander.training.evidence.recipe import EvidencePlan

LEVEL_POINTS = 1000  # from which the learned network weighs as much as its adviser
LEVEL_IDENTITIES = 12  # below which it weighs less, however many points there are
LEAST_PRIOR_WEIGHT = 0.25  # a weight below which an adviser is not worth asking


@dataclass(frozen=True, eq=False)
class PriorModel:
    """A trained network to be asked as well, and its thresholds.

    Parameters
    ----------
    network : EvidenceNetwork
    p_tau, p_tau_merge : float
        That it was found to be best with.
    own_weight : float
        What the log-odds of the learned network weigh beside those of this one.
    """

    network: EvidenceNetwork
    p_tau: float
    p_tau_merge: float
    own_weight: float

    def join(self, network: EvidenceNetwork) -> EvidenceNetwork:
        """The learned network with this one as its adviser."""
        settings = replace(
            network.settings, prior=self.network.settings, own_weight=self.own_weight
        )
        return insert_part(settings, network, "prior", self.network)

    def suit(self, plan: EvidencePlan) -> Rules:
        """The plan's rules where nothing could be tried: the adviser's thresholds, if not set."""
        rules = replace(plan.rules, p_tau_merge=self.p_tau_merge)
        return replace(rules, p_tau=self.p_tau) if "p_tau" in plan.tune else rules

    def default_p_tau(self, alone: float) -> float:
        """Between the usual p_tau of a network alone and the adviser's, by weight of log-odds."""
        odds = [np.log(p / (1 - p)) for p in (alone, self.p_tau)]
        mean = self.own_weight * odds[0] + (1 - self.own_weight) * odds[1]
        return float(1 / (1 + np.exp(-mean)))


def weight_of_trained(n_identities: int, n_points: int) -> float:
    """What the learned network weighs beside an adviser: more with more that it learned from.

    Many points of two or three identities are still two or three identities.
    """
    by_points = n_points / (n_points + LEVEL_POINTS)
    by_identities = n_identities**2 / (n_identities**2 + LEVEL_IDENTITIES**2)
    return min(by_points, by_identities)


def is_worth_using(own_weight: float) -> bool:
    """Whether an adviser weighs enough beside what is learned."""
    return 1 - own_weight >= LEAST_PRIOR_WEIGHT


def warn_unused_prior(asked: str | Path, n_identities: int, n_points: int) -> None:
    """Warn that an adviser that was named will not be asked; of the usual one nothing is said."""
    own_weight = weight_of_trained(n_identities, n_points)
    if asked in ("auto", "none") or is_worth_using(own_weight):
        return
    warnings.warn(
        f"prior={str(asked)!r} is not asked: beside what {n_points:,} points of "
        f"{n_identities:,} identities teach it would weigh {1 - own_weight:.0%}, and below "
        f"{LEAST_PRIOR_WEIGHT:.0%} it is not worth its time. Leave it out, or begin training with it: "
        f"start={str(asked)!r}.",
        stacklevel=4,
    )


def read_prior(folder: str | None, n_identities: int, n_points: int) -> PriorModel | None:
    """The model in a folder as adviser of one that learns from so many identities and points.

    None where there is none, or where so much can be learned that it would have little to say.
    """
    own_weight = weight_of_trained(n_identities, n_points)
    if folder is None or not is_worth_using(own_weight):
        return None
    stored = read_network(Path(folder))
    rules: dict[str, Any] = stored.description.get("rules", {})
    network = as_evidence_network(stored.network)
    if network is None or rules.get("p_tau_merge") is None:
        raise ModelError(
            f'the model in {folder} is of method="paper", an adviser has to be of "evidence"; '
            'use prior="pretrained" or "none", or the folder of such a model'
        )
    return PriorModel(network, rules["p_tau"], rules["p_tau_merge"], own_weight)
