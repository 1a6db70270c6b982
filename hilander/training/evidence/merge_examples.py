"""Training examples of merges: pairs of linked clusters, as they arise while clusters merge.

The clusters are those of the network itself, mistakes included, because at inference it merges
clusters of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np
from scipy.sparse import csr_matrix

from hilander.arrays.rows import IntArray
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.links import cross_links
from hilander.graph.nodes import start_nodes
from hilander.graph.same_identity import estimate_by_links
from hilander.hierarchy.decoding.link_merges import agglomerate
from hilander.hierarchy.decoding.trees import label_trees
from hilander.hierarchy.levels import decode_level
from hilander.hierarchy.scorers import Scorer
from hilander.linkage.evidence.merge_features import compute_merge_features
from hilander.linkage.evidence.training import Examples
from hilander.synthetic.episodes import Episode
from hilander.training.evidence.plan import EvidencePlan

# Pairs are taken from the communities of points, and again after merges down to each of these
# probabilities: from fragments to clusters of several identities.
_SNAPSHOTS = (0.9, 0.75, 0.6, 0.4, 0.2)
# Threshold of the communities.
_P_TAU = 0.5
# Pairs of a snapshot, at most, drawn in proportion to the root of the smaller cluster's size: a
# wrong merge of two large clusters costs more than one of single points.
_MOST_PAIRS = 10_000


def make_merge_examples(
    score: Scorer, episode: Episode, graph: KnnGraph, plan: EvidencePlan
) -> Examples | None:
    """Pairs of clusters of an episode; None if no two clusters are linked.

    Parameters
    ----------
    score : Scorer of points
    episode : Episode
    graph : KnnGraph of its points
    plan : EvidencePlan
    """
    rng = np.random.default_rng([plan.seed, len(episode.labels)])
    found = [
        draw_pairs(pairs, majority_identity(labels, episode.labels), rng)
        for pairs, labels in _walk_snapshots(score, episode, graph, plan)
        if len(pairs)
    ]
    if not found:
        return None
    features, same = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Examples(features[:, None, :], same[:, None], episode.weight)


def _walk_snapshots(
    score: Scorer, episode: Episode, graph: KnnGraph, plan: EvidencePlan
) -> Iterator[tuple[LinkedPairs, IntArray]]:
    """Linked clusters, and the cluster of each point, at each snapshot."""
    score.bind_points(episode.features)
    scores = score(graph, start_nodes(episode.features))
    rules = replace(plan.rules, p_tau=_P_TAU)
    labels, peaks = label_trees(decode_level(graph, scores, rules, 0).index)
    links = cross_links(graph, scores.linkage, labels, len(peaks))
    pairs = LinkedPairs.of_links(links, np.bincount(labels))
    start = [(pairs, np.arange(len(peaks)))]
    for merged, number in chain(start, agglomerate(pairs, estimate_by_links, _SNAPSHOTS)):
        yield merged, number[labels]


def draw_pairs(
    pairs: LinkedPairs, identity: IntArray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Features of some pairs, and whether both clusters are of one identity.

    Parameters
    ----------
    pairs : LinkedPairs of n_clusters clusters
    identity : ndarray of shape (n_clusters,)
    rng : numpy Generator
    """
    weight = np.sqrt(pairs.smaller)
    count = min(len(pairs), _MOST_PAIRS)
    drawn = rng.choice(len(pairs), size=count, p=weight / weight.sum())
    same = identity[pairs.low[drawn]] == identity[pairs.high[drawn]]
    return compute_merge_features(pairs)[drawn], same


def majority_identity(labels: IntArray, truth: IntArray) -> IntArray:
    """The most frequent identity of each cluster of the points, shape (n_clusters,)."""
    shape = (int(labels.max()) + 1, int(truth.max()) + 1)
    counts = csr_matrix((np.ones(len(labels)), (labels, truth)), shape)
    return np.asarray(counts.argmax(axis=1)).ravel().astype(np.int64)
