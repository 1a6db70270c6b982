"""Training examples of the edge classifiers: edges of points, and edges of clusters of points.

The clusters are made by the network itself, mistakes included, because at inference it merges
clusters of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix

from hilander.arrays.rows import IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.hierarchy.decoding.decode import Decoder
from hilander.hierarchy.levels import LevelStep, walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import CachedScorer, Scorer
from hilander.knn.search import build_knn_graph
from hilander.linkage.evidence.background import measure_background
from hilander.linkage.evidence.edge_features import add_second_stage, compute_edge_features
from hilander.linkage.evidence.network import EdgeClassifier, EvidenceNetwork
from hilander.linkage.evidence.scorer import EvidenceScorer
from hilander.linkage.evidence.training import Examples
from hilander.synthetic.episodes import Episode
from hilander.training.evidence.plan import EvidencePlan

EpisodeGraph = tuple[Episode, KnnGraph]
# Decoder and p_tau of the clusterings whose super-nodes are the examples. Communities split large
# identities into fragments: a classifier learns to merge those only from clusterings that have
# them. Three thresholds give three sizes of fragments.
CLUSTERING_VARIANTS: tuple[tuple[Decoder, float], ...] = (
    ("contract", 0.5),
    ("leiden", 0.42),
    ("leiden", 0.73),
    ("leiden", 0.9),
)
# Levels to build: the points, and the super-nodes whose edges are the examples.
_N_LEVELS = 2
# Fewest neighbours of a super-node in a training graph: a single one always has rank 1.
_FEWEST_NEIGHBOURS = 2


@dataclass(frozen=True, eq=False)
class GraphExamples:
    """A graph and the features of its edges.

    Parameters
    ----------
    graph : KnnGraph
    examples : Examples
        Features of the edges, and whether each joins one identity.
    set_context : bool
        Whether the second stage also gets features of the whole set.
    """

    graph: KnnGraph
    examples: Examples
    set_context: bool = False

    def second_stage_features(self, first: EdgeClassifier) -> GraphExamples:
        """The same edges with the features of the second stage, which depend on the first."""
        features = self.examples.edge_features
        linkage = first.predict(features)
        more = add_second_stage(self.graph, features, linkage, set_context=self.set_context)
        return replace(self, examples=replace(self.examples, edge_features=more))


def make_point_examples(episode: Episode, k: int) -> GraphExamples:
    """Examples of the edges of an episode's k-NN graph."""
    graph = build_knn_graph(episode.features, k)
    background = measure_background(episode.features)
    features = compute_edge_features(graph, start_nodes(episode.features), background)
    same = episode.labels[graph.neighbours] == episode.labels[:, None]
    return GraphExamples(graph, Examples(features, same, episode.weight))


def make_cluster_examples(
    network: EvidenceNetwork, seen: Iterable[EpisodeGraph], plan: EvidencePlan
) -> Iterator[GraphExamples]:
    """Examples from the super-nodes that the network itself makes, for each clustering variant."""
    rules = replace(plan.rules, p_tau_slope=0.0)
    variants = [
        replace(rules, decoder=decoder, p_tau=p_tau) for decoder, p_tau in CLUSTERING_VARIANTS
    ]
    settings = network.settings
    for episode, graph in seen:
        yield from examples_of_clusters(
            episode, graph, CachedScorer(EvidenceScorer(network, plan.device)), variants,
            relative_sizes=settings.relative_sizes, set_context=settings.set_context,
        )  # fmt: skip


def examples_of_clusters(
    episode: Episode,
    graph: KnnGraph,
    score: Scorer,
    variants: Sequence[Rules],
    *,
    relative_sizes: bool = False,
    set_context: bool = False,
) -> Iterator[GraphExamples]:
    """Examples from the super-nodes of an episode's points, one graph for each item of `variants`.

    A super-node has the identity of most of its points. Rules that leave too few super-nodes for
    a graph give no examples.

    Parameters
    ----------
    episode : Episode
    graph : KnnGraph of its points
    score : Scorer
    variants : sequence of Rules
    relative_sizes, set_context : bool
        As in `EvidenceSettings`.
    """
    background = measure_background(episode.features)
    for rules in variants:
        steps = list(
            walk_levels(
                episode.features, score, rules, graph=graph,
                max_levels=_N_LEVELS, keep_fragments=True,
            )
        )  # fmt: skip
        if len(steps) < _N_LEVELS or steps[1].graph.k < _FEWEST_NEIGHBOURS:
            continue
        upper = steps[1]
        identity = majority_identity(steps[0], episode.labels)
        features = compute_edge_features(
            upper.graph, upper.nodes, background, relative_sizes=relative_sizes
        )
        same = identity[upper.graph.neighbours] == identity[:, None]
        yield GraphExamples(upper.graph, Examples(features, same, episode.weight), set_context)


def majority_identity(step: LevelStep, labels: IntArray) -> IntArray:
    """The most frequent identity of each cluster of the points, shape (n_clusters,)."""
    shape = (len(step.peaks), int(labels.max()) + 1)
    counts = csr_matrix((np.ones(len(labels)), (step.labels, labels)), shape)
    return np.asarray(counts.argmax(axis=1)).ravel().astype(np.int64)
