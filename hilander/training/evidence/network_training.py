"""Training of an evidence network on episodes: the first stage, the second, and the merges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from hilander.errors import ModelError
from hilander.graph.knn_graph import KnnGraph
from hilander.learning.checkpoint import EpochRecord
from hilander.linkage.evidence.network import EdgeClassifier, EvidenceNetwork
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import (
    for_fine_tuning,
    make_evidence_network,
    train_classifier,
)
from hilander.linkage.storage import as_evidence_network, read_network
from hilander.synthetic.episodes import Episode
from hilander.synthetic.training_episodes import make_episodes
from hilander.training.evidence.examples import GraphExamples, make_point_examples
from hilander.training.evidence.merge_examples import make_merge_examples
from hilander.training.evidence.plan import EvidencePlan
from hilander.training.stages import Stages

# Points of the largest synthetic set that is made from a small labelled set: twice the labelled
# points, so that training stays short, but at least 1,500, so that large identities occur.
_FEWEST_SYNTHETIC_POINTS = 1500
_SYNTHETIC_SHARE = 2


def train_evidence(
    episode: Episode, plan: EvidencePlan, stages: Stages, stage: str
) -> tuple[EvidenceNetwork, list[EpochRecord]]:
    """Train both stages on one labelled set."""
    return train_on_episodes(make_training_episodes(episode, plan), plan, stages, stage)


def make_training_episodes(episode: Episode, plan: EvidencePlan) -> list[Episode]:
    """Training episodes from a labelled set."""
    rng = np.random.default_rng([plan.seed, 2])
    most = limit_synthetic_points(plan.learning.most_points, len(episode.labels))
    return make_episodes(episode, max(most, plan.fewest_points), rng)


def limit_synthetic_points(most_points: int, n_labelled: int) -> int:
    """Points of the largest synthetic set: fewer than `most_points` for a small labelled set."""
    return min(most_points, max(_SYNTHETIC_SHARE * n_labelled, _FEWEST_SYNTHETIC_POINTS))


def train_on_episodes(
    made: Iterable[Episode], plan: EvidencePlan, stages: Stages, stage: str
) -> tuple[EvidenceNetwork, list[EpochRecord]]:
    """Train both stages on labelled sets, each with its own k or the plan's, then the merges."""
    network = init_network(plan)
    episodes = [one for one in made if len(one.labels) > (one.k or plan.rules.k)]
    examples = [make_point_examples(one, one.k or plan.rules.k) for one in stages.watch(episodes)]
    history = train_both_stages(network.classifiers(), examples, plan, stages, stage)
    if network.merges is not None:
        graphs = [one.graph for one in examples]
        history += train_merges(network, network.merges, episodes, graphs, plan, stages, stage)
    return network.eval(), history


def train_merges(
    network: EvidenceNetwork,
    merges: EdgeClassifier,
    episodes: Sequence[Episode],
    graphs: Sequence[KnnGraph],
    plan: EvidencePlan,
    stages: Stages,
    stage: str,
) -> list[EpochRecord]:
    """Train the classifier of merges on clusters that the network makes of real identities.

    Synthetic identities have one mode. Fragments of a real one may be modes, with few links.
    """
    score = EvidenceScorer(network.eval(), plan.device)
    pairs = zip(episodes, graphs, strict=True)
    real = [(episode, graph) for episode, graph in pairs if not episode.is_synthetic]
    made = (make_merge_examples(score, *one, plan) for one in stages.watch(real))
    examples = [one for one in made if one is not None]
    if not examples:
        return []
    name = f"{stage}-merges"
    records = train_classifier(
        merges, examples, plan.learning, seed=plan.seed, device=plan.device, run=stages.run(name)
    )
    return [{"classifier": name, **record} for record in records]


def init_network(plan: EvidencePlan) -> EvidenceNetwork:
    """A network to train: with random weights, or with those of the plan's start model.

    The classifier of merges always starts anew: its examples are clusters of this training set.
    """
    fresh = make_evidence_network(plan.network, plan.seed)
    if plan.start is None:
        return fresh
    network = as_evidence_network(read_network(Path(plan.start)).network)
    if network is None or not network.settings.is_shaped(plan.network):
        raise ModelError(
            f"the model in {plan.start} is not of the shape that is to be trained, {plan.network}; "
            'use start="none", or give it the same method and hidden'
        )
    # The network for small sets was trained on sets of all sizes. A prior model is not trained.
    fresh.points.load_state_dict((network.small_set or network).points.state_dict())
    return fresh


def train_both_stages(
    classifiers: tuple[EdgeClassifier, EdgeClassifier],
    graph_examples: Sequence[GraphExamples],
    plan: EvidencePlan,
    stages: Stages,
    name: str,
) -> list[EpochRecord]:
    """Train the first stage, then the second, whose features depend on the first."""
    history: list[EpochRecord] = []
    learning = plan.learning if plan.start is None else for_fine_tuning(plan.learning)
    for number, classifier in enumerate(classifiers, start=1):
        stage = f"{name}-{number}"
        records = train_classifier(
            classifier,
            [one.examples for one in graph_examples],
            learning,
            seed=plan.seed,
            device=plan.device,
            fit_scaling=plan.start is None,
            run=stages.run(stage),
        )
        history += [{"classifier": stage, **record} for record in records]
        if classifier is classifiers[0]:
            graph_examples = [
                one.second_stage_features(classifier) for one in stages.watch(graph_examples)
            ]
    return history
