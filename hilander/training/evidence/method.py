"""The default method: an edge classifier on edge features, communities, merges by links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.preparation import Preparation, learn_preparation
from hilander.errors import FileFormatError, SettingError, check_choice
from hilander.hierarchy.budget import MethodCost
from hilander.hierarchy.decoding.decode import DECODERS, check_decoder
from hilander.hierarchy.rules import Rules, fit_k
from hilander.io.writing import check_folder_kind
from hilander.linkage.evidence.network import EvidenceNetwork, EvidenceSettings
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.linkage.storage import MODEL_KIND, PRETRAINED
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.evidence.prior import warn_unused_prior
from hilander.training.evidence.recipe import learn_by_evidence
from hilander.training.map_choice import can_validate_maps, choose_map, force_whitening
from hilander.training.model import Model
from hilander.training.parameters import (
    Parameters,
    check_whiten,
    read_learning,
    read_prior,
    rename_value,
)

# Neighbours of a point, whatever the sizes of the identities.
DEFAULT_K = 15
# Fewest neighbours of a point, in a small training set.
FEWEST_K = 10
# p_tau of points. Communities are the start of the merges, which cannot undo a wrong link.
DEFAULT_P_TAU = 0.7
# Threshold of learned merges before validation. Below even odds: of many small clusters beside a
# large identity, each adds few points if it is wrong, and all of them many if they are right.
DEFAULT_LEARNED_MERGE = 0.4
# Width of an edge classifier.
DEFAULT_HIDDEN = 32


class EvidenceMethod:
    """Edge features, an edge classifier of two stages, communities, merges by links."""

    name = "evidence"
    merges_equal_rows = True
    scores_synthetic_sets = True
    only_parameters: Mapping[str, Any] = {"start": "auto", "prior": "auto"}
    learning_options: tuple[str, ...] = ("epochs", "batch_size", "learning_rate")

    def plan(self, parameters: Parameters, points: FloatArray, labels: IntArray) -> EvidencePlan:
        """Check the parameters and return the plan of a training run."""
        check_choice("features", parameters.features, ("identity", "average", "concat", "auto"))
        check_choice("decoder", parameters.decoder, ("auto", *DECODERS))
        check_whiten(parameters)
        n_points, tunes = len(labels), parameters.p_tau == "auto"
        hidden = DEFAULT_HIDDEN if parameters.hidden is None else parameters.hidden
        auto_k = parameters.k == "auto"
        rules = Rules(
            k=fit_k(DEFAULT_K, n_points, FEWEST_K) if auto_k else parameters.k,  # type: ignore[arg-type]
            p_tau=DEFAULT_P_TAU if tunes else parameters.p_tau,  # type: ignore[arg-type]
            early_stop=parameters.early_stop,
            search_average=True,
            decoder="leiden" if parameters.decoder == "auto" else parameters.decoder,
            p_tau_merge=DEFAULT_LEARNED_MERGE,
            keep_links=True,
        )
        check_decoder(rules.decoder)
        prior = read_prior(parameters)
        warn_unused_prior(prior, len(np.unique(labels)), n_points)
        return EvidencePlan(
            network=EvidenceSettings(hidden, learned_merges=True),
            learning=read_learning(parameters, EvidenceLearning),
            rules=rules,
            val_fraction=parameters.val_fraction,
            tune=("p_tau",) if tunes else (),
            start=find_model_folder("start", parameters.start, auto="none"),
            prior=find_model_folder("prior", prior, auto="pretrained"),
            seed=parameters.random_state,
            device=parameters.device,
        )

    def prepare(
        self, parameters: Parameters, points: FloatArray, labels: IntArray, plan: EvidencePlan
    ) -> Preparation:
        """Normalise, centre if in a narrow cone, and map if that helps held-out identities."""
        preparation = learn_preparation(points, parameters.centre, labels=labels)
        if parameters.whiten is False:
            return preparation
        seed, k = plan.seed, plan.rules.k
        if parameters.whiten is True:
            return force_whitening(preparation, points, labels, k, seed)
        if plan.prior is not None and not can_validate_maps(labels):
            return replace(preparation, whitens_each_set=True)  # like the prior model
        chosen = choose_map(preparation.apply(points), labels, k, seed)
        return preparation if chosen is None else replace(preparation, **vars(chosen))

    def learn(
        self,
        features: FloatArray,
        labels: IntArray,
        plan: EvidencePlan,
        *,
        checkpoint_folder: Path | None = None,
        verbose: bool = False,
    ) -> Model:
        """Train on prepared embeddings, as planned."""
        return learn_by_evidence(
            features, labels, plan, checkpoint_folder=checkpoint_folder, verbose=verbose
        )

    def make_scorer(
        self, network: EvidenceNetwork, rules: Rules, device: str, memory: int | None = None
    ) -> EvidenceScorer:
        """The scorer of a trained network; blocks have a fixed size, so `memory` is not used."""
        return EvidenceScorer(network, device, rules.between_cosine)

    def cost(self, hidden: int) -> MethodCost:
        """Memory and time of each stage, measured by ``python -m benchmarks.scale``."""
        return MethodCost(
            node_map=0.0,
            edge_features=85.0,
            score_blocks=80e6,
            decode_edge=60.0,
            score_seconds=62.0,
            decode_seconds=9.0,
            pool_seconds=3.0,
        )

    def learning_settings(self, values: Mapping[str, Any]) -> EvidenceLearning:
        """Learning settings rebuilt from plain values."""
        return EvidenceLearning(**values)

    def learning_from_options(self, options: Mapping[str, Any]) -> EvidenceLearning:
        """Learning settings from flat options; absent ones keep their defaults."""
        return EvidenceLearning(**options)


def find_model_folder(name: str, asked: str | Path, *, auto: str) -> str | None:
    """Folder of the model that `start` or `prior` names; None for none.

    Parameters
    ----------
    name : {"start", "prior"}
    asked : str or Path
        "auto", "pretrained", "none", or a folder.
    auto : str
        Meaning of "auto".
    """
    asked = rename_value(name, auto if asked == "auto" else asked)
    if asked == "none":
        return None
    if asked == "pretrained":
        return str(PRETRAINED)
    if not isinstance(asked, str | Path) or not Path(asked).is_dir():
        raise SettingError(
            f"{name}={str(asked)!r} is not a folder; "
            'use "auto", "pretrained", "none" or the folder of a model'
        )
    try:
        return str(check_folder_kind(asked, MODEL_KIND))
    except FileFormatError as error:
        raise SettingError(f"{name}={error}") from error
