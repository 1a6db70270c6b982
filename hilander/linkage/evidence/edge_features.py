"""Evidence: what a person would look at to tell whether an edge joins one identity.

Every number is relative: cosines are measured against the data's own background (two random
points), against the other neighbours of both ends, or as ranks and shares. So what is learned
from it does not depend on the width of the embeddings, and little on the embedder.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilander.arrays.row_source import RowSource
from hilander.arrays.rows import FloatArray, row_blocks, unit_rows
from hilander.engines.threads import open_workers
from hilander.graph.edges import dot_block, edge_matrix, logit_of
from hilander.graph.knn_graph import KnnGraph, edge_blocks
from hilander.graph.nodes import Nodes
from hilander.linkage.evidence.background import Background
from hilander.linkage.evidence.cluster_features import (
    LINK_EVIDENCE,
    SET_EVIDENCE,
    SIZE_EVIDENCE,
    compare_links,
    compare_sizes,
    compare_with_set,
)
from hilander.linkage.evidence.common_neighbours import (
    CommonLinks,
    CommonLists,
    compare_lists,
    rank_back,
)

CLOSE = 5  # how many neighbours count as the closest ones
_TRACE = np.float32(1e-6)  # added to every link, so that one of 0 is still a link

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
SECOND_STAGE = (
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


def compute_edge_features(
    graph: KnnGraph, nodes: Nodes, background: Background, *, relative_sizes: bool = False
) -> FloatArray:
    """Evidence of every edge.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    nodes : Nodes of the same length
        If they have `links`, the evidence of super-nodes is added.
    background : Background of the points
    beside_others : bool
        Whether super-nodes show their sizes beside those of all the others, too.

    Returns
    -------
    evidence : ndarray of shape (n_nodes, k, n_evidence), float32
        Columns `EDGE_EVIDENCE`, and for super-nodes `SIZE_EVIDENCE`, `LINK_EVIDENCE` and, if
        asked for, `SET_EVIDENCE`.
    """
    evidence = EdgeFeatures(graph, nodes, background, relative_sizes=relative_sizes)
    return evidence.of(slice(0, graph.n_nodes))


class EdgeFeatures:
    """Evidence of the edges, a block of nodes at a time: all of it takes gigabytes at a million.

    What is costly is worked out once, when it is made; what is cheap, again for each block.

    Parameters
    ----------
    graph, nodes, background, beside_others
        As for `compute_edge_features`.
    """

    def __init__(
        self,
        graph: KnnGraph,
        nodes: Nodes,
        background: Background,
        *,
        relative_sizes: bool = False,
    ) -> None:
        self.graph, self.background = graph, background
        self.super_nodes = nodes.links is not None
        self.lists = compare_lists(graph, min(CLOSE, graph.k))
        self._of_nodes = _summarise_affinities(graph, background)
        self._of_edges = _compare_surroundings(graph, nodes, background)
        if nodes.links is not None:
            self._of_edges += compare_sizes(graph, nodes, background)
            self._of_edges += compare_links(graph, nodes, background)
            if relative_sizes:
                self._of_edges += compare_with_set(graph, nodes)

    def of(self, rows: slice) -> FloatArray:
        """Evidence of the edges of consecutive nodes, shape (block, k, n_evidence)."""
        columns = [
            *_compare_affinities(self.graph, rows, self._of_nodes, self.background),
            *_compare_lists(self.lists, rows),
            *(column[rows] for column in self._of_edges),
        ]
        return _side_by_side(columns)


def _side_by_side(columns: list[FloatArray]) -> FloatArray:
    """Columns of shape (block, k) as one array of shape (block, k, n_columns), float32."""
    evidence = np.empty((*columns[0].shape, len(columns)), dtype=np.float32)
    for number, column in enumerate(columns):
        evidence[..., number] = column
    return evidence


def n_edge_features(*, super_nodes: bool, relative_sizes: bool = False) -> int:
    """Number of columns that `compute_edge_features` gives."""
    if not super_nodes:
        return len(EDGE_EVIDENCE)
    names = EDGE_EVIDENCE + SIZE_EVIDENCE + LINK_EVIDENCE
    return len(names) + (len(SET_EVIDENCE) if relative_sizes else 0)


def _summarise_affinities(graph: KnnGraph, background: Background) -> FloatArray:
    """Mean, best, close and last affinity of each node, above the background, (4, n_nodes)."""
    rescale = background.rescale(graph.affinity)
    close = rescale[:, : min(3, graph.k)].mean(axis=1)
    return np.stack([rescale.mean(axis=1), rescale.max(axis=1), close, rescale.min(axis=1)])


def _compare_affinities(
    graph: KnnGraph, rows: slice, of_nodes: FloatArray, background: Background
) -> list[FloatArray]:
    """Each affinity beside the background and beside the other neighbours of both ends."""
    rescale = background.rescale(graph.affinity[rows])
    here = of_nodes[:, rows, None]  # (4, block, 1)
    there = of_nodes[:, graph.neighbours[rows]]  # (4, block, k)
    columns = [rescale]
    for own, other in zip(here, there, strict=True):
        columns += [rescale - own, rescale - other]
    mean, best = 0, 1
    for number in (best, mean):
        columns += [np.broadcast_to(here[number], rescale.shape), there[number]]
    return columns


def _compare_lists(lists: CommonLists, rows: slice) -> list[FloatArray]:
    """Ranks both ways, whether mutual, and the share of neighbours in common."""
    back = lists.back[rows]
    k, mutual = back.shape[1], back > 0
    rank = np.arange(1, k + 1, dtype=np.float32)
    return [
        np.broadcast_to(np.log(rank), back.shape),
        np.log(np.where(mutual, back, 2 * k).astype(np.float32)),
        mutual.astype(np.float32),
        lists.shared[rows] / np.float32(k),
        lists.shared_close[rows] / np.float32(min(CLOSE, k)),
    ]


def _compare_surroundings(
    graph: KnnGraph, nodes: Nodes, background: Background
) -> list[FloatArray]:
    """Cosines between each end and the mean of the other end's neighbours."""
    own = unit_rows(nodes.average) if nodes.links is not None else nodes.identity
    columns: list[FloatArray] = []
    for reach in (graph.k, min(CLOSE, graph.k)):
        columns += _compare_around(graph, own, reach)
    for number in (0, 1, 3, 4):
        for rows in row_blocks(graph.n_nodes, graph.k):
            columns[number][rows] = background.rescale(columns[number][rows])
    return columns


def _compare_around(graph: KnnGraph, own: FloatArray, reach: int) -> list[FloatArray]:
    """Cosines of i and around j, around i and j, around both, each of shape (n_nodes, k).

    Each block of neighbours is gathered once for all that is asked of it: to gather costs more
    than to multiply.
    """
    neighbours, source = graph.neighbours, RowSource(own)
    around = np.empty(own.shape, dtype=np.float32)
    to_around, from_around, both = (np.empty(neighbours.shape, dtype=np.float32) for _ in range(3))

    def look_around(rows: slice) -> None:
        ends = source.take(neighbours[rows])  # (block, k, dim)
        around[rows] = unit_rows(ends[:, :reach].sum(axis=1))
        from_around[rows] = dot_block(around[rows], ends)

    def compare(rows: slice) -> None:
        ends = np.take(around, neighbours[rows], axis=0, mode="clip")
        to_around[rows] = dot_block(own[rows], ends)
        both[rows] = dot_block(around[rows], ends)

    blocks = list(edge_blocks(graph.n_nodes, graph.k * own.shape[1]))
    with open_workers(alone=len(blocks) < 2) as workers:
        workers.map(look_around, blocks)
        workers.map(compare, blocks)
    return [to_around, from_around, both]


def second_stage_features(graph: KnnGraph, linkage: FloatArray) -> FloatArray:
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
    again = SecondStageFeatures(graph, linkage, rank_back(graph))
    evidence = np.empty((*linkage.shape, len(SECOND_STAGE)), dtype=np.float32)
    for rows in edge_blocks(graph.n_nodes, graph.k * 2 * graph.k):
        evidence[rows] = again.of(rows)
    return evidence


class SecondStageFeatures:
    """Evidence from a first guess, a block of nodes at a time.

    Parameters
    ----------
    graph : KnnGraph of n_nodes nodes
    linkage : ndarray of shape (n_nodes, k)
        The first guess.
    back : ndarray of shape (n_nodes, k)
        Rank of each node in the list of its neighbour, 0 where it is not listed.
    """

    def __init__(self, graph: KnnGraph, linkage: FloatArray, back: npt.NDArray[np.uint16]) -> None:
        self.graph, self.linkage, self.back = graph, linkage, back
        guess = edge_matrix(graph, linkage + _TRACE)
        self.common = CommonLinks(guess.maximum(guess.T).tocsr(), graph)
        self.degree = linkage.sum(axis=1)
        self.best_logit = logit_of(linkage.max(axis=1))

    def of(self, rows: slice) -> FloatArray:
        """Evidence of the edges of consecutive nodes, shape (block, k, len(SECOND_LOOK))."""
        k, neighbours = np.float32(self.graph.k), self.graph.neighbours[rows]
        linkage, place = self.linkage[rows], self.back[rows].astype(np.int64)
        listed_back = place > 0
        back = self.linkage[neighbours, np.maximum(place - 1, 0)] + _TRACE
        back = np.where(listed_back, back, np.float32(0))
        in_common, of_i, of_j, both = self.common.of(rows)
        some = np.maximum(in_common, 1)
        degree_i = np.broadcast_to(self.degree[rows, None], linkage.shape)
        degree_j = self.degree[neighbours]
        logit, best_i, best_j = (
            logit_of(linkage), self.best_logit[rows, None], self.best_logit[neighbours]
        )  # fmt: skip
        columns = [
            logit,
            logit_of(np.maximum(linkage, back)),
            logit_of(np.where(listed_back, np.minimum(linkage, back), linkage)),
            both / some,
            both / np.maximum(of_i + of_j - both, 1e-3),
            (of_i - both) / some,
            (of_j - both) / some,
            in_common / k,
            degree_i / k,
            degree_j / k,
            np.minimum(degree_i, degree_j) / k,
            np.broadcast_to(best_i, linkage.shape),
            best_j,
            logit - best_i,
            logit - best_j,
        ]
        return _side_by_side(columns)
