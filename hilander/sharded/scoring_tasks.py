"""Scores of the edges of some rows, from the rows around them: the same as in the whole graph.

The first stage needs the features of neighbours of neighbours and the lists of neighbours. The
second needs no features: it has the measures of the first, and the links of the rows and of their
neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.edges import logit_of
from hilander.graph.knn_graph import edge_blocks
from hilander.graph.scores import edge_density, join_equal_rows
from hilander.linkage.evidence.averaging import average_log_odds
from hilander.linkage.evidence.background import Background
from hilander.linkage.evidence.compiled_classifier import CompiledClassifier
from hilander.linkage.evidence.edge_measures import CLOSE, EdgeBlock, summarise_affinities
from hilander.linkage.evidence.registry import compute_columns, features_of
from hilander.linkage.evidence.second_stage import SecondStageBlock

_NUMBERS_PER_EDGE = 128  # features and layers of an edge, which a block has to hold in the cache
Ranks = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Networks:
    """The classifiers of an ensemble, and the background of the set.

    Parameters
    ----------
    background : Background
    members : list of (weight, first stage, second stage)
    """

    background: Background
    members: list[tuple[float, CompiledClassifier, CompiledClassifier]]


@dataclass(frozen=True, eq=False)
class Around:
    """Some consecutive rows of a graph, and their neighbours.

    Parameters
    ----------
    first : int
        Number of the first row.
    halo : ndarray of shape (n_halo,)
        Neighbours of the rows that are not among them, rising.
    neighbours, affinity : ndarray of shape (n_rows + n_halo, k)
        Lists of the rows and then of the halo.
    n_rows : int
    """

    first: int
    halo: IntArray
    neighbours: IntArray
    affinity: FloatArray
    n_rows: int

    def place(self, number: IntArray) -> IntArray:
        """Places of rows: first the rows themselves, then the halo; others beyond all."""
        at = np.minimum(np.searchsorted(self.halo, number), max(len(self.halo) - 1, 0))
        known = self.halo[at] == number if len(self.halo) else np.zeros(number.shape, bool)
        beyond = self.n_rows + np.where(known, at, len(self.halo))
        own = number - self.first
        return np.where((own >= 0) & (own < self.n_rows), own, beyond)


@dataclass(frozen=True, eq=False)
class FirstStage:
    """What the second stage needs of the first, for some rows.

    Parameters
    ----------
    cosines : ndarray of shape (6, n_rows, k), float32
        Of the ends with the mean neighbours and with the closest mean neighbours.
    lists : ndarray of shape (3, n_rows, k), uint16
        Rank back, shared neighbours, shared close neighbours.
    """

    cosines: FloatArray
    lists: Ranks


def score_first(
    networks: Networks, around: Around, far: IntArray, part: FloatArray, *others: FloatArray
) -> tuple[FirstStage, FloatArray, Ranks]:
    """The first stage for the edges of some rows.

    Parameters
    ----------
    networks : Networks
    around : Around
    far : ndarray of shape (n_far,)
        Neighbours of the halo that are neither rows nor halo, rising.
    part : ndarray of shape (n_rows, dim)
        Features of the rows.
    *others : ndarray
        Features of the halo and then of the far ones, in pieces.

    Returns
    -------
    first : FirstStage
    probability : ndarray of shape (n_networks, n_rows, k)
    back : ndarray of shape (n_rows, k), uint16
    """
    from hilander.linkage.evidence.edge_kernels import compare_lists_of

    table = np.concatenate([part, *others]).astype(np.float32, copy=False)
    ends = around.place(around.neighbours)
    beyond = ends >= len(around.neighbours)
    ends[beyond] += np.searchsorted(far, around.neighbours[beyond])
    k = ends.shape[1]
    n_close = min(CLOSE, k)
    lists = np.empty((3, around.n_rows, k), dtype=np.uint16)
    scratch = np.zeros(len(table), dtype=np.int32)
    listed = ends.astype(np.int32)
    compare_lists_of(listed, 0, around.n_rows, n_close, scratch, lists)
    cosines = np.concatenate(
        [_compare_means(table, ends, around.n_rows, reach, networks) for reach in (k, n_close)]
    )
    first = FirstStage(cosines, lists)
    block = _EdgeSource(networks, around, first)
    probability = np.empty((len(networks.members), around.n_rows, k), dtype=np.float32)
    for rows in edge_blocks(around.n_rows, k * _NUMBERS_PER_EDGE):
        columns = block.columns(rows)
        for number, (_, classifier, _) in enumerate(networks.members):
            probability[number, rows] = classifier.predict(columns)
    return first, probability, lists[0]


def _compare_means(
    table: FloatArray, ends: IntArray, n_rows: int, reach: int, networks: Networks
) -> FloatArray:
    """Cosines with mean neighbours, as `MeanNeighbourMeasures`, shape (3, n_rows, k)."""
    from hilander.linkage.evidence.mean_kernels import average_neighbours, dot_ends

    mean = np.empty((len(ends), table.shape[1]), dtype=np.float32)
    found = np.empty((3, n_rows, ends.shape[1]), dtype=np.float32)
    average_neighbours(table, ends, reach, mean)
    own = ends[:n_rows]
    dot_ends(table[:n_rows], mean, own, found[0])
    dot_ends(mean[:n_rows], table, own, found[1])
    dot_ends(mean[:n_rows], mean, own, found[2])
    found[:2] = networks.background.rescale(found[:2])
    return found


class _EdgeSource:
    """The columns of the first stage for a block of rows."""

    def __init__(self, networks: Networks, around: Around, first: FirstStage) -> None:
        k = around.neighbours.shape[1]
        own = slice(0, around.n_rows)
        of_mean, of_close = (
            SimpleNamespace(i_to_mean_j=one[0], mean_i_to_j=one[1], mean_to_mean=one[2])
            for one in (first.cosines[:3], first.cosines[3:])
        )
        self.measures: Any = SimpleNamespace(
            graph=SimpleNamespace(
                k=k,
                affinity=around.affinity[own],
                neighbours=around.place(around.neighbours[own]),
            ),
            background=networks.background,
            n_close=min(CLOSE, k),
            lists=SimpleNamespace(
                back=first.lists[0], shared=first.lists[1], shared_close=first.lists[2]
            ),
            node_affinity=summarise_affinities(around.affinity, networks.background),
            to_mean=of_mean,
            to_close_mean=of_close,
        )

    def columns(self, rows: slice) -> FloatArray:
        """Features of the edges of consecutive rows, shape (block, k, n_features)."""
        block = EdgeBlock(self.measures, rows)
        return compute_columns(features_of("edge"), block, block.affinity.shape)


@dataclass(frozen=True, eq=False)
class LinkedRows:
    """Rows of the symmetric matrix of links, for rows and their halo.

    Parameters
    ----------
    starts : ndarray of shape (n_rows + n_halo + 1,)
    columns : ndarray of shape (n_entries,)
        Numbers of rows, rising within each.
    values : ndarray of shape (n_entries,), float32
    probability : ndarray of shape (n_rows + n_halo, k)
        Of the first stage.
    """

    starts: IntArray
    columns: npt.NDArray[Any]
    values: FloatArray
    probability: FloatArray


def score_second(
    networks: Networks, around: Around, first: FirstStage, *linked: LinkedRows
) -> tuple[FloatArray, FloatArray]:
    """Linkage and density of some rows.

    Parameters
    ----------
    networks : Networks
    around : Around
    first : FirstStage of the same rows
    *linked : LinkedRows
        One for each network.

    Returns
    -------
    linkage : ndarray of shape (n_rows, k)
    density : ndarray of shape (n_rows,)
    """
    source = _EdgeSource(networks, around, first)
    neighbours = source.measures.graph.neighbours
    predictions = []
    for (weight, _, classifier), links in zip(networks.members, linked, strict=True):
        second: Any = _second_measures(links, neighbours, first.lists[0])
        linkage = np.empty(neighbours.shape, dtype=np.float32)
        for rows in edge_blocks(len(neighbours), neighbours.shape[1] * _NUMBERS_PER_EDGE):
            block = SecondStageBlock(second, rows)
            added = compute_columns(features_of("second stage"), block, block.probability.shape)
            linkage[rows] = classifier.predict(
                np.concatenate([source.columns(rows), added], axis=-1)
            )
        predictions.append((weight, linkage))
    affinity = around.affinity[: around.n_rows]
    graph: Any = SimpleNamespace(affinity=affinity)
    linkage = join_equal_rows(graph, average_log_odds(predictions))
    return linkage, edge_density(affinity, linkage)


def _second_measures(links: LinkedRows, neighbours: IntArray, back: Ranks) -> Any:
    """What `SecondStageBlock` reads, for rows whose neighbours are given by their places."""
    numbered, column = np.unique(links.columns, return_inverse=True)
    held = np.zeros(len(numbered), dtype=np.float32)

    def of(rows: slice) -> tuple[FloatArray, ...]:
        from hilander.linkage.evidence.edge_kernels import sum_common

        sums = np.empty((4, *neighbours[rows].shape), dtype=np.float32)
        sum_common(links.starts, column, links.values, neighbours[rows], rows.start, held, sums)
        return tuple(sums)

    probability = links.probability
    return SimpleNamespace(
        graph=SimpleNamespace(k=neighbours.shape[1], neighbours=neighbours),
        probability=probability,
        rank_back=back,
        common=SimpleNamespace(of=of),
        degree=probability.sum(axis=1),
        best_logit=logit_of(probability.max(axis=1)),
    )
