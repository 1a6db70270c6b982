"""The level loop: search, score, decode, pool, until nothing merges.

The scorer is a parameter, see `hilander.hierarchy.scorers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import LevelError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.linked_pairs import LinkedPairs
from hilander.graph.links import Links
from hilander.graph.nodes import Nodes, start_nodes
from hilander.graph.same_identity import estimate_by_links
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.constraints.constraints import Constraints
from hilander.hierarchy.constraints.enforcement import HeldConstraints, JoinedLevel
from hilander.hierarchy.decoding.decode import attach_within, decode
from hilander.hierarchy.decoding.link_merges import MergeEstimate, merge_by_links
from hilander.hierarchy.decoding.merge_cut import choose_cut
from hilander.hierarchy.decoding.parents import Parents, choose_parents
from hilander.hierarchy.decoding.trees import label_trees
from hilander.hierarchy.pooling import link_trees, merge_nodes
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import Scorer
from hilander.hierarchy.work import Work
from hilander.knn.search import build_knn_graph, check_k
from hilander.knn.search_progress import SearchProgress

Search = Callable[..., KnnGraph]
Pool = Callable[["LevelStep", Rules], Nodes]
# Recall of the search above the first level. Clusters are mostly of different identities, so their
# exact neighbours matter less; fragments of one identity are near each other and are found.
UPPER_RECALL = 0.8
MOST_LEVELS = 100  # far more levels than any known set needs
# A level of more than LARGE_LEVEL nodes that merges a smaller share than LEAST_MERGED is the last.
LARGE_LEVEL, LEAST_MERGED = 10_000, 1e-3


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
    joined : JoinedLevel, optional
        The level after clusters were joined by must-links. Then this is what belongs to the
        hierarchy; the loop goes on with the nodes as they are.
    """

    nodes: Nodes
    graph: KnnGraph
    scores: EdgeScores
    parents: Parents
    labels: IntArray
    peaks: IntArray
    stops_early: bool
    joined: JoinedLevel | None = None


def walk_levels(
    features: FloatArray,
    score: Scorer,
    rules: Rules,
    *,
    graph: KnnGraph | None = None,
    search: Search | None = None,
    pool: Pool | None = None,
    work: Work | None = None,
    max_levels: int = MOST_LEVELS,
    constraints: Constraints | None = None,
) -> Iterator[LevelStep]:
    """Cluster level by level, yielding each level when it is complete.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised embeddings.
    score : Scorer
    rules : Rules
    graph : KnnGraph, optional
        The first level's graph, if it is known already.
    search : callable (features, k, **how) -> KnnGraph, optional
        In place of `build_knn_graph`; it takes the same options.
    pool : callable (step, rules) -> Nodes, optional
        In place of `pool_level`.
    work : Work, optional
        Records what each stage took, and may return stages that an earlier run has done.
    max_levels : int
        Never build more levels than this.
    constraints : Constraints of n_points points, optional
        Held at every level.

    Yields
    ------
    step : LevelStep
        At least one. The last one merged nothing, unless early stopping, `max_levels` or too few
        nodes ended the loop before, or it was large and merged very little.
    """
    if graph is None:
        check_k(rules.k, len(features))
    score.bind_points(features)
    levels = walk_nodes(
        start_nodes(features),
        score,
        rules,
        graph=graph,
        search=search,
        pool=pool,
        work=work,
        levels=range(max_levels),
        held=HeldConstraints.of_points(constraints),
    )
    del features, graph
    yield from levels


def walk_nodes(
    nodes: Nodes,
    score: Scorer,
    rules: Rules,
    *,
    graph: KnnGraph | None = None,
    search: Search | None = None,
    pool: Pool | None = None,
    work: Work | None = None,
    levels: range = range(1, MOST_LEVELS),
    held: HeldConstraints | None = None,
) -> Iterator[LevelStep]:
    """Cluster nodes of any level, with a scorer whose points are bound.

    Parameters
    ----------
    nodes : Nodes
    score, rules, graph, search, pool, work
        As for `walk_levels`.
    levels : range
        Numbers of the levels to build; 0 is that of points.
    held : HeldConstraints, optional
        Constraints of the nodes.

    Yields
    ------
    step : LevelStep
    """
    search, pool, work = search or build_knn_graph, pool or pool_level, work or Work()
    added_before: int | None = None
    for level in levels:
        if graph is None:
            k = min(rules.k, len(nodes) - 1)
            how = _search_options(nodes, level, work.search_progress(level))
            graph = work.do("search", level, _search, search, nodes, k, rules, how)
        scores = work.do("score", level, score, graph, nodes)
        if held is not None:
            scores = held.condition(graph, scores)
        if not rules.as_released:
            scores = scores.settle_ties()
        parents = work.do(
            "decode", level, decode_level, graph, scores, rules, level, nodes, score.estimate_merges
        )
        joined = None
        if held is not None:
            parents, joined = held.enforce(graph, scores, nodes, parents)
        labels, peaks = label_trees(parents.index)
        stops_early = rules.is_early_stop(parents.n_edges, added_before)
        step = LevelStep(nodes, graph, scores, parents, labels, peaks, stops_early, joined)
        yield step

        added_before = parents.n_edges
        if added_before == 0 or (rules.early_stop and stops_early):
            return
        if level and hardly_merged(added_before, len(labels)) and not rules.as_released:
            return
        nodes = work.do("pool", level, pool, step, rules)
        held = None if held is None else held.merge(labels, len(peaks), joined)
        # A level takes gigabytes at a million points; free it before the next search.
        graph = None
        del step, scores
        if not rules.can_cluster(len(nodes)):
            return


def hardly_merged(added: int, n_nodes: int) -> bool:
    """Whether a large level merged so little that another level is not worth its search."""
    return n_nodes > LARGE_LEVEL and added < LEAST_MERGED * n_nodes


def _search_options(nodes: Nodes, level: int, progress: SearchProgress | None) -> dict[str, Any]:
    """Options of the search of a level, besides the nodes and k."""
    how: dict[str, Any] = {} if progress is None else {"progress": progress}
    if not level:
        return how
    if nodes.links is None:
        return how | {"recall": UPPER_RECALL, "refine": False}
    # Linked clusters may be merged, so their pairs must be found.
    return how | {"recall": UPPER_RECALL, "pairs": nodes.links.count}


def _search(search: Search, nodes: Nodes, k: int, rules: Rules, how: dict[str, Any]) -> KnnGraph:
    return search(_search_features(nodes, rules), k, **how)


def pool_level(step: LevelStep, rules: Rules) -> Nodes:
    """The nodes of the next level: one for each tree."""
    return merge_nodes(step.nodes, step.labels, step.peaks, link_level(step, rules))


def link_level(step: LevelStep, rules: Rules) -> Links | None:
    """The links of the trees of a level; None if the rules do not keep them."""
    if not rules.keep_links:
        return None
    return link_trees(step.nodes, step.graph, step.scores, step.labels, len(step.peaks))


def decode_level(
    graph: KnnGraph,
    scores: EdgeScores,
    rules: Rules,
    level: int,
    nodes: Nodes | None = None,
    estimate: MergeEstimate = estimate_by_links,
) -> Parents:
    """Choose a parent for each node of a level, by the rules of that level.

    Super-nodes with links merge by them, unless the decoder is "parents".
    """
    if rules.as_released:
        return choose_parents(graph, scores, rules.p_tau, strict=True)
    p_tau = rules.threshold(level)
    if nodes is not None and nodes.links is not None and rules.decoder != "parents":
        return merge_level(graph, scores, rules, level, nodes, estimate)
    return decode(graph, scores, p_tau, rules.decoder_of(level))


def merge_level(
    graph: KnnGraph,
    scores: EdgeScores,
    rules: Rules,
    level: int,
    nodes: Nodes,
    estimate: MergeEstimate,
) -> Parents:
    """Merge the super-nodes of a level by their links, and choose a parent for each."""
    if nodes.links is None:
        raise LevelError("the nodes have no links; use rules with keep_links")
    pairs, p_tau = LinkedPairs.of_links(nodes.links, nodes.size), rules.threshold(level)
    if not rules.adapt_merges:
        labels = merge_by_links(pairs, estimate, p_tau)
    elif level == 1:
        labels, p_tau = choose_cut(nodes, pairs, estimate)
    else:  # the first such level merged as far as it is worth
        labels = np.arange(len(nodes))
    return attach_within(graph, scores, labels, p_tau)


def _search_features(nodes: Nodes, rules: Rules) -> FloatArray:
    # Points are their own average: no copy of the features is made for them.
    if not rules.search_average or nodes.total is nodes.identity:
        return nodes.identity
    average = nodes.average
    length = np.linalg.norm(average, axis=1, keepdims=True)
    return np.where(length > 1e-12, average / np.maximum(length, 1e-12), nodes.identity)
