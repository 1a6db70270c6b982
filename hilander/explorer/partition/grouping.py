"""One partition: a level of the hierarchy, or the last level as reviewed."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.errors import LevelError
from hilander.explorer.review_log.state import ReviewState
from hilander.explorer.run.run_folder import Run

SORTS = ("size", "doubt", "quality", "purity", "number")
# Groups whose sorted members are cached: a few pages of cards.
_CACHED_MEMBERS = 512


@dataclass(eq=False)
class Grouping:
    """Clusters of one partition, with the values that they are sorted by.

    Parameters
    ----------
    run : Run
    level : int
        Level of the hierarchy; for the reviewed partition, the level that the review started from.
    labels : ndarray of shape (n_points,)
    sizes, peaks : ndarray of shape (n_groups,)
        A group that the review emptied has size 0 and peak -1.
    doubt : ndarray of shape (n_groups,), in [0, 1]
        1 minus the linkage of the weakest merge inside.
    quality : ndarray of shape (n_groups,), in [0, 1]
        Mean confidence of the members.
    state : ReviewState, optional
        Given for the reviewed partition only.
    """

    run: Run
    level: int
    labels: IntArray
    sizes: IntArray
    peaks: IntArray
    doubt: FloatArray
    quality: FloatArray
    state: ReviewState | None = None
    _purity: FloatArray | None = None
    _orders: dict[str, IntArray] = field(default_factory=dict)
    _members: OrderedDict[int, IntArray] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    @property
    def n_groups(self) -> int:
        """Number of groups, empty ones included."""
        return len(self.sizes)

    @property
    def alive(self) -> BoolArray:
        """Whether each group has members."""
        return self.sizes > 0

    def check(self, group: int) -> int:
        """Return the group; raise LevelError if it does not exist or is empty."""
        if not 0 <= group < len(self.sizes) or self.sizes[group] == 0:
            raise LevelError(
                f"cluster {group} does not exist at this level, which has "
                f"{int(self.alive.sum())} clusters; pick one of the list"
            )
        return group

    def rows_of(self, group: int) -> IntArray:
        """Return the members of a group in no particular order."""
        if self.state is not None:
            return self.state.rows_of(group)
        return self.run.nested.members(self.level, group)

    def members(self, group: int) -> IntArray:
        """Return the members of a group: the peak, then the others by falling density."""
        with self._lock:
            if group in self._members:
                self._members.move_to_end(group)
                return self._members[group]
        rows = self.rows_of(group)
        ordered = rows[np.argsort(-self.run.hierarchy.density[rows], kind="stable")]
        peak = self.peaks[group]
        ordered = np.concatenate(([peak], ordered[ordered != peak]))
        with self._lock:
            self._members[group] = ordered
            while len(self._members) > _CACHED_MEMBERS:
                self._members.popitem(last=False)
        return ordered

    @property
    def purity(self) -> FloatArray | None:
        """Share of the most frequent identity in each group, if identities are known."""
        known = self.run.items.labels
        if known is None:
            return None
        if self._purity is None:
            n_names = len(known.names)
            cells, counts = np.unique(self.labels * n_names + known.codes, return_counts=True)
            most_frequent = np.zeros(len(self.sizes), dtype=np.int64)
            np.maximum.at(most_frequent, cells // n_names, counts)
            self._purity = (most_frequent / np.maximum(self.sizes, 1)).astype(np.float32)
        return self._purity

    def order(self, sort: str) -> IntArray:
        """Return the groups that have members, sorted; of equal ones the larger first."""
        if sort not in self._orders:
            purity = self.purity if self.purity is not None else self.quality
            keys: dict[str, npt.NDArray[Any]] = {
                "size": -self.sizes,
                "doubt": -self.doubt,
                "quality": -self.quality,
                "purity": purity,
                "number": np.arange(len(self.sizes)),
            }
            ordered = np.lexsort((-self.sizes, keys[sort]))
            self._orders[sort] = ordered[self.alive[ordered]]
        return self._orders[sort]


def group_by_level(run: Run, level: int) -> Grouping:
    """Return a level of the hierarchy as a grouping."""
    table = run.nested.tables[level]
    return Grouping(
        run, level, table.labels, table.sizes, table.peaks, 1 - table.weakest, table.quality
    )


# Rows of a group, its peak, quality and doubt.
GroupFacts = tuple[IntArray, int, float, float]


def group_by_review(
    run: Run, state: ReviewState, base: Grouping, known: dict[int, GroupFacts] | None = None
) -> Grouping:
    """Return the last level as reviewed.

    Parameters
    ----------
    run : Run
    state : ReviewState
        Must not change while the grouping is in use.
    base : Grouping
        The last level.
    known : dict of int to GroupFacts, optional
        Facts of changed groups, from an earlier call; those of this state are added.
    """
    known = {} if known is None else known
    n_groups = state.next_group
    extra = n_groups - len(base.sizes)
    sizes = np.concatenate((base.sizes, np.zeros(extra, dtype=np.int64)))
    peaks = np.concatenate((base.peaks, np.full(extra, -1, dtype=np.int64)))
    doubt = np.concatenate((base.doubt, np.zeros(extra, dtype=np.float32)))
    quality = np.concatenate((base.quality, np.ones(extra, dtype=np.float32)))
    confidence, density = run.hierarchy.confidence, run.hierarchy.density
    for group, rows in state.changed.items():
        sizes[group] = len(rows)
        if len(rows) == 0:
            peaks[group] = -1
            continue
        # A review never changes an array of rows, it replaces it.
        if group not in known or known[group][0] is not rows:
            peak = int(peaks[group])
            if peak < 0 or state.labels[peak] != group:
                peak = int(rows[np.argmax(density[rows])])
            doubtful = 1 - _weakest_inside(run, rows)
            known[group] = (rows, peak, float(confidence[rows].mean()), doubtful)
        _, peaks[group], quality[group], doubt[group] = known[group]
    return Grouping(run, base.level, state.labels, sizes, peaks, doubt, quality, state)


def _weakest_inside(run: Run, rows: IntArray) -> float:
    """Return the lowest linkage of the merges whose two ends are both still in the group."""
    last = run.n_levels - 1
    if last == 0:
        linkage = run.hierarchy.levels[0].linkage[rows]
        return float(np.nanmin(linkage)) if np.isfinite(linkage).any() else 1.0
    parent, linkage = run.hierarchy.parents(last)
    nodes = np.unique(run.nested.tables[last - 1].labels[rows])
    inside = np.isin(parent[nodes], nodes) & np.isfinite(linkage[nodes])
    below = run.nested.tables[last - 1].weakest[nodes].min() if last > 1 else 1.0
    here = linkage[nodes][inside].min() if inside.any() else 1.0
    return float(min(below, here))
