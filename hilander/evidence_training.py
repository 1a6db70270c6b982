"""Learning to cluster by evidence: episodes in, an evidence network and its threshold out.

Points first: both looks learn from the episodes' k-NN graphs. Then super-nodes: the trained looks
cluster the episodes, mistakes and all, and the looks at super-nodes learn from those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from hilander.data.arrays import FloatArray, IntArray
from hilander.data.episodes import Episode, IdentityBootstrap, make_episodes, resample_identities
from hilander.graph import (
    KnnGraph,
    build_knn_graph,
    measure_background,
    start_nodes,
    weigh_edges,
)
from hilander.model.checkpoint import EpochRecord
from hilander.model.evidence_learning import (
    EvidenceLearning,
    Examples,
    make_evidence_network,
    train_look,
)
from hilander.model.evidence_network import (
    EvidenceNetwork,
    EvidencePredictor,
    EvidenceSettings,
    add_second_look,
)
from hilander.training import Stages, choose_held_out, fingerprint, remember_first, take_best
from hilander.tree import Hierarchy, LevelStep, Rules, walk_levels
from hilander.validation import bcubed_f, pairwise_f

P_TAU_GRID = (0.18, 0.27, 0.38, 0.5, 0.62, 0.73, 0.82, 0.88)
OWN_P_TAU = (0.5, 0.73)  # how boldly the training episodes are clustered for the super-nodes
_VALIDATION_POINTS = 3000


@dataclass(frozen=True)
class EvidencePlan:
    """All that decides what is learned, besides the data.

    Parameters
    ----------
    network : EvidenceSettings
    learning : EvidenceLearning
    rules : Rules
        Of inference; p_tau is replaced if it is tuned.
    val_fraction : float
        Share of the identities set aside to tune; 0 for no tuning.
    tune : tuple of str
        ("p_tau",) or ().
    seed : int
    device : str
    """

    network: EvidenceSettings = field(default_factory=EvidenceSettings)
    learning: EvidenceLearning = field(default_factory=EvidenceLearning)
    rules: Rules = field(default_factory=Rules)
    val_fraction: float = 0.2
    tune: tuple[str, ...] = ("p_tau",)
    seed: int = 0
    device: str = "auto"

    @property
    def fewest_points(self) -> int:
        """Points needed to build a graph."""
        return self.rules.k + 1


@dataclass(frozen=True, eq=False)
class LearnedEvidence:
    """What training gives: as `hilander.training.Learned`, with an evidence network."""

    network: EvidenceNetwork
    rules: Rules
    history: list[EpochRecord]
    summary: dict[str, Any]


def learn_by_evidence(
    features: FloatArray,
    labels: IntArray,
    plan: EvidencePlan,
    *,
    checkpoint_folder: Path | None = None,
    verbose: bool = False,
) -> LearnedEvidence:
    """Choose p_tau on held-out identities, then train on everything.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        Prepared embeddings.
    labels : ndarray of shape (n_points,)
        Identity of each, from 0.
    plan : EvidencePlan
    checkpoint_folder : Path, optional
    verbose : bool

    Returns
    -------
    learned : LearnedEvidence
    """
    mark = fingerprint(features, labels, plan) if checkpoint_folder else ""
    stages = Stages(checkpoint_folder, mark, verbose)
    held_out = choose_held_out(labels, plan)
    table: list[dict[str, Any]] = []
    if held_out.any():
        known = Episode(features[~held_out], labels[~held_out])
        trial, _ = train_evidence(known, plan, stages, "validate")
        table = try_thresholds(trial, Episode(features[held_out], labels[held_out]), plan)
        plan = replace(plan, rules=replace(plan.rules, p_tau=take_best(table)["p_tau"]))
    network, history = train_evidence(Episode(features, labels), plan, stages, "train")
    summary = {
        "n_points": len(labels),
        "n_identities": len(np.unique(labels)),
        "n_validation_identities": len(np.unique(labels[held_out])),
        "validation": table,
    }
    return LearnedEvidence(network, plan.rules, history, summary)


def train_evidence(
    episode: Episode, plan: EvidencePlan, stages: Stages, stage: str
) -> tuple[EvidenceNetwork, list[EpochRecord]]:
    """Train all four looks on one labelled set."""
    rng = np.random.default_rng([plan.seed, 2])
    made = make_episodes(episode, plan.learning.most_points, rng)
    usable = [one for one in made if len(one.labels) > plan.rules.k]
    network = make_evidence_network(plan.network, plan.seed)
    history: list[EpochRecord] = []

    def train_both(
        examples: Sequence[Examples], graphs: Sequence[KnnGraph], *, super_nodes: bool
    ) -> None:
        what = "clusters" if super_nodes else "points"
        for number, look in enumerate(network.looks(super_nodes=super_nodes)):
            if number == 1:
                first = network.looks(super_nodes=super_nodes)[0]
                examples = [
                    Examples(
                        add_second_look(graph, one.evidence, first.judge(one.evidence)), one.same
                    )
                    for graph, one in zip(graphs, examples, strict=True)
                ]
            name = f"{stage}-{what}-{number + 1}"
            records = train_look(
                look,
                examples,
                plan.learning,
                seed=plan.seed,
                device=plan.device,
                checkpoint=stages.checkpoint(name),
                progress=name if stages.verbose else None,
            )
            history.extend({"look": f"{what}-{number + 1}", **record} for record in records)

    starts = [_look_at_points(one, plan.rules.k) for one in usable]
    train_both(
        [examples for _, examples in starts], [graph for graph, _ in starts], super_nodes=False
    )
    merged = list(_look_at_clusters(network, usable, [graph for graph, _ in starts], plan))
    if merged:
        train_both([e for _, e in merged], [graph for graph, _ in merged], super_nodes=True)
    return network.eval(), history


def _look_at_points(episode: Episode, k: int) -> tuple[KnnGraph, Examples]:
    graph = build_knn_graph(episode.features, k)
    background = measure_background(episode.features)
    evidence = weigh_edges(graph, start_nodes(episode.features), background)
    same = episode.labels[graph.neighbours] == episode.labels[:, None]
    return graph, Examples(evidence, same)


def _look_at_clusters(
    network: EvidenceNetwork,
    episodes: Iterable[Episode],
    graphs: Iterable[KnnGraph],
    plan: EvidencePlan,
) -> Iterable[tuple[KnnGraph, Examples]]:
    """Super-nodes as the network itself makes them, an identity to each by majority."""
    for episode, graph in zip(episodes, graphs, strict=True):
        background = measure_background(episode.features)
        score = remember_first(EvidencePredictor(network, plan.device))
        for p_tau in OWN_P_TAU:
            rules = replace(plan.rules, p_tau=p_tau, max_levels=2)
            steps = list(walk_levels(episode.features, score, rules, graph=graph))
            if len(steps) < 2 or steps[1].graph.k < 2:
                continue
            upper = steps[1]
            identity = majority_identity(steps[0], episode.labels)
            evidence = weigh_edges(upper.graph, upper.nodes, background)
            same = identity[upper.graph.neighbours] == identity[:, None]
            yield upper.graph, Examples(evidence, same)


def majority_identity(step: LevelStep, labels: IntArray) -> IntArray:
    """The most frequent identity of each cluster of the points, shape (n_clusters,)."""
    shape = (len(step.peaks), int(labels.max()) + 1)
    counts = csr_matrix((np.ones(len(labels)), (step.labels, labels)), shape)
    return np.asarray(counts.argmax(axis=1)).ravel().astype(np.int64)


def try_thresholds(
    network: EvidenceNetwork, held_out: Episode, plan: EvidencePlan
) -> list[dict[str, Any]]:
    """Mean validation scores of every p_tau over several size distributions."""
    rng = np.random.default_rng([plan.seed, 3])
    episodes = [
        one
        for one in make_validation_episodes(held_out, rng)
        if len(one.labels) > plan.rules.k and len(np.unique(one.labels)) > 1
    ]
    sums = np.zeros((len(P_TAU_GRID), 2))
    for episode in episodes:
        graph = build_knn_graph(episode.features, plan.rules.k)
        score = remember_first(EvidencePredictor(network, plan.device))
        for row, p_tau in enumerate(P_TAU_GRID):
            rules = replace(plan.rules, p_tau=p_tau)
            found = Hierarchy.of_steps(walk_levels(episode.features, score, rules, graph=graph))
            predicted = found.labels(-1)
            sums[row] += pairwise_f(episode.labels, predicted), bcubed_f(episode.labels, predicted)
    means = sums / max(len(episodes), 1)
    return [
        {"p_tau": p_tau, "pairwise_f": pair, "bcubed_f": bcubed, "f": (pair + bcubed) / 2}
        for p_tau, (pair, bcubed) in zip(P_TAU_GRID, means.tolist(), strict=True)
    ]


def make_validation_episodes(held_out: Episode, rng: np.random.Generator) -> list[Episode]:
    """The held-out identities as they are, re-sampled, and bootstrapped."""
    made = [
        resample_identities(held_out, sizes, 2 * _VALIDATION_POINTS, rng)
        for sizes in ("all", "singles", "log")
    ]
    bootstrap = IdentityBootstrap(held_out)
    if bootstrap.is_able:
        made += [bootstrap.make(sizes, _VALIDATION_POINTS, rng) for sizes in ("singles", "even")]
    return made
