"""The recipe of the published method: settings by validation, then a network trained on all.

The ground truth is a scorer like any other, so the training hierarchy is built by the level loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import LabelScorer
from hilander.learning.checkpoint import EpochRecord
from hilander.linkage.paper.examples import TrainingGraph
from hilander.linkage.paper.lander import Lander
from hilander.linkage.paper.settings import FEATURES
from hilander.linkage.paper.training import make_network, train_network
from hilander.synthetic.episodes import Episode
from hilander.training.model import Model, summarise
from hilander.training.paper.plan import PaperPlan
from hilander.training.paper.settings_search import SettingsSearch, take_best
from hilander.training.split import choose_held_out
from hilander.training.stages import Stages, open_stages


@dataclass(frozen=True)
class Trial:
    """A plan with settings chosen on held-out identities.

    Parameters
    ----------
    plan : PaperPlan
    f : float
        Validation score of the chosen settings.
    history : list of dict
        Of the network that was trained for it.
    """

    plan: PaperPlan
    f: float
    history: list[EpochRecord]


def learn_to_cluster(
    features: FloatArray,
    labels: IntArray,
    plan: PaperPlan,
    *,
    checkpoint_folder: Path | None = None,
    verbose: bool = False,
) -> Model:
    """Choose settings on held-out identities, then train on all identities.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised embeddings.
    labels : ndarray of shape (n_points,)
        Identity of each, from 0.
    plan : PaperPlan
    checkpoint_folder : Path, optional
        Where an interrupted run leaves its progress, and takes it up again.
    verbose : bool
        Draw progress bars (only on a terminal).

    Returns
    -------
    model : Model
    """
    stages = open_stages(features, labels, plan, checkpoint_folder, verbose=verbose)
    held_out = choose_held_out(labels, plan)
    everything = Episode(features, labels)
    trial = Trial(plan, 0.0, [])
    table: list[dict[str, Any]] = []
    if held_out.any():
        trial, table = tune_plan(everything, held_out, plan, stages)
    network, history = train_on(everything, trial.plan, stages, "train")
    summary = summarise(labels, held_out, table) | {"validation_history": trial.history}
    return Model(network, trial.plan.rules, history=history, summary=summary)


def tune_plan(
    episode: Episode, held_out: BoolArray, plan: PaperPlan, stages: Stages
) -> tuple[Trial, list[dict[str, Any]]]:
    """Train on the other identities and take the settings that cluster the held-out ones best.

    Returns
    -------
    best : Trial
    table : list of dict
        Validation scores of every setting that was tried.
    """
    known = Episode(episode.features[~held_out], episode.labels[~held_out])
    unseen = Episode(episode.features[held_out], episode.labels[held_out])
    names = FEATURES if "features" in plan.tune else (plan.network.features,)
    trials: list[Trial] = []
    table: list[dict[str, Any]] = []
    for name in names:
        trial = plan_for_features(plan, name)
        search = SettingsSearch(unseen, trial)
        stage = f"validate-{name}" if len(names) > 1 else "validate"
        network, history = train_on(known, trial, stages, stage, search)
        rows = search.try_settings(network)
        table += [{"features": name, **row} for row in rows]
        best = take_best(rows)
        rules = replace(trial.rules, k=best["k"], p_tau=best["p_tau"])
        trials.append(Trial(replace(trial, rules=rules), best["f"], history))
    return max(trials, key=lambda one: one.f), table


def plan_for_features(plan: PaperPlan, features: Any) -> PaperPlan:
    """The same plan for a network with other input features."""
    return replace(
        plan,
        network=replace(plan.network, features=features),
        rules=replace(plan.rules, search_average=features == "average"),
    )


def train_on(
    episode: Episode,
    plan: PaperPlan,
    stages: Stages,
    stage: str,
    search: SettingsSearch | None = None,
) -> tuple[Lander, list[EpochRecord]]:
    """Train one network on the ground-truth hierarchies of a labelled set."""
    graphs = list(build_training_graphs(episode.features, episode.labels, plan))
    network = make_network(plan.network, plan.seed)
    history = train_network(
        network,
        graphs,
        plan.learning,
        seed=plan.seed,
        device=plan.device,
        validate=search,
        run=stages.run(stage),
    )
    return network.eval(), history


def build_training_graphs(
    features: FloatArray, labels: IntArray, plan: PaperPlan
) -> Iterator[TrainingGraph]:
    """Level graphs of the ground truth, for each k of the plan.

    Links join points of one identity only, so every node of these levels is pure. With
    `learning.as_released` links also join two identities.
    """
    as_released = plan.learning.as_released
    score = LabelScorer(labels, as_released=as_released)
    for k, n_levels in plan.learning.hierarchies:
        rules = Rules(
            k=min(k, len(features) - 1),
            p_tau=0.0 if as_released else 0.5,  # ground-truth linkage is 0 or 1
            search_average=plan.rules.search_average,
            as_released=as_released,
        )
        for step in walk_levels(features, score, rules, max_levels=n_levels):
            identity = labels[step.nodes.point]
            yield TrainingGraph.of_level(step.graph, step.nodes, identity, plan.network.features)
