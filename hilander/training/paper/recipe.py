"""Learning to cluster: level graphs from labels, a network on all of them, settings by validation.

The ground truth is a scorer like any other, so the training hierarchy is the level loop itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.errors import SettingError
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import CachedScorer, LabelScorer
from hilander.knn.search import build_knn_graph
from hilander.learning.checkpoint import EpochRecord
from hilander.linkage.paper.examples import TrainingGraph
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.scorer import LanderScorer
from hilander.linkage.paper.settings import FEATURES, NetworkSettings
from hilander.linkage.paper.training import LearningSettings, make_network, train_network
from hilander.metrics.scores import bcubed_f, pairwise_f
from hilander.training.model import Model, summarise
from hilander.training.split import choose_held_out
from hilander.training.stages import Stages, fingerprint

P_TAU_GRID = (*np.round(np.arange(0.05, 0.96, 0.05), 2).tolist(), 0.975, 0.99)
K_GRID = (5, 10, 15, 20)
TUNABLE = ("p_tau", "k", "features")


@dataclass(frozen=True)
class TrainingPlan:
    """All that decides what is learned, besides the data.

    Parameters
    ----------
    network : NetworkSettings
    learning : LearningSettings
    rules : Rules
        Of inference; what is tuned is replaced.
    val_fraction : float
        Share of the identities set aside to tune; 0 for no tuning.
    tune : tuple of str
        What to choose by validation, of "p_tau", "k", "features".
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
        if not 0 <= self.val_fraction < 1:
            raise SettingError(f"val_fraction={self.val_fraction!r} must be in [0, 1)")
        if unknown := set(self.tune) - set(TUNABLE):
            raise SettingError(f"tune={sorted(unknown)} is not known; choose from {TUNABLE}")
        seed: Any = self.seed
        if not isinstance(seed, Integral) or seed < 0:
            raise SettingError(f"seed={seed!r} must be a whole number >= 0")
        object.__setattr__(self, "seed", int(seed))  # a numpy integer has no place in JSON

    @property
    def fewest_points(self) -> int:
        """Points needed to build every graph."""
        return max(self.rules.k, *(k for k, _ in self.learning.hierarchies)) + 1


def learn_to_cluster(
    features: FloatArray,
    labels: IntArray,
    plan: TrainingPlan,
    *,
    checkpoint_folder: Path | None = None,
    verbose: bool = False,
) -> Model:
    """Choose settings on held-out identities, then train on everything.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised embeddings.
    labels : ndarray of shape (n_points,)
        Identity of each, from 0.
    plan : TrainingPlan
    checkpoint_folder : Path, optional
        Where a killed run leaves what it has, and takes it up again.
    verbose : bool
        Draw progress bars (only on a terminal).

    Returns
    -------
    model : Model
    """
    mark = fingerprint(features, labels, plan) if checkpoint_folder else ""
    stages = Stages(checkpoint_folder, mark, verbose)
    held_out = choose_held_out(labels, plan)
    trial_history: list[EpochRecord] = []
    table: list[dict[str, Any]] = []
    if held_out.any():
        plan, trial_history, table = tune_plan(features, labels, held_out, plan, stages)
    network, history = train_on(features, labels, plan, stages, "train")
    summary = summarise(labels, held_out, table) | {"validation_history": trial_history}
    return Model(network, plan.rules, history=history, summary=summary)


def tune_plan(
    features: FloatArray,
    labels: IntArray,
    held_out: BoolArray,
    plan: TrainingPlan,
    stages: Stages,
) -> tuple[TrainingPlan, list[EpochRecord], list[dict[str, Any]]]:
    """Train on the other identities and take the settings that group the held-out ones best.

    Returns
    -------
    plan : TrainingPlan with the chosen settings
    history : list of dict
        Of the trial that was chosen.
    table : list of dict
        Validation scores of every setting tried.
    """
    shown = FEATURES if "features" in plan.tune else (plan.network.features,)
    best: tuple[float, TrainingPlan, list[EpochRecord]] | None = None
    table: list[dict[str, Any]] = []
    for name in shown:
        trial = plan_for_features(plan, name)
        search = SettingsSearch(features[held_out], labels[held_out], trial)
        stage = f"validate-{name}" if len(shown) > 1 else "validate"
        network, history = train_on(
            features[~held_out], labels[~held_out], trial, stages, stage, search
        )
        rows = search.try_settings(network)
        table += [{"features": name, **row} for row in rows]
        winner = take_best(rows)
        if best is None or winner["f"] > best[0]:
            rules = replace(trial.rules, k=winner["k"], p_tau=winner["p_tau"])
            best = winner["f"], replace(trial, rules=rules), history
    if best is None:
        raise SettingError("nothing to tune: no features to try")
    return best[1], best[2], table


def plan_for_features(plan: TrainingPlan, features: Any) -> TrainingPlan:
    """The same plan for a network that is shown other features."""
    return replace(
        plan,
        network=replace(plan.network, features=features),
        rules=replace(plan.rules, search_average=features == "average"),
    )


class SettingsSearch:
    """Scores settings on held-out identities.

    Parameters
    ----------
    features : ndarray of shape (n_held_out, dim)
    labels : ndarray of shape (n_held_out,)
    plan : TrainingPlan
    """

    def __init__(self, features: FloatArray, labels: IntArray, plan: TrainingPlan) -> None:
        self.features, self.labels, self.plan = features, labels, plan
        ks = {plan.rules.k, *(K_GRID if "k" in plan.tune else ())}
        self.graphs = {k: build_knn_graph(features, k) for k in sorted(ks) if k < len(features)}

    def try_settings(self, network: Lander) -> list[dict[str, Any]]:
        """Validation scores of every k and p_tau to choose from."""
        taus = P_TAU_GRID if "p_tau" in self.plan.tune else (self.plan.rules.p_tau,)
        rows = []
        for k, graph in self.graphs.items():
            score = CachedScorer(LanderScorer(network, self.plan.device, join_equal_rows=True))
            for p_tau in taus:
                rules = replace(self.plan.rules, k=k, p_tau=p_tau)
                found = walk_levels(self.features, score, rules, graph=graph)
                predicted = Hierarchy.of_steps(found).labels(-1)
                pair, bcubed = pairwise_f(self.labels, predicted), bcubed_f(self.labels, predicted)
                score_row = {"pairwise_f": pair, "bcubed_f": bcubed, "f": (pair + bcubed) / 2}
                rows.append({"k": k, "p_tau": p_tau, **score_row})
        return rows

    def __call__(self, network: Lander) -> EpochRecord:
        """The best of `try_settings`, for the history."""
        best = take_best(self.try_settings(network))
        return {"val_pairwise_f": best["pairwise_f"], "val_bcubed_f": best["bcubed_f"]}


def take_best(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The row with the highest F; of equals the middle one, which is safest to either side."""
    highest = max(row["f"] for row in rows)
    winners = [row for row in rows if row["f"] == highest]
    return winners[len(winners) // 2]


def train_on(
    features: FloatArray,
    labels: IntArray,
    plan: TrainingPlan,
    stages: Stages,
    stage: str,
    search: SettingsSearch | None = None,
) -> tuple[Lander, list[EpochRecord]]:
    """Train one network on the ground-truth hierarchies of some labelled points."""
    graphs = list(build_training_graphs(features, labels, plan))
    network = make_network(plan.network, plan.seed)
    history = train_network(
        network,
        graphs,
        plan.learning,
        seed=plan.seed,
        device=plan.device,
        checkpoint=stages.checkpoint(stage),
        validate=search,
        progress=stage if stages.verbose else None,
    )
    return network.eval(), history


def build_training_graphs(
    features: FloatArray, labels: IntArray, plan: TrainingPlan
) -> Iterator[TrainingGraph]:
    """Level graphs of the ground truth, for each k of the plan.

    Every node of these levels is pure, for links join one identity only; not so if
    `learning.as_released`.
    """
    as_released = plan.learning.as_released
    score = LabelScorer(labels, as_released=as_released)
    for k, n_levels in plan.learning.hierarchies:
        rules = Rules(
            k=min(k, len(features) - 1),
            p_tau=0.0 if as_released else 0.5,
            max_levels=n_levels,
            search_average=plan.rules.search_average,
            as_released=as_released,
        )
        for step in walk_levels(features, score, rules):
            identity = labels[step.nodes.point]
            yield TrainingGraph.of_level(step.graph, step.nodes, identity, plan.network.features)
