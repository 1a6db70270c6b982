"""The hierarchy: every level a partition of the points, each level only merging the one before."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.errors import LevelError, SettingError
from hilander.hierarchy.levels import LevelStep


@dataclass(frozen=True, eq=False)
class Level:
    """How the nodes of one level were merged.

    Parameters
    ----------
    parent : ndarray of shape (n_nodes,), int64
        Parent of each node, the node itself for a peak.
    linkage : ndarray of shape (n_nodes,), float32
        Probability of the edge to the parent, NaN for a peak.
    density : ndarray of shape (n_nodes,), float32
    labels : ndarray of shape (n_nodes,), int64
        Cluster of each node: a node of the next level.
    peaks : ndarray of shape (n_clusters,), int64
        The node at the top of each cluster.
    stops_early : bool
        Whether early stopping would end at this level.
    """

    parent: IntArray
    linkage: FloatArray
    density: FloatArray
    labels: IntArray
    peaks: IntArray
    stops_early: bool = False

    def __post_init__(self) -> None:
        n_nodes = len(self.parent)
        if not (len(self.linkage) == len(self.density) == len(self.labels) == n_nodes):
            raise LevelError("a level's parent, linkage, density and labels differ in length")
        if not np.array_equal(self.labels[self.peaks], np.arange(len(self.peaks))):
            raise LevelError("a level's peaks do not carry the labels of their clusters")

    @property
    def n_nodes(self) -> int:
        """Number of nodes merged at this level."""
        return len(self.parent)

    @property
    def n_clusters(self) -> int:
        """Number of clusters that come out of it."""
        return len(self.peaks)

    @classmethod
    def of_step(cls, step: LevelStep) -> Level:
        """Keep of a step of the level loop what the hierarchy needs."""
        return cls(
            step.parents.index,
            step.parents.linkage,
            step.scores.density,
            step.labels,
            step.peaks,
            step.stops_early,
        )


class Hierarchy:
    """A tree of partitions of the same points.

    Level 0 is the partition after the first merge, level -1 the final one. The nodes of level 0
    are the points, the nodes of level l + 1 are the clusters of level l.

    Parameters
    ----------
    levels : sequence of Level
        At least one; the nodes of each are the clusters of the one before.
    """

    def __init__(self, levels: Sequence[Level]) -> None:
        if not levels:
            raise LevelError("a hierarchy needs at least one level, got none")
        for number, (lower, upper) in enumerate(pairwise(levels)):
            if lower.n_clusters != upper.n_nodes:
                raise LevelError(
                    f"level {number} has {lower.n_clusters} clusters but level {number + 1} "
                    f"merges {upper.n_nodes} nodes; the levels are not of one hierarchy"
                )
        self.levels = tuple(levels)

    @classmethod
    def of_steps(cls, steps: Iterable[LevelStep], *, keep_last: bool = False) -> Hierarchy:
        """Collect the level loop's steps.

        Parameters
        ----------
        steps : iterable of LevelStep
        keep_last : bool
            Keep the last level even if it merged nothing (as the released code does).
        """
        # `map` holds no step while the next one is computed; a loop variable would.
        levels = list(map(Level.of_step, steps))
        if len(levels) > 1 and levels[-1].n_clusters == levels[-1].n_nodes and not keep_last:
            levels.pop()
        return cls(levels)

    def __repr__(self) -> str:
        sizes = " -> ".join(f"{level.n_clusters:,}" for level in self.levels)
        return f"Hierarchy({self.n_points:,} points -> {sizes} clusters)"

    @property
    def n_levels(self) -> int:
        """Number of partitions."""
        return len(self.levels)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return self.levels[0].n_nodes

    @property
    def density(self) -> FloatArray:
        """Density of the points at the first level, shape (n_points,)."""
        return self.levels[0].density

    @property
    def early_stop_level(self) -> int:
        """The level at which early stopping ends; the last if it never does."""
        stops = [number for number, level in enumerate(self.levels) if level.stops_early]
        return stops[0] if stops else self.n_levels - 1

    def labels(self, level: int = -1) -> IntArray:
        """Cluster of each point at a level, shape (n_points,), ints from 0."""
        return self._point_labels[self._number(level)].copy()

    def n_clusters(self, level: int = -1) -> int:
        """Number of clusters at a level."""
        return self.levels[self._number(level)].n_clusters

    def sizes(self, level: int = -1) -> IntArray:
        """Number of points of each cluster at a level, shape (n_clusters,)."""
        number = self._number(level)
        return np.bincount(self._point_labels[number], minlength=self.n_clusters(number))

    def peaks(self, level: int = -1) -> IntArray:
        """The point that is the peak of each cluster at a level, shape (n_clusters,)."""
        points = np.arange(self.n_points)
        for below in self.levels[: self._number(level) + 1]:
            points = points[below.peaks]
        return points

    def parents(self, level: int = 0) -> tuple[IntArray, FloatArray]:
        """Parent of each node of a level and the probability of that edge.

        Returns
        -------
        parent : ndarray of shape (n_nodes,), the node itself for a peak
        linkage : ndarray of shape (n_nodes,), NaN for a peak
        """
        chosen = self.levels[self._number(level)]
        return chosen.parent, chosen.linkage

    def merges(self, level: int) -> IntArray:
        """For each cluster of a level, the cluster of the next level it goes into."""
        number = self._number(level)
        if number == self.n_levels - 1:
            raise LevelError(f"level {number} is the last of {self.n_levels}; nothing follows it")
        return self.levels[number + 1].labels

    def cut(self, *, level: int | None = None, n_clusters: int | None = None) -> IntArray:
        """One partition: that of a level, or of the level nearest to a number of clusters.

        Parameters
        ----------
        level : int, optional
        n_clusters : int, optional
            The level whose number of clusters is nearest is taken; of two equally near the finer.
            It warns if that level has another number.

        Returns
        -------
        labels : ndarray of shape (n_points,)
        """
        if (level is None) == (n_clusters is None):
            raise SettingError("cut needs exactly one of level=… and n_clusters=…")
        if level is not None:
            return self.labels(level)
        wanted: Any = n_clusters
        if not isinstance(wanted, Integral) or wanted < 1:
            raise SettingError(f"n_clusters={n_clusters!r} must be a whole number >= 1")
        distance = [abs(one.n_clusters - int(wanted)) for one in self.levels]
        nearest = int(np.argmin(distance))
        if distance[nearest]:
            given = [self.n_clusters(number) for number in range(self.n_levels)]
            warnings.warn(
                f"no level has {n_clusters} clusters; this is level {nearest}, which has "
                f"{given[nearest]}. The levels have {', '.join(map(str, given))}.",
                stacklevel=2,
            )
        return self.labels(nearest)

    @cached_property
    def confidence(self) -> FloatArray:
        """Probability of the link that attached each point, shape (n_points,), in [0, 1].

        A peak of the first level was attached by its cluster's link at a later level. The peak of a
        final cluster has no link; its confidence is 1.
        """
        confidence = np.full(self.n_points, np.nan, dtype=np.float32)
        points = np.arange(self.n_points)  # the peak point of each node of the level
        for level in self.levels:
            linked = ~np.isnan(level.linkage)
            confidence[points[linked]] = level.linkage[linked]
            points = points[level.peaks]
        confidence[points] = 1.0
        return confidence

    @property
    def is_peak(self) -> BoolArray:
        """Whether each point is the peak of its final cluster, shape (n_points,)."""
        peak = np.zeros(self.n_points, dtype=bool)
        peak[self.peaks(-1)] = True
        return peak

    def to_columns(self, ids: npt.ArrayLike | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """One row for each point: id, cluster, level_0 …, confidence, density, is_peak."""
        names = np.arange(self.n_points) if ids is None else np.asarray(ids)
        if len(names) != self.n_points:
            raise SettingError(f"got {len(names)} ids for {self.n_points} points; give one each")
        every_level = {f"level_{number}": self.labels(number) for number in range(self.n_levels)}
        return {
            "id": names,
            "cluster": self.labels(-1),
            **every_level,
            "confidence": self.confidence,
            "density": self.density,
            "is_peak": self.is_peak,
        }

    def to_parquet(self, path: str | Path, ids: npt.ArrayLike | None = None) -> Path:
        """Write `to_columns` to a Parquet file and give its path."""
        from hilander.hierarchy.export import write_parquet

        return write_parquet(self, path, ids)

    def to_json(self, path: str | Path | None = None) -> str:
        """Give the whole hierarchy as JSON, and write it if a path is given."""
        from hilander.hierarchy.export import to_json_text

        return to_json_text(self, path)

    def to_newick(self, path: str | Path | None = None, ids: npt.ArrayLike | None = None) -> str:
        """Give the tree of clusters in Newick form, and write it if a path is given."""
        from hilander.hierarchy.export import to_newick_text

        return to_newick_text(self, path, ids)

    def save(self, folder: str | Path, ids: npt.ArrayLike | None = None) -> Path:
        """Write a run folder: the hierarchy itself and `clusters.parquet`, one row a point."""
        from hilander.hierarchy.storage import save_hierarchy

        return save_hierarchy(self, folder, ids)

    @classmethod
    def load(cls, folder: str | Path) -> Hierarchy:
        """Read a run folder that `save` or `hilander cluster` wrote."""
        from hilander.hierarchy.storage import load_hierarchy

        return load_hierarchy(folder)

    @cached_property
    def _point_labels(self) -> list[IntArray]:
        labels = [self.levels[0].labels]
        for level in self.levels[1:]:
            labels.append(level.labels[labels[-1]])
        return labels

    def _number(self, level: Any) -> int:
        if not isinstance(level, Integral):
            wrong = f"level {level!r:.40} is a {type(level).__name__}, expected a whole number"
        elif not -self.n_levels <= int(level) < self.n_levels:
            wrong = f"level {level} does not exist"
        else:
            return int(level) % self.n_levels
        raise LevelError(
            f"{wrong}; the hierarchy has {self.n_levels} levels, 0 to {self.n_levels - 1} (or -1 "
            "for the last)"
        )
