"""From an estimator's parameters to the plan of its training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.preparation import Preparation, learn_preparation
from hilander.errors import FileFormatError, GraphError, SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.decoding.decode import DECODERS, check_decoder
from hilander.hierarchy.levels import Scorer
from hilander.hierarchy.rules import FEWEST_K, Rules, fit_k
from hilander.io.writing import check_folder_kind
from hilander.knn.search import check_k
from hilander.linkage.evidence.network import EvidenceNetwork, EvidenceSettings
from hilander.linkage.evidence.scorer import EvidencePredictor
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.linkage.paper.scorer import Predictor
from hilander.linkage.paper.settings import NetworkSettings, check_choice
from hilander.linkage.paper.training import LearningSettings
from hilander.linkage.storage import BOX
from hilander.training.evidence.prior import warn_unasked
from hilander.training.evidence.recipe import EvidencePlan, learn_by_evidence
from hilander.training.map_choice import can_judge_maps, choose_map, whiten_anyway
from hilander.training.model_folder import MODEL_KIND
from hilander.training.paper.recipe import Learned, TrainingPlan, learn_to_cluster

if TYPE_CHECKING:
    from hilander.estimator import HiLander
    from hilander.linkage.paper.lander import Lander

METHODS = ("evidence", "paper")
DEFAULT_P_TAU = 0.5
P_TAU_RISE = 2.0
PAPER_K = 10
PAPER_HIDDEN = 512
EVIDENCE_HIDDEN = 32
SURE_RIDGE = 1.0
EVIDENCE_K = 15
FEWEST_K_LEARNT = 10  # neighbours to learn from, however few the points


def make_plan(model: HiLander, points: FloatArray, labels: IntArray) -> TrainingPlan | EvidencePlan:
    """Everything that decides what is learned, from the parameters."""
    check_choice("method", model.method, METHODS)
    check_choice("features", model.features, ("identity", "average", "concat", "auto"))
    check_choice("decoder", model.decoder, ("auto", *DECODERS))
    is_paper = model.method == "paper"
    plan = _plan_paper(model, points.shape[1]) if is_paper else _plan_evidence(model, len(labels))
    check_decoder(plan.rules.decoder)
    if isinstance(plan, EvidencePlan):
        warn_unasked(model.adviser, len(np.unique(labels)), len(labels))
    return plan


def _plan_paper(model: HiLander, dim: int) -> TrainingPlan:
    for name in ("start", "adviser"):
        if (asked := getattr(model, name)) not in ("auto", "nothing"):
            raise SettingError(
                f'{name}={str(asked)!r} is for method="evidence", got method="paper"; leave it out'
            )
    shown = "concat" if model.features == "auto" else model.features
    wanted = {
        "p_tau": model.p_tau == "auto", "k": model.tune_k, "features": model.features == "auto"
    }  # fmt: skip
    hidden = PAPER_HIDDEN if model.hidden is None else model.hidden
    return TrainingPlan(
        network=NetworkSettings(dim, shown, model.encoder, hidden, model.layers, model.heads),
        learning=_learning(model, LearningSettings),
        rules=Rules(
            k=PAPER_K if model.k == "auto" else model.k,
            p_tau=DEFAULT_P_TAU if model.p_tau == "auto" else model.p_tau,
            early_stop=model.early_stop,
            search_average=shown == "average",
            decoder="parents" if model.decoder == "auto" else model.decoder,
        ),
        val_fraction=model.val_fraction,
        tune=tuple(name for name, asked in wanted.items() if asked),
        seed=model.random_state,
        device=model.device,
    )


def _plan_evidence(model: HiLander, n_points: int) -> EvidencePlan:
    return EvidencePlan(
        network=EvidenceSettings(EVIDENCE_HIDDEN if model.hidden is None else model.hidden),
        learning=_learning(model, EvidenceLearning),
        rules=Rules(
            k=fit_k(EVIDENCE_K, n_points, FEWEST_K_LEARNT) if model.k == "auto" else model.k,
            p_tau=DEFAULT_P_TAU if model.p_tau == "auto" else model.p_tau,
            early_stop=model.early_stop,
            search_average=True,
            decoder="leiden" if model.decoder == "auto" else model.decoder,
            p_tau_merge=DEFAULT_P_TAU,
            p_tau_rise=P_TAU_RISE if model.p_tau == "auto" else 0.0,
            keep_links=True,
        ),
        val_fraction=model.val_fraction,
        tune=("p_tau",) if model.p_tau == "auto" else (),
        start=choose_model("start", model.start, auto="nothing"),
        adviser=choose_model("adviser", model.adviser, auto="box"),
        seed=model.random_state,
        device=model.device,
    )


def check_enough(model: HiLander, k: int, n_points: int) -> None:
    """Refuse to learn from so few points; k is named only to who has named one."""
    if model.k == "auto" and n_points <= k:
        raise GraphError(
            f"got only {n_points} labelled embeddings, learning needs at least {k + 1}; label "
            f"more, name a k below {n_points}, or group without labels: "
            "HiLander.pretrained().cluster(X)"
        )
    check_k(k, n_points)


def choose_model(parameter: str, asked: str | Path, *, auto: str) -> str | None:
    """Folder of the model to train further, or to be advised by; None for none."""
    asked = auto if asked == "auto" else asked
    if asked == "nothing":
        return None
    if asked == "box":
        return str(BOX)
    if not isinstance(asked, str | Path) or not Path(asked).is_dir():
        raise SettingError(
            f"{parameter}={str(asked)!r} is no folder; "
            'use "auto", "box", "nothing" or the folder of a model'
        )
    try:
        return str(check_folder_kind(asked, MODEL_KIND))
    except FileFormatError as error:
        raise SettingError(f"{parameter}={error}") from error


def _learning(model: HiLander, kind: type[Any]) -> Any:
    learning = kind() if model.learning is None else model.learning
    if not isinstance(learning, kind):
        raise SettingError(
            f"learning is {type(learning).__name__}, method={model.method!r} needs "
            f"{kind.__name__}; pass that or change the method"
        )
    return learning if model.epochs is None else replace(learning, epochs=model.epochs)


def rules_for(model: HiLander, n_points: int, graph: KnnGraph | None = None, **asked: Any) -> Rules:
    """The rules for so many points: the trained model's, but what is asked for otherwise.

    Parameters
    ----------
    model : HiLander
    n_points : int
    graph : KnnGraph, optional
        Its k is used.
    **asked
        k, p_tau, early_stop; None for the model's own.
    """
    given = {name: value for name, value in asked.items() if value is not None}
    p_tau = given.pop("p_tau", None)
    rules = model.rules_ if p_tau is None else model.rules_.with_threshold(p_tau)
    if graph is not None:
        if graph.n_nodes != n_points:
            raise SettingError(
                f"the graph has {graph.n_nodes} nodes, X has {n_points} rows; "
                "give the graph of these embeddings"
            )
        return replace(rules, **given | {"k": graph.k})
    rules = replace(rules, **given)
    if "k" not in given and model.k == "auto":
        if n_points <= FEWEST_K:
            raise GraphError(
                f"got only {n_points} embeddings, grouping needs at least {FEWEST_K + 1}; give more"
            )
        rules = rules.suited_to(n_points)
    check_k(rules.k, n_points)
    return rules


def prepare(model: HiLander, points: FloatArray, labels: IntArray, k: int) -> Preparation:
    """Learn how embeddings are prepared: normalised, perhaps centred, perhaps mapped."""
    if model.whiten not in (True, False, "auto"):
        raise SettingError(f'whiten={model.whiten!r} must be True, False or "auto"')
    preparation = learn_preparation(points, model.centre, labels=labels)
    if model.whiten is False or (model.whiten == "auto" and model.method == "paper"):
        return preparation
    if model.whiten == "auto" and model.adviser != "nothing" and not can_judge_maps(labels):
        return replace(preparation, whitens_own=True)  # as its adviser would do
    prepared = preparation.apply(points)
    seed = model.random_state
    if model.whiten is True:
        forced = whiten_anyway(prepared, labels, k, seed, SURE_RIDGE)
        return replace(preparation, **vars(forced))
    chosen = choose_map(prepared, labels, k, seed)
    return preparation if chosen is None else replace(preparation, **vars(chosen))


def learn(
    features: FloatArray,
    labels: IntArray,
    plan: TrainingPlan | EvidencePlan,
    checkpoint_folder: Path | None,
    verbose: bool,
) -> Learned:
    """Train as planned."""
    train = learn_by_evidence if isinstance(plan, EvidencePlan) else learn_to_cluster
    return train(features, labels, plan, checkpoint_folder=checkpoint_folder, verbose=verbose)  # type: ignore[arg-type]


def make_scorer(
    network: Lander | EvidenceNetwork, device: str, rules: Rules, memory: int | None = None
) -> Scorer:
    """The scorer that goes with a network; the paper's keeps at most `memory` bytes of nodes."""
    if isinstance(network, EvidenceNetwork):
        return EvidencePredictor(network, device, rules.strangers)
    return Predictor(network, device, join_copies=not rules.as_released, memory=memory)
