"""The hierarchy: every level a partition of the points, each level only merging the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, FloatArray, IntArray
from hilander.errors import LevelError, SettingError
from hilander.hierarchy.basis import Basis
from hilander.hierarchy.level import Level
from hilander.hierarchy.level_collector import LevelCollector
from hilander.hierarchy.levels import LevelStep
from hilander.hierarchy.membership import Membership, find_membership
from hilander.hierarchy.merge_tree import LevelLinks, MergeTree, build_merge_tree, drop_small
from hilander.hierarchy.nearest import SetSearch
from hilander.hierarchy.representatives import find_representatives

if TYPE_CHECKING:
    from hilander.hierarchy.constraints.constraints import Constraints
    from hilander.hierarchy.work import Work

ReadGraph = Callable[[], tuple[IntArray, FloatArray]]


class Hierarchy:
    """A tree of partitions of the same points.

    Level 0 is the partition after the first merge, level -1 the final one. The nodes of level 0
    are the points, the nodes of level l + 1 are the clusters of level l.

    Parameters
    ----------
    levels : sequence of Level
        At least one; the nodes of each are the clusters of the one before.
    read_graph : callable () -> (neighbours, linkage), optional
        Gives the graph of the points and the linkage of its edges, both of shape (n_points, k). The
        merge tree is built from it when it is first used.
    read_basis : callable () -> Basis, optional
        Gives what the hierarchy was computed from; new points are assigned by it.
    cluster_ids : ndarray of shape (n_clusters,), optional
        Id of each cluster of the last level, also an attribute; by default its number.
    """

    constraints: Constraints | None = None  # known beforehand; they hold at every level
    trust: float = 1.0  # share of the confidence of links, see `hilander.hierarchy.trust`

    def __init__(
        self,
        levels: Sequence[Level],
        read_graph: ReadGraph | None = None,
        read_basis: Callable[[], Basis] | None = None,
        cluster_ids: IntArray | None = None,
    ) -> None:
        if not levels:
            raise LevelError("a hierarchy needs at least one level, got none")
        for number, (lower, upper) in enumerate(pairwise(levels)):
            if lower.n_clusters != upper.n_nodes:
                raise LevelError(
                    f"level {number} has {lower.n_clusters} clusters but level {number + 1} "
                    f"merges {upper.n_nodes} nodes; the levels are not of one hierarchy"
                )
        self.levels = tuple(levels)
        n_clusters = self.levels[-1].n_clusters
        self.cluster_ids = np.arange(n_clusters) if cluster_ids is None else cluster_ids
        if len(self.cluster_ids) != n_clusters:
            raise LevelError(f"got {len(self.cluster_ids)} ids for {n_clusters} clusters")
        self._read_graph, self._read_basis = read_graph, read_basis

    @classmethod
    def of_steps(
        cls,
        steps: Iterable[LevelStep],
        *,
        keep_last: bool = False,
        keep_graph: bool = False,
        work: Work | None = None,
    ) -> Hierarchy:
        """Collect the level loop's steps.

        Parameters
        ----------
        steps : iterable of LevelStep
        keep_last : bool
            Keep the last level even if it merged nothing (as the released code does).
        keep_graph : bool
            Keep the points and their scored graph in memory, for the merge tree and `basis`.
        work : Work, optional
            Of the run; without it there is no `basis`.
        """
        collector = LevelCollector(work, keep_graph=keep_graph)
        # `map` holds no step while the next one is computed; a loop variable would.
        levels = list(map(collector.add, steps))
        if len(levels) > 1 and levels[-1].n_clusters == levels[-1].n_nodes and not keep_last:
            levels.pop()
        found = cls(levels, collector.read_graph, collector.read_basis)
        found.trust = collector.trust
        return found

    @classmethod
    def of_one_cluster(cls, n_points: int) -> Hierarchy:
        """One level, on which all points are in one cluster."""
        return cls([Level.of_one_cluster(n_points)])

    def with_cluster_ids(self, cluster_ids: IntArray) -> Hierarchy:
        """The same hierarchy with other ids of the clusters of its last level."""
        twin = Hierarchy(self.levels, self._read_graph, self._read_basis, cluster_ids)
        twin.constraints, twin.trust = self.constraints, self.trust
        return twin

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

    @cached_property
    def tree(self) -> MergeTree:
        """The merge tree over all points, see `hilander.hierarchy.merge_tree`.

        A SettingError is raised when the scored graph of the points was not kept.
        """
        if self._read_graph is None:
            raise SettingError(
                "this hierarchy was made without its graph, so it has no merge tree; take it from "
                "HiLander.cluster without a memory limit, or load a run of `hilander cluster`"
            )
        neighbours, linkage = self._read_graph()
        return build_merge_tree(neighbours, linkage, list(self._links()), self.constraints)

    @cached_property
    def basis(self) -> Basis:
        """What the hierarchy was computed from, see `hilander.hierarchy.basis`.

        A SettingError says that it was not kept.
        """
        if self._read_basis is None:
            raise SettingError(
                "this hierarchy was made without its embeddings; take it from HiLander.cluster "
                "without a memory limit, or load a run that `hilander cluster` wrote"
            )
        return self._read_basis()

    @cached_property
    def search(self) -> SetSearch:
        """A search of its points, for rows that are not among them."""
        return SetSearch(self)

    def membership(self, top: int = 5) -> Membership:
        """The most probable clusters of each point, see `hilander.hierarchy.membership`."""
        return find_membership(self, top)

    def representatives(self, level: int = -1) -> IntArray:
        """The point that is the medoid of each cluster at a level, shape (n_clusters,)."""
        return find_representatives(self, level)

    def cut(
        self,
        *,
        level: int | None = None,
        p: float | None = None,
        n_clusters: int | None = None,
        min_size: int = 1,
    ) -> IntArray:
        """One partition: of a level, or of the merge tree at a probability or into a number.

        Parameters
        ----------
        level : int, optional
            The partition of that level. Without `level`, `p` and `n_clusters` it is the last.
        p : float, optional
            Merges of at least this height, in [0, 1]; 0.5 is the last level's partition, more is
            finer, less is broader.
        n_clusters : int, optional
            Exactly so many clusters. A hierarchy without its graph has no merge tree; it gives the
            level of that number of clusters, if there is one.
        min_size : int
            Points of smaller clusters get the label -1 (noise).

        Returns
        -------
        labels : ndarray of shape (n_points,), ints from 0; -1 for noise
        """
        if sum(one is not None for one in (level, p, n_clusters)) > 1:
            raise SettingError("cut takes only one of level=…, p=… and n_clusters=…")
        for name, count in (("n_clusters", n_clusters), ("min_size", min_size)):
            wanted: Any = count
            if count is not None and (not isinstance(wanted, Integral) or wanted < 1):
                raise SettingError(f"{name}={count!r} must be a whole number >= 1")
        if p is not None:
            labels = self.tree.cut(p)
        elif n_clusters is not None:
            labels = self._cut_into(int(n_clusters))
        else:
            labels = self.labels(-1 if level is None else level)
        return drop_small(labels, min_size)

    def _cut_into(self, n_clusters: int) -> IntArray:
        counts = [level.n_clusters for level in self.levels]
        if self._read_graph is None and n_clusters in counts:
            return self.labels(counts.index(n_clusters))
        return self.tree.cut_into(n_clusters)

    @cached_property
    def confidence(self) -> FloatArray:
        """Probability of the link that attached each point, shape (n_points,), in [0, 1].

        A peak of the first level was attached by its cluster's link at a later level. The peak of a
        final cluster has no link; its confidence is 1. That of links is lowered by `trust`.
        """
        confidence = np.full(self.n_points, np.nan, dtype=np.float32)
        points = np.arange(self.n_points)  # the peak point of each node of the level
        for level in self.levels:
            linked = ~np.isnan(level.linkage)
            confidence[points[linked]] = level.linkage[linked]
            points = points[level.peaks]
        confidence *= np.float32(self.trust)
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
            "cluster": self.cluster_ids[self.labels(-1)],
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

    def to_newick(
        self,
        path: str | Path | None = None,
        ids: npt.ArrayLike | None = None,
        *,
        heights: bool = False,
    ) -> str:
        """Give the tree of clusters in Newick form, and write it if a path is given.

        Parameters
        ----------
        path : path, optional
        ids : array-like of shape (n_points,), optional
            Names of the leaves.
        heights : bool
            Write the merge tree, with branch lengths that are differences of height, in place of
            the tree of levels, in which every branch has length 1.
        """
        from hilander.hierarchy.export import to_newick_text

        return to_newick_text(self, path, ids, heights=heights)

    def to_scipy_linkage(self) -> npt.NDArray[np.float64]:
        """The merge tree as `scipy.cluster.hierarchy` reads it, shape (n_points - 1, 4).

        The distance of a merge is one minus its height.
        """
        return self.tree.to_scipy_linkage()

    def to_networkx(self) -> Any:
        """The merge tree as a `networkx.DiGraph` from parents to children.

        Nodes are numbered as in `MergeTree`; each has `size`, each merge has `height`.
        """
        from hilander.hierarchy.export import to_networkx_graph

        return to_networkx_graph(self.tree)

    def save(self, folder: str | Path, ids: npt.ArrayLike | None = None) -> Path:
        """Write a run folder: the hierarchy itself and `clusters.parquet`, one row a point."""
        from hilander.hierarchy.storage import save_hierarchy

        return save_hierarchy(self, folder, ids)

    @classmethod
    def load(cls, folder: str | Path) -> Hierarchy:
        """Read a run folder that `save` or `hilander cluster` wrote."""
        from hilander.hierarchy.storage import load_hierarchy

        return load_hierarchy(folder)

    def _links(self) -> Iterator[LevelLinks]:
        points = np.arange(self.n_points)  # the peak point of each node of the level
        for level, labels in zip(self.levels, self._point_labels, strict=True):
            linked = np.flatnonzero(~np.isnan(level.linkage))
            ends = points[linked], points[level.parent[linked]]
            yield LevelLinks(labels, *ends, level.linkage[linked])
            points = points[level.peaks]

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
