"""Learning to cluster by evidence: episodes in, an evidence network and its threshold out.

Points first: both looks learn from the episodes' k-NN graphs. Then super-nodes: the trained looks
cluster the episodes, mistakes and all, and the looks at super-nodes learn from those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.engines.threads import open_workers
from hilander.errors import ModelError, SettingError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.hierarchy.decoding.decode import Decoder
from hilander.hierarchy.levels import LevelStep, walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import CachedScorer, Scorer
from hilander.knn.search import build_knn_graph
from hilander.learning.checkpoint import EpochRecord
from hilander.learning.device import choose_device, one_thread
from hilander.linkage.evidence.background import measure_background, measure_between_cosine
from hilander.linkage.evidence.edge_features import compute_edge_features
from hilander.linkage.evidence.network import (
    EdgeClassifier,
    EvidenceNetwork,
    EvidenceSettings,
    add_second_stage,
    remove_prior,
)
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import (
    EvidenceLearning,
    Examples,
    for_fine_tuning,
    make_evidence_network,
    train_classifier,
)
from hilander.linkage.storage import as_evidence_network, read_network
from hilander.synthetic.episodes import Episode
from hilander.synthetic.training_episodes import make_episodes
from hilander.training.evidence.prior import PriorModel, read_prior
from hilander.training.evidence.thresholds import (
    DEFAULT_THRESHOLD,
    VALIDATION_POINTS,
    ThresholdSearch,
)
from hilander.training.model import Model, summarise
from hilander.training.split import choose_held_out
from hilander.training.stages import Stages, fingerprint

Seen = tuple[Episode, KnnGraph]
# How the training episodes are clustered for the super-nodes. Communities cut large identities to
# pieces, and only who has seen such pieces will join them.
CLUSTERING_VARIANTS: tuple[tuple[Decoder, float], ...] = (
    ("contract", 0.5),
    ("leiden", 0.42),
    ("leiden", 0.73),
    ("leiden", 0.9),
)
_LEAST_MADE_UP = 1500  # points of the largest made-up episode for a small training set


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
    start : str, optional
        Folder of a model to train further; None to begin with chance weights.
    adviser : str, optional
        Folder of a model that is asked as well, once this one has learned.
    seed : int
    device : str
    """

    network: EvidenceSettings = field(default_factory=EvidenceSettings)
    learning: EvidenceLearning = field(default_factory=EvidenceLearning)
    rules: Rules = field(default_factory=Rules)
    val_fraction: float = 0.2
    tune: tuple[str, ...] = ("p_tau",)
    start: str | None = None
    prior: str | None = None
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        if not 0 <= self.val_fraction < 1:
            raise SettingError(f"val_fraction={self.val_fraction!r} must be in [0, 1)")
        if unknown := set(self.tune) - {"p_tau"}:
            raise SettingError(f"tune={sorted(unknown)} is not known; use p_tau or nothing")
        seed: Any = self.seed
        if not isinstance(seed, Integral) or seed < 0:
            raise SettingError(f"seed={seed!r} must be a whole number >= 0")
        object.__setattr__(self, "seed", int(seed))  # a numpy integer has no place in JSON

    @property
    def fewest_points(self) -> int:
        """Points needed to build a graph."""
        return self.rules.k + 1


def learn_by_evidence(
    features: FloatArray,
    labels: IntArray,
    plan: EvidencePlan,
    *,
    checkpoint_folder: Path | None = None,
    verbose: bool = False,
) -> Model:
    """Choose p_tau on held-out identities, and train on everything at the same time.

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
    model : Model
    """
    mark = fingerprint(features, labels, plan) if checkpoint_folder else ""
    stages = Stages(checkpoint_folder, mark, verbose)
    held_out = choose_held_out(labels, plan)
    everything = Episode(features, labels)
    prior = read_prior(plan.prior, len(np.unique(labels)), len(labels))
    (rules, table), (network, history) = run_in_parallel(
        partial(choose_rules, everything, held_out, plan, stages, prior),
        partial(train_evidence, everything, plan, stages, "train"),
        stages=stages,
        device=plan.device,
    )
    rules = replace(rules, between_cosine=measure_between_cosine(features, labels))
    summary = summarise(labels, held_out, table)
    if prior is None:
        return Model(network, rules, history=history, summary=summary)
    told = {"prior": Path(str(plan.prior)).name, "own_weight": prior.own_weight}
    return Model(prior.join(network), rules, history=history, summary=summary | told)


def choose_rules(
    episode: Episode,
    held_out: BoolArray,
    plan: EvidencePlan,
    stages: Stages,
    prior: PriorModel | None = None,
    trial: EvidenceNetwork | None = None,
) -> tuple[Rules, list[dict[str, Any]]]:
    """The plan's rules with thresholds chosen on held-out identities, and what was tried.

    The trial is a network that has not seen those; it is trained if there is none yet.
    """
    if not held_out.any():
        return prior.suit(plan) if prior is not None else plan.rules, []
    if trial is None:
        trial = train_trial(episode, held_out, plan, stages)
    unseen = Episode(episode.features[held_out], episode.labels[held_out])
    search = ThresholdSearch(
        trial if prior is None else prior.join(trial),
        [unseen], plan.rules, seed=plan.seed, device=plan.device,
        most_points=min(VALIDATION_POINTS, max(2 * len(held_out), _LEAST_MADE_UP)),
        watch=stages.watch,
    )  # fmt: skip
    usual = DEFAULT_THRESHOLD if prior is None else prior.default_p_tau(DEFAULT_THRESHOLD)
    return search.choose(usual=usual)


def train_trial(
    episode: Episode, held_out: BoolArray, plan: EvidencePlan, stages: Stages
) -> EvidenceNetwork:
    """A network that has seen all but the held-out identities."""
    known = Episode(episode.features[~held_out], episode.labels[~held_out])
    return train_evidence(known, plan, stages, "validate")[0]


def run_in_parallel(*courses: Callable[[], Any], stages: Stages, device: str) -> list[Any]:
    """Results of courses that do not depend on each other, each in a thread of its own.

    A step of training is too small for two threads to share. A GPU takes one course after another.
    """
    alone = choose_device(device).type != "cpu"
    with open_workers(alone=alone) as workers, one_thread():
        try:
            return workers.map(lambda course: course(), courses)
        except BaseException:
            stages.halt.set()  # or the others would be waited for to the end
            raise


@dataclass(frozen=True, eq=False)
class GraphExamples:
    """A graph, what is seen of its edges, and whether the second look sees their context."""

    graph: KnnGraph
    examples: Examples
    set_context: bool = False

    def second_stage_features(self, first: EdgeClassifier) -> GraphExamples:
        """The same edges for the second look, after the first has judged them."""
        evidence = self.examples.edge_features
        guess = first.predict(evidence)
        more = add_second_stage(self.graph, evidence, guess, set_context=self.set_context)
        return replace(self, examples=replace(self.examples, edge_features=more))


def train_evidence(
    episode: Episode, plan: EvidencePlan, stages: Stages, stage: str
) -> tuple[EvidenceNetwork, list[EpochRecord]]:
    """Train all four looks on one labelled set."""
    return train_on_episodes(make_training_episodes(episode, plan), plan, stages, stage)


def make_training_episodes(episode: Episode, plan: EvidencePlan) -> list[Episode]:
    """What a plan makes of a labelled set."""
    rng = np.random.default_rng([plan.seed, 2])
    # A small set cannot tell of large ones, and its user does not want to wait for them.
    most = min(plan.learning.most_points, max(2 * len(episode.labels), _LEAST_MADE_UP))
    return make_episodes(episode, max(most, plan.fewest_points), rng)


def train_on_episodes(
    made: Iterable[Episode], plan: EvidencePlan, stages: Stages, stage: str
) -> tuple[EvidenceNetwork, list[EpochRecord]]:
    """Train all four looks on labelled sets, each with the k of its own or the plan's."""
    network = init_network(plan)
    seen, history = train_on_points(network, made, plan, stages, stage)
    # What many sets have taught of sizes, one set would unteach.
    if plan.start is None or not network.settings.relative_sizes:
        clusters = make_cluster_examples(network, seen, plan)
        history += train_on_clusters(network, clusters, plan, stages, stage)
    return network.eval(), history


def train_on_points(
    network: EvidenceNetwork,
    made: Iterable[Episode],
    plan: EvidencePlan,
    stages: Stages,
    stage: str,
) -> tuple[list[Seen], list[EpochRecord]]:
    """Train the looks at points; the episodes come back with their graphs."""
    episodes = [one for one in made if len(one.labels) > (one.k or plan.rules.k)]
    points = [make_point_examples(one, one.k or plan.rules.k) for one in stages.watch(episodes)]
    history = train_both_stages(
        network.classifiers(super_nodes=False), points, plan, stages, f"{stage}-points"
    )
    graphs = [examples_of.graph for examples_of in points]
    return list(zip(episodes, graphs, strict=True)), history


def train_on_clusters(
    network: EvidenceNetwork,
    graph_examples: Iterable[GraphExamples],
    plan: EvidencePlan,
    stages: Stages,
    stage: str,
) -> list[EpochRecord]:
    """Train the looks at super-nodes; where there are none to learn from, they merge nothing."""
    classifiers, clusters = (
        network.classifiers(super_nodes=True),
        list(stages.watch(graph_examples)),
    )
    if clusters:
        return train_both_stages(classifiers, clusters, plan, stages, f"{stage}-clusters")
    classifiers[1].reject_all()
    return []


def init_network(plan: EvidencePlan) -> EvidenceNetwork:
    """A network to train: of chance weights, or of the model that the plan starts from."""
    if plan.start is None:
        return make_evidence_network(plan.network, plan.seed)
    network = as_evidence_network(read_network(Path(plan.start)).network)
    if network is None or not network.settings.is_shaped(plan.network):
        raise ModelError(
            f"the model in {plan.start} is not of the shape that is to be trained, {plan.network}; "
            'use start="none", or give it the same method and hidden'
        )
    # What serves few points has learned from sets of all sizes; who advised it stays behind.
    return remove_prior(network.small_set or network)


def train_both_stages(
    classifiers: tuple[EdgeClassifier, EdgeClassifier],
    graph_examples: Sequence[GraphExamples],
    plan: EvidencePlan,
    stages: Stages,
    name: str,
) -> list[EpochRecord]:
    """Train the first look, then the second on what the first makes of the same edges."""
    history: list[EpochRecord] = []
    learning = plan.learning if plan.start is None else for_fine_tuning(plan.learning)
    for number, classifier in enumerate(classifiers, start=1):
        stage = f"{name}-{number}"
        records = train_classifier(
            classifier,
            [examples_of.examples for examples_of in graph_examples],
            learning,
            seed=plan.seed,
            device=plan.device,
            checkpoint=stages.checkpoint(stage),
            progress=stage if stages.verbose else None,
            fit_scaling=plan.start is None,
            watch=stages.watch,
        )
        history += [{"classifier": stage, **record} for record in records]
        if classifier is classifiers[0]:
            graph_examples = [
                examples_of.second_stage_features(classifier)
                for examples_of in stages.watch(graph_examples)
            ]
    return history


def make_point_examples(episode: Episode, k: int) -> GraphExamples:
    """The k-NN graph of an episode's points and the evidence of its edges."""
    graph = build_knn_graph(episode.features, k)
    background = measure_background(episode.features)
    evidence = compute_edge_features(graph, start_nodes(episode.features), background)
    same = episode.labels[graph.neighbours] == episode.labels[:, None]
    return GraphExamples(graph, Examples(evidence, same, episode.weight))


def make_cluster_examples(
    network: EvidenceNetwork, seen: Iterable[Seen], plan: EvidencePlan
) -> Iterator[GraphExamples]:
    """Super-nodes as the network itself makes them."""
    for episode, graph in seen:
        score = CachedScorer(EvidenceScorer(network, plan.device))
        rules = replace(plan.rules, p_tau_slope=0.0, keep_fragments=True)
        ways = [
            replace(rules, decoder=decoder, p_tau=p_tau) for decoder, p_tau in CLUSTERING_VARIANTS
        ]
        settings = network.settings
        yield from examples_of_clusters(
            episode, graph, score, ways,
            relative_sizes=settings.relative_sizes, set_context=settings.set_context,
        )  # fmt: skip


def examples_of_clusters(
    episode: Episode,
    graph: KnnGraph,
    score: Scorer,
    ways: Sequence[Rules],
    *,
    relative_sizes: bool = False,
    set_context: bool = False,
) -> Iterator[GraphExamples]:
    """Super-nodes of an episode's points, made in some ways, an identity to each by majority.

    A way that leaves too few super-nodes for a graph gives none.
    """
    background = measure_background(episode.features)
    for rules in ways:
        rules = replace(rules, max_levels=2)
        steps = list(walk_levels(episode.features, score, rules, graph=graph))
        if len(steps) < 2 or steps[1].graph.k < 2:
            continue
        upper = steps[1]
        identity = majority_identity(steps[0], episode.labels)
        evidence = compute_edge_features(
            upper.graph, upper.nodes, background, relative_sizes=relative_sizes
        )
        same = identity[upper.graph.neighbours] == identity[:, None]
        yield GraphExamples(upper.graph, Examples(evidence, same, episode.weight), set_context)


def majority_identity(step: LevelStep, labels: IntArray) -> IntArray:
    """The most frequent identity of each cluster of the points, shape (n_clusters,)."""
    shape = (len(step.peaks), int(labels.max()) + 1)
    counts = csr_matrix((np.ones(len(labels)), (step.labels, labels)), shape)
    return np.asarray(counts.argmax(axis=1)).ravel().astype(np.int64)
