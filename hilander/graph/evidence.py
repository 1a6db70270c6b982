"""Evidence: what a person would look at to tell whether an edge joins one identity.

Every number is relative: cosines are measured against the data's own background (two random
points), against the other neighbours of both ends, or as ranks and shares. So what is learned
from it does not depend on the width of the embeddings, and little on the embedder.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilander.data.arrays import FloatArray
from hilander.graph.edges import (
    dot_edges,
    edge_matrix,
    logit_of,
    look_up,
    overlap_rows,
    unit_rows,
)
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import Nodes

CLOSE = 5  # how many neighbours count as the closest ones
_ROW_BLOCK = 4_096
_BACKGROUND_PAIRS = 100_000

EDGE_EVIDENCE = (
    "affinity",
    "above_mean_i",
    "above_mean_j",
    "below_best_i",
    "below_best_j",
    "below_close_i",
    "below_close_j",
    "above_last_i",
    "above_last_j",
    "best_i",
    "best_j",
    "mean_i",
    "mean_j",
    "rank_ij",
    "rank_ji",
    "mutual",
    "shared",
    "shared_close",
    "i_to_around_j",
    "around_i_to_j",
    "around_to_around",
    "i_to_close_j",
    "close_i_to_j",
    "close_to_close",
)
SIZE_EVIDENCE = ("smaller", "larger", "tightness_i", "tightness_j", "average_linkage")
LINK_EVIDENCE = (
    "crossing",
    "crossing_share",
    "crossing_mean",
    "crossing_best",
    "crossing_linkage",
    "crossing_log_odds",
)
SECOND_LOOK = (
    "logit",
    "logit_best_way",
    "logit_worst_way",
    "agreement",
    "jaccard",
    "only_i",
    "only_j",
    "in_common",
    "degree_i",
    "degree_j",
    "degree_min",
    "logit_best_i",
    "logit_best_j",
    "below_best_logit_i",
    "below_best_logit_j",
)


@dataclass(frozen=True)
class Background:
    """Cosine of two random points: what "not alike" looks like in these data.

    Parameters
    ----------
    centre : float
        Median, which a few large identities do not move.
    """

    centre: float

    def rise(self, cosine: FloatArray) -> FloatArray:
        """How far a cosine stands above the background: 0 at it, 1 for equal points."""
        return (cosine - np.float32(self.centre)) / np.float32(1 - self.centre)


def measure_background(features: FloatArray, seed: int = 0) -> Background:
    """Look at random pairs of points, the same ones in whatever order the points come.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim)
        L2-normalised rows.
    seed : int
    """
    rng = np.random.default_rng(seed)
    pairs = rng.integers(len(features), size=(2, _BACKGROUND_PAIRS))
    # Places in the order by cosine to the mean, not row numbers, which say nothing about a point.
    order = np.argsort(np.einsum("id,d->i", features, features.mean(axis=0, dtype=np.float64)))
    left, right = order[pairs[:, pairs[0] != pairs[1]]]
    cosine = np.concatenate(
        [
            np.einsum("id,id->i", features[left[part]], features[right[part]])
            for part in (slice(at, at + _ROW_BLOCK) for at in range(0, len(left), _ROW_BLOCK))
        ]
    )
    return Background(min(float(np.median(cosine)), 0.95))


def weigh_edges(graph: KnnGraph, nodes: Nodes, background: Background) -> FloatArray:
    """Evidence of every edge.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    nodes : Nodes of the same length
        If they have `links`, the evidence of super-nodes is added.
    background : Background of the points

    Returns
    -------
    evidence : ndarray of shape (n_nodes, k, n_evidence), float32
        Columns `EDGE_EVIDENCE`, and for super-nodes `SIZE_EVIDENCE` and `LINK_EVIDENCE`.
    """
    columns = [
        *_compare_affinities(graph, background),
        *_compare_lists(graph),
        *_compare_surroundings(graph, nodes, background),
    ]
    if nodes.links is not None:
        columns += _compare_sizes(graph, nodes, background)
        columns += _compare_links(graph, nodes, background)
    return np.stack(columns, axis=-1).astype(np.float32, copy=False)


def n_evidence(*, super_nodes: bool) -> int:
    """Number of columns that `weigh_edges` gives."""
    extra = len(SIZE_EVIDENCE) + len(LINK_EVIDENCE) if super_nodes else 0
    return len(EDGE_EVIDENCE) + extra


def _compare_affinities(graph: KnnGraph, background: Background) -> list[FloatArray]:
    """Each affinity beside the background and beside the other neighbours of both ends."""
    neighbours = graph.neighbours
    rise = background.rise(graph.affinity)
    best, last = rise.max(axis=1), rise.min(axis=1)
    mean = rise.mean(axis=1)
    close = rise[:, : min(3, graph.k)].mean(axis=1)
    columns = [rise]
    for of_node in (mean, best, close, last):
        columns += [rise - of_node[:, None], rise - of_node[neighbours]]
    for of_node in (best, mean):
        columns += [np.broadcast_to(of_node[:, None], rise.shape), of_node[neighbours]]
    return columns


def _compare_lists(graph: KnnGraph) -> list[FloatArray]:
    """Ranks both ways, whether mutual, and the share of neighbours in common."""
    n_nodes, k = graph.neighbours.shape
    rank = np.tile(np.arange(1, k + 1, dtype=np.float32), (n_nodes, 1))
    back = look_up(edge_matrix(graph, rank).T.tocsr(), graph)
    mutual = back > 0
    listed = edge_matrix(graph, np.ones_like(rank))
    close = min(CLOSE, k)
    listed_close = edge_matrix(graph, (rank <= close).astype(np.float32))
    listed_close.eliminate_zeros()
    return [
        np.log(rank),
        np.log(np.where(mutual, back, np.float32(2 * k))),
        mutual.astype(np.float32),
        overlap_rows(listed, listed, graph) / np.float32(k),
        overlap_rows(listed_close, listed_close, graph) / np.float32(close),
    ]


def _compare_surroundings(
    graph: KnnGraph, nodes: Nodes, background: Background
) -> list[FloatArray]:
    """Cosines between each end and the mean of the other end's neighbours."""
    own = unit_rows(nodes.average) if nodes.links is not None else nodes.identity
    columns: list[FloatArray] = []
    for reach in (graph.k, min(CLOSE, graph.k)):
        around = np.zeros_like(own)
        for rank in range(reach):
            around += own[graph.neighbours[:, rank]]
        around = unit_rows(around)
        columns += [
            background.rise(dot_edges(own, around, graph)),
            background.rise(dot_edges(around, own, graph)),
            dot_edges(around, around, graph),
        ]
    return columns


def _compare_sizes(graph: KnnGraph, nodes: Nodes, background: Background) -> list[FloatArray]:
    """Sizes and tightness of two super-nodes, and the mean cosine of all their pairs of points."""
    size = np.log(nodes.size.astype(np.float32))
    average = nodes.average
    tightness = np.linalg.norm(average, axis=1)
    here, there = np.broadcast_to(size[:, None], graph.affinity.shape), size[graph.neighbours]
    return [
        np.minimum(here, there),
        np.maximum(here, there),
        np.broadcast_to(tightness[:, None], graph.affinity.shape),
        tightness[graph.neighbours],
        background.rise(dot_edges(average, average, graph)),
    ]


def _compare_links(graph: KnnGraph, nodes: Nodes, background: Background) -> list[FloatArray]:
    """Columns `LINK_EVIDENCE` for every edge of a graph of super-nodes, each (n_nodes, k)."""
    links = nodes.links
    if links is None:
        raise ValueError("the nodes have no links")
    count = look_up(links.count, graph)
    some = np.maximum(count, np.float32(1))
    smaller = np.minimum(nodes.size[:, None], nodes.size[graph.neighbours]).astype(np.float32)

    def rise(cosine: FloatArray) -> FloatArray:
        return np.where(count > 0, background.rise(cosine), np.float32(0))

    return [
        np.log1p(count),
        np.minimum(count / (smaller * graph.k), 2),
        rise((look_up(links.affinity, graph) / some).astype(np.float32)),
        rise(look_up(links.best, graph)),
        (look_up(links.linkage, graph) / some).astype(np.float32),
        (look_up(links.log_odds, graph) / np.sqrt(some)).astype(np.float32),
    ]


def look_again(graph: KnnGraph, linkage: FloatArray) -> FloatArray:
    """Evidence from a first guess: what the neighbours of both ends say about an edge.

    If i and j are one identity, whoever i is linked to, j should be linked to as well.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    linkage : ndarray of shape (n_nodes, k)
        The first guess.

    Returns
    -------
    evidence : ndarray of shape (n_nodes, k, len(SECOND_LOOK)), float32
    """
    k, neighbours = graph.k, graph.neighbours
    guess = edge_matrix(graph, linkage + np.float32(1e-6))
    back = look_up(guess.T.tocsr(), graph)
    either = guess.maximum(guess.T).tocsr()
    known = either.copy()
    known.data = np.ones_like(known.data)
    both = overlap_rows(either, either, graph)
    in_common = overlap_rows(known, known, graph)
    of_i, of_j = overlap_rows(either, known, graph), overlap_rows(known, either, graph)
    degree = linkage.sum(axis=1)
    best = linkage.max(axis=1)
    degree_i, degree_j = np.broadcast_to(degree[:, None], linkage.shape), degree[neighbours]
    logit, best_logit = logit_of(linkage), logit_of(best)
    columns = [
        logit,
        logit_of(np.maximum(linkage, back)),
        logit_of(np.where(back > 0, np.minimum(linkage, back), linkage)),
        both / np.maximum(in_common, 1),
        both / np.maximum(of_i + of_j - both, 1e-3),
        (of_i - both) / np.maximum(in_common, 1),
        (of_j - both) / np.maximum(in_common, 1),
        in_common / np.float32(k),
        degree_i / np.float32(k),
        degree_j / np.float32(k),
        np.minimum(degree_i, degree_j) / np.float32(k),
        np.broadcast_to(best_logit[:, None], linkage.shape),
        best_logit[neighbours],
        logit - best_logit[:, None],
        logit - best_logit[neighbours],
    ]
    return np.stack(columns, axis=-1).astype(np.float32, copy=False)
