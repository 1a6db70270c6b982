"""The published method: a graph network on raw embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.preparation import Preparation, learn_preparation
from hilander.errors import SettingError, check_choice
from hilander.hierarchy.budget import MethodCost
from hilander.hierarchy.decoding.decode import DECODERS, check_decoder
from hilander.hierarchy.rules import Rules
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.losses import LossSettings
from hilander.linkage.paper.scorer import LanderScorer
from hilander.linkage.paper.settings import FEATURES, Features, NetworkSettings
from hilander.linkage.paper.training import LearningSettings, learning_from_dict
from hilander.training.map_choice import force_whitening
from hilander.training.model import Model
from hilander.training.paper.plan import PaperPlan
from hilander.training.paper.recipe import learn_to_cluster
from hilander.training.parameters import (
    Parameters,
    check_whiten,
    read_learning,
    read_prior,
    rename_value,
)

# Neighbours, probability before validation, and width of the network: the paper's.
DEFAULT_K = 10
DEFAULT_P_TAU = 0.5
DEFAULT_HIDDEN = 512
# Default learning rate of each optimizer: SGD's is the paper's; AdamW diverges at that rate.
LEARNING_RATES = {"sgd": 0.1, "adamw": 0.001}


class PaperMethod:
    """Hi-LANDER as published."""

    name = "paper"
    merges_equal_rows = False
    scores_synthetic_sets = False
    only_parameters: Mapping[str, Any] = {
        "features": "concat",
        "encoder": "attention",
        "layers": 1,
        "heads": 1,
        "tune_k": False,
    }
    learning_options: tuple[str, ...] = (
        "epochs", "batch_size", "learning_rate", "optimizer", "balance", "focal_gamma",
        "as_released",
    )  # fmt: skip

    def plan(self, parameters: Parameters, points: FloatArray, labels: IntArray) -> PaperPlan:
        """Check the parameters and return the plan of a training run."""
        check_choice("features", parameters.features, (*FEATURES, "auto"))
        check_choice("decoder", parameters.decoder, ("auto", *DECODERS))
        check_whiten(parameters)
        _refuse_other_models(parameters)
        features: Features = "concat" if parameters.features == "auto" else parameters.features
        hidden = DEFAULT_HIDDEN if parameters.hidden is None else parameters.hidden
        shape = hidden, parameters.layers, parameters.heads
        rules = Rules(
            k=DEFAULT_K if parameters.k == "auto" else parameters.k,
            p_tau=DEFAULT_P_TAU if parameters.p_tau == "auto" else parameters.p_tau,
            early_stop=parameters.early_stop,
            search_average=features == "average",
            decoder="parents" if parameters.decoder == "auto" else parameters.decoder,
        )
        check_decoder(rules.decoder)
        return PaperPlan(
            network=NetworkSettings(points.shape[1], features, parameters.encoder, *shape),
            learning=read_learning(parameters, LearningSettings),
            rules=rules,
            val_fraction=parameters.val_fraction,
            tune=_choose_tuned(parameters),
            seed=parameters.random_state,
            device=parameters.device,
        )

    def prepare(
        self, parameters: Parameters, points: FloatArray, labels: IntArray, plan: PaperPlan
    ) -> Preparation:
        """Normalise, and centre if in a narrow cone; whiten only with ``whiten=True``."""
        preparation = learn_preparation(points, parameters.centre, labels=labels)
        if parameters.whiten is not True:
            return preparation
        return force_whitening(preparation, points, labels, plan.rules.k, plan.seed)

    def learn(
        self,
        features: FloatArray,
        labels: IntArray,
        plan: PaperPlan,
        *,
        checkpoint_folder: Path | None = None,
        verbose: bool = False,
    ) -> Model:
        """Train on prepared embeddings, as planned."""
        return learn_to_cluster(
            features, labels, plan, checkpoint_folder=checkpoint_folder, verbose=verbose
        )

    def make_scorer(
        self, network: Lander, rules: Rules, device: str, memory: int | None = None
    ) -> LanderScorer:
        """The scorer of a trained network; it keeps at most `memory` bytes of the nodes."""
        return LanderScorer(network, device, join_equal_rows=not rules.as_released, memory=memory)

    def cost(self, hidden: int) -> MethodCost:
        """Measured by ``python -m benchmarks.scale``; scoring grows with the width."""
        return MethodCost(
            node_map=2.0 * hidden,
            edge_features=0.0,
            score_blocks=120e6,
            decode_edge=12.0,
            score_seconds=48.0 * hidden / DEFAULT_HIDDEN,
            decode_seconds=0.3,
            pool_seconds=0.6,
        )

    def learning_settings(self, values: Mapping[str, Any]) -> LearningSettings:
        """Learning settings rebuilt from plain values."""
        return learning_from_dict(values)

    def learning_from_options(self, options: Mapping[str, Any]) -> LearningSettings:
        """Learning settings from flat options; absent ones keep their defaults."""
        rest = dict(options)
        names = ("balance", "focal_gamma")
        loss = LossSettings(**{name: rest.pop(name) for name in names if name in rest})
        rate = LEARNING_RATES[rest.get("optimizer", "sgd")]
        return LearningSettings(loss=loss, **{"learning_rate": rate, **rest})


def _refuse_other_models(parameters: Parameters) -> None:
    asked_for = {
        "start": rename_value("start", parameters.start),
        "prior": read_prior(parameters),
    }
    for name, asked in asked_for.items():
        if asked not in ("auto", "none"):
            raise SettingError(
                f'{name}={str(asked)!r} is for method="evidence", got method="paper"; leave it out'
            )


def _choose_tuned(parameters: Parameters) -> tuple[str, ...]:
    wanted = {
        "p_tau": parameters.p_tau == "auto",
        "k": parameters.tune_k,
        "features": parameters.features == "auto",
    }
    return tuple(name for name, asked in wanted.items() if asked)
