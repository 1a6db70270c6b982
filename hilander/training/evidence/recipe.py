"""The recipe of the default method: labelled points in, a model out.

Thresholds are chosen with a trial network that has not seen the held-out identities. The final
network is trained on all identities, in parallel with the trial network.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.hierarchy.rules import Rules
from hilander.linkage.evidence.background import measure_between_cosine
from hilander.linkage.evidence.network import EvidenceNetwork
from hilander.synthetic.episodes import Episode
from hilander.training.evidence.network_training import limit_synthetic_points, train_evidence
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.evidence.prior import PriorModel, read_prior
from hilander.training.evidence.thresholds import (
    DEFAULT_THRESHOLD,
    VALIDATION_POINTS,
    ThresholdSearch,
)
from hilander.training.model import Model, summarise
from hilander.training.split import choose_held_out
from hilander.training.stages import Stages, open_stages, run_in_parallel


def learn_by_evidence(
    features: FloatArray,
    labels: IntArray,
    plan: EvidencePlan,
    *,
    checkpoint_folder: Path | None = None,
    verbose: bool = False,
) -> Model:
    """Choose the thresholds on held-out identities, and train on all identities.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        Prepared embeddings.
    labels : ndarray of shape (n_points,)
        Identity of each, from 0.
    plan : EvidencePlan
    checkpoint_folder : Path, optional
        Stores the state after each epoch; an interrupted run continues from it.
    verbose : bool
        Draw progress bars (only on a terminal).

    Returns
    -------
    model : Model
    """
    stages = open_stages(features, labels, plan, checkpoint_folder, verbose=verbose)
    held_out = choose_held_out(labels, plan)
    everything = Episode(features, labels)
    prior = read_prior(plan.prior, len(np.unique(labels)), len(labels))
    (rules, table), (network, history) = run_in_parallel(
        partial(choose_rules, everything, held_out, plan, stages, prior),
        partial(train_evidence, everything, plan, stages, "train"),
        stages=stages,
        device=plan.device,
    )
    between_cosine = measure_between_cosine(features, labels)
    rules = replace(rules, between_cosine=between_cosine, training_points=len(labels))
    summary = summarise(labels, held_out, table)
    if prior is None:
        return Model(network, rules, history=history, summary=summary)
    used = {"prior": Path(str(plan.prior)).name, "own_weight": prior.own_weight}
    return Model(prior.join(network), rules, history=history, summary=summary | used)


def choose_rules(
    episode: Episode,
    held_out: BoolArray,
    plan: EvidencePlan,
    stages: Stages,
    prior: PriorModel | None = None,
    trial: EvidenceNetwork | None = None,
) -> tuple[Rules, list[dict[str, Any]]]:
    """The plan's rules with thresholds chosen on held-out identities, and the table of tries.

    Parameters
    ----------
    episode : Episode
        All labelled points.
    held_out : ndarray of shape (n_points,), bool
        Points of the validation identities; if there are none, nothing is tried.
    plan : EvidencePlan
    stages : Stages
    prior : PriorModel, optional
    trial : EvidenceNetwork, optional
        A network trained without the held-out identities; trained here if it is not given.
    """
    if not held_out.any():
        return prior.resolve_rules(plan) if prior is not None else plan.rules, []
    if trial is None:
        trial = train_trial(episode, held_out, plan, stages)
    search = ThresholdSearch(
        trial if prior is None else prior.join(trial),
        [Episode(episode.features[held_out], episode.labels[held_out])],
        plan.rules,
        seed=plan.seed,
        device=plan.device,
        most_points=limit_synthetic_points(VALIDATION_POINTS, len(held_out)),
        watch=stages.watch,
    )
    default = DEFAULT_THRESHOLD if prior is None else prior.default_p_tau(DEFAULT_THRESHOLD)
    return search.choose(default=default)


def train_trial(
    episode: Episode, held_out: BoolArray, plan: EvidencePlan, stages: Stages
) -> EvidenceNetwork:
    """A network trained on all but the held-out identities."""
    known = Episode(episode.features[~held_out], episode.labels[~held_out])
    return train_evidence(known, plan, stages, "validate")[0]
