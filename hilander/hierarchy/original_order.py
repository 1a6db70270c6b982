"""Levels of points in canonical order, given back in the order of the input.

See `hilander.embeddings.canonical_order` for why points are clustered in an order of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hilander.arrays.reordered import reorder_rows
from hilander.arrays.rows import IntArray
from hilander.embeddings.canonical_order import invert_order
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.nodes import start_nodes
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.constraints.enforcement import JoinedLevel
from hilander.hierarchy.decoding.parents import Parents
from hilander.hierarchy.level import Level
from hilander.hierarchy.levels import LevelStep


def reorder_graph(graph: KnnGraph, order: IntArray) -> KnnGraph:
    """The graph of the same points in another order.

    Parameters
    ----------
    graph : KnnGraph of n_points nodes
    order : ndarray of shape (n_points,)
        Node ``i`` of the result is node ``order[i]`` of `graph`.
    """
    neighbours = invert_order(order)[graph.neighbours[order]]
    return KnnGraph(neighbours, graph.affinity[order], graph.search)


def restore_original_order(steps: Iterator[LevelStep], order: IntArray) -> Iterator[LevelStep]:
    """Give the points of the steps the numbers that they have in the input.

    Clusters keep their numbers, which follow from the canonical order. They are therefore the same
    for the same points in any order.

    Parameters
    ----------
    steps : iterator of LevelStep
        Of the points in canonical order.
    order : ndarray of shape (n_points,)
        As `find_canonical_order` gives it.

    Yields
    ------
    step : LevelStep
    """
    rank = invert_order(order)
    for number, step in enumerate(steps):
        if number:
            yield replace(step, nodes=replace(step.nodes, point=order[step.nodes.point]))
        else:
            yield _restore_points(step, order, rank)


def restore_level(level: Level, order: IntArray) -> Level:
    """The first level of points in canonical order, with their numbers in the input.

    Parameters
    ----------
    level : Level of n_points nodes
    order : ndarray of shape (n_points,)
        As `find_canonical_order` gives it.
    """
    rank = invert_order(order)
    return replace(
        level,
        parent=order[level.parent[rank]],
        linkage=level.linkage[rank],
        density=level.density[rank],
        labels=level.labels[rank],
        peaks=order[level.peaks],
    )


def _restore_points(step: LevelStep, order: IntArray, rank: IntArray) -> LevelStep:
    """The first level; the features of its nodes are gathered where they are read."""
    parents = step.parents
    return replace(
        step,
        nodes=start_nodes(reorder_rows(step.nodes.identity, rank)),
        graph=reorder_graph(step.graph, rank),
        scores=EdgeScores(step.scores.linkage[rank], step.scores.density[rank]),
        parents=Parents(order[parents.index[rank]], parents.linkage[rank], parents.p_tau),
        labels=step.labels[rank],
        peaks=order[step.peaks],
        joined=None if step.joined is None else _restore_joined(step.joined, order, rank),
    )


def _restore_joined(joined: JoinedLevel, order: IntArray, rank: IntArray) -> JoinedLevel:
    parents = joined.parents
    restored = Parents(order[parents.index[rank]], parents.linkage[rank], parents.p_tau)
    return JoinedLevel(restored, joined.density[rank], joined.labels[rank], order[joined.peaks])
