"""The level loop: graph, score, link, merge, until nothing merges.

It takes a *scorer*. The trained network is one and the ground truth is another, so the paper's
training hierarchy and its inference are this one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from hilander.data.arrays import FloatArray, IntArray
from hilander.graph import (
    EdgeScores,
    KnnGraph,
    Nodes,
    build_knn_graph,
    check_k,
    score_by_labels,
    start_nodes,
)
from hilander.partition import (
    Parents,
    choose_parents,
    decode,
    label_trees,
    link_trees,
    merge_nodes,
)
from hilander.tree.rules import Rules

Scorer = Callable[[KnnGraph, Nodes], EdgeScores]


@dataclass(frozen=True, eq=False)
class LevelStep:
    """Everything that happened at one level.

    Parameters
    ----------
    nodes : Nodes of length n_nodes
    graph : KnnGraph of n_nodes nodes
    scores : EdgeScores of that graph
    parents : Parents of n_nodes nodes
    labels : ndarray of shape (n_nodes,)
        Tree of each node: a node of the next level.
    peaks : ndarray of shape (n_trees,)
        Peak of each tree.
    stops_early : bool
        Whether early stopping would end here.
    """

    nodes: Nodes
    graph: KnnGraph
    scores: EdgeScores
    parents: Parents
    labels: IntArray
    peaks: IntArray
    stops_early: bool


def walk_levels(
    features: FloatArray,
    score: Scorer,
    rules: Rules,
    *,
    graph: KnnGraph | None = None,
    verbose: bool = False,
) -> Iterator[LevelStep]:
    """Cluster level by level, giving each level as it is done.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised embeddings.
    score : callable (graph, nodes) -> EdgeScores
    rules : Rules
    graph : KnnGraph, optional
        The first level's graph, if it is known already.
    verbose : bool
        Draw a progress bar for a long search.

    Yields
    ------
    step : LevelStep
        At least one. The last one merged nothing unless `rules` stopped the loop before.
    """
    nodes = start_nodes(features)
    added_before: int | None = None
    if graph is None:
        check_k(rules.k, len(nodes))
    for level in range(rules.max_levels):
        if level > 0 or graph is None:
            graph = build_knn_graph(
                _search_features(nodes, rules), min(rules.k, len(nodes) - 1), verbose=verbose
            )
        scores = score(graph, nodes)
        if not rules.as_released:
            scores = scores.settle_ties()
        parents = _decode(graph, scores, rules, level)
        labels, peaks = label_trees(parents.index)
        stops_early = rules.says_stop(parents.n_edges, added_before)
        yield LevelStep(nodes, graph, scores, parents, labels, peaks, stops_early)

        added_before = parents.n_edges
        if added_before == 0 or (rules.early_stop and stops_early):
            return
        links = link_trees(nodes, graph, scores, labels, len(peaks)) if rules.keep_links else None
        nodes = merge_nodes(nodes, labels, peaks, links)
        if not rules.can_cluster(len(nodes)):
            return


def _decode(graph: KnnGraph, scores: EdgeScores, rules: Rules, level: int) -> Parents:
    if rules.as_released:
        return choose_parents(graph, scores, rules.p_tau, strict=True)
    return decode(graph, scores, rules.threshold(level), rules.decoder)


def _search_features(nodes: Nodes, rules: Rules) -> FloatArray:
    if not rules.search_average:
        return nodes.identity
    average = nodes.average
    length = np.linalg.norm(average, axis=1, keepdims=True)
    return np.where(length > 1e-12, average / np.maximum(length, 1e-12), nodes.identity)


def score_with_labels(labels: IntArray) -> Scorer:
    """Ground truth as a scorer: a node has the identity of its peak's point.

    Parameters
    ----------
    labels : ndarray of shape (n_points,)
        Identity of each point.
    """

    def score(graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        return score_by_labels(graph, labels[nodes.point])

    return score


def score_as_released(labels: IntArray) -> Scorer:
    """The released code's training scorer: density from labels, links by similarity alone.

    With `p_tau` 0 and strict rules it links each node to its most similar denser neighbour of
    positive cosine, whatever the identities.

    Parameters
    ----------
    labels : ndarray of shape (n_points,)
        Identity of each point.
    """

    def score(graph: KnnGraph, nodes: Nodes) -> EdgeScores:
        truth = score_by_labels(graph, labels[nodes.point])
        return EdgeScores(np.maximum(graph.affinity, 0), truth.density)

    return score
