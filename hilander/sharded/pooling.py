"""Pooling of a dealt set: the sums of trees, each in the order of the numbers of its members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from hilander.arrays.rows import FloatArray, IntArray
from hilander.graph.nodes import Nodes
from hilander.hierarchy.levels import LevelStep, link_level, pool_level
from hilander.hierarchy.rules import Rules
from hilander.sharded.parted import PartedRows

_LARGE = 1 << 14  # members from which on a tree is summed piece by piece, to bound the memory


def pool_sharded(step: LevelStep, rules: Rules) -> Nodes:
    """The nodes of the next level; those of points are pooled where the points are."""
    points = step.nodes.identity
    if not isinstance(points, PartedRows):
        return pool_level(step, rules)
    total, identity = _sum_trees(points, step.labels, step.peaks)
    return Nodes(
        identity=identity,
        total=total,
        size=np.bincount(step.labels, minlength=len(step.peaks)),
        point=step.peaks,
        links=link_level(step, rules),
    )


def _sum_trees(
    points: PartedRows, labels: IntArray, peaks: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Sum of the members of each tree, and the features of its peak, each (n_trees, dim)."""
    n_trees, log = len(peaks), points.log
    size = np.bincount(labels, minlength=n_trees)
    by_tree = np.argsort(labels, kind="stable")
    ends = np.concatenate([[0], np.cumsum(size)])
    is_large = size >= _LARGE
    # A tree is summed where its first member is; its other members come from their partitions.
    home = np.searchsorted(points.starts, by_tree[ends[:-1]], side="right") - 1
    trees_of: list[IntArray] = []

    def submit() -> Iterator[Any]:
        for part, held in enumerate(points.parts):
            start, stop = points.starts[part : part + 2].tolist()
            trees = np.flatnonzero((home == part) & ~is_large)
            trees_of.append(trees)
            length = size[trees]
            starts = np.concatenate([[0], np.cumsum(length)])
            places = np.repeat(ends[trees] - starts[:-1], length) + np.arange(starts[-1])
            members = by_tree[places]
            outside = np.unique(members[(members < start) | (members >= stop)])
            own = (members >= start) & (members < stop)
            at = np.where(own, members - start, stop - start + np.searchsorted(outside, members))
            peak = np.flatnonzero(members == np.repeat(peaks[trees], length))
            yield log.engine.submit(
                _sum_part, starts, at, peak, held, *points.gather(outside),
                n_results=2, rows=len(members),
            )  # fmt: skip

    total = np.empty((n_trees, points.dim), dtype=np.float32)
    identity = np.empty((n_trees, points.dim), dtype=np.float32)
    for task, trees in zip(log.run("pool", submit(), len(points)), trees_of, strict=True):
        total[trees], identity[trees] = map(log.engine.fetch, task.results)
    for tree in np.flatnonzero(is_large).tolist():
        members = by_tree[ends[tree] : ends[tree + 1]]
        total[tree] = _sum_large(points, members)
        identity[tree] = points.take(peaks[tree : tree + 1])[0]
    return total, identity


def _sum_part(
    starts: IntArray, at: IntArray, peak: IntArray, part: FloatArray, *outside: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Sums of trees, and the features of their peaks.

    Parameters
    ----------
    starts : ndarray of shape (n_trees + 1,)
        Where the members of each tree begin.
    at : ndarray of shape (n_members,)
        Row of each member in `part` and the pieces after it.
    peak : ndarray of shape (n_trees,)
        Which members are peaks.
    part : ndarray of shape (n_part, dim)
    *outside : ndarray of shape (n_outside, dim)
    """
    table = np.concatenate([part, *outside]) if outside else np.asarray(part)
    entries = np.ones(len(at), np.float32), at, starts
    total = csr_matrix(entries, (len(starts) - 1, len(table))) @ table
    sums: FloatArray = np.asarray(total, dtype=np.float32)
    return sums, table[at[peak]]


def _sum_large(points: PartedRows, members: IntArray) -> FloatArray:
    """Sum of rows, one after another as in a product with a sparse matrix."""
    total = np.zeros((1, points.dim), dtype=np.float32)
    for start in range(0, len(members), _LARGE):
        rows = points.take(members[start : start + _LARGE])
        total = np.concatenate([total, rows]).sum(axis=0, keepdims=True)
    large: FloatArray = total[0]
    return large
