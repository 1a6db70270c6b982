"""Constraints: what is known of the points before they are clustered, as one value.

Three kinds of knowledge are held, each in a form whose size grows with the number of points:

- *must-link components*: points that are of one identity, directly or through others;
- *apart groups*: points that are all of different identities, such as the faces of one photo. A
  cannot-link pair is an apart group of two;
- *known labels*: points of one label are of one identity, points of two labels are not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from hilander.arrays.rows import BoolArray, IntArray
from hilander.errors import FileFormatError, LabelError, SettingError
from hilander.hierarchy.decoding.contraction import number_by_appearance
from hilander.io.digests import FileList

CONSTRAINTS_FILE = "constraints.npz"
_PAIR_BLOCK = 1 << 18  # pairs whose groups are compared at a time; bounds memory


@dataclass(frozen=True, eq=False)
class Constraints:
    """What is known of the points, or of the nodes of a level.

    Build it with `hilander.hierarchy.constraints.building.build_constraints`, which finds
    contradictions.

    Parameters
    ----------
    component : ndarray of shape (n_points,), int64
        Must-link component of each point, numbered from 0 by first appearance.
    apart : csr_matrix of shape (n_components, n_groups)
        1 where a point of a component is in an apart group.
    known : ndarray of shape (n_components,), int64
        Known label of each component as a number from 0; -1 where it is unknown.
    """

    component: IntArray
    apart: csr_matrix
    known: IntArray

    def __post_init__(self) -> None:
        n_components = int(self.component.max(initial=-1)) + 1
        if len(self.known) != n_components or self.apart.shape[0] != n_components:
            raise SettingError(
                f"constraints of {n_components}, {len(self.known)} and {self.apart.shape[0]} "
                "components do not fit together; give all three for the same components"
            )
        self.apart.sort_indices()

    @classmethod
    def none(cls, n_points: int) -> Constraints:
        """Constraints that demand nothing."""
        empty = csr_matrix((n_points, 0), dtype=np.int8)
        return cls(np.arange(n_points), empty, np.full(n_points, -1))

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.component)

    @property
    def n_components(self) -> int:
        """Number of must-link components, single points counted."""
        return len(self.known)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is demanded."""
        return not (len(self.linked) or self.apart.nnz or (self.known >= 0).any())

    @property
    def linked(self) -> IntArray:
        """Points of components of two or more, shape (n_linked,), rising."""
        return np.flatnonzero(np.bincount(self.component)[self.component] > 1)

    def describe(self) -> dict[str, int]:
        """Counts: points in must-link components, apart groups and points of known label."""
        return {
            "must_linked_points": len(self.linked),
            "apart_groups": int((np.bincount(self.apart.indices, minlength=1) > 1).sum()),
            "known_labels": int((self.known[self.component] >= 0).sum()),
        }

    def must_links(self) -> tuple[IntArray, IntArray]:
        """A chain through each component: pairs of a point and the next one of its component.

        Returns
        -------
        point, following : ndarray of shape (n_linked - n_linked_components,)
        """
        linked = self.linked
        order = linked[np.argsort(self.component[linked], kind="stable")]
        same = self.component[order[1:]] == self.component[order[:-1]]
        return order[:-1][same], order[1:][same]

    def are_apart(self, left: IntArray, right: IntArray) -> BoolArray:
        """Whether each pair of points must be in different clusters, shape (n_pairs,)."""
        left, right = self.component[left], self.component[right]
        known_left, known_right = self.known[left], self.known[right]
        apart: BoolArray = (known_left >= 0) & (known_right >= 0) & (known_left != known_right)
        degree = np.diff(self.apart.indptr)
        both = (degree[left] > 0) & (degree[right] > 0) & (left != right)
        asked = np.flatnonzero(both & ~apart)
        for start in range(0, len(asked), _PAIR_BLOCK):
            some = asked[start : start + _PAIR_BLOCK]
            shared = csr_matrix(self.apart[left[some]].multiply(self.apart[right[some]]))
            apart[some] = np.diff(shared.indptr) > 0
        return apart

    def contract(self, labels: IntArray, n_nodes: int) -> Constraints:
        """The constraints of clusters, from those of their members.

        Parameters
        ----------
        labels : ndarray of shape (n_points,), ints from 0
            Cluster of each point; all from 0 to n_nodes - 1 occur.
        n_nodes : int
            Number of clusters.
        """
        n_all = n_nodes + self.n_components
        ends = labels, n_nodes + self.component
        joins = csr_matrix((np.ones(self.n_points, dtype=np.int8), ends), (n_all, n_all))
        joined = connected_components(joins, directed=False)[1]
        component = number_by_appearance(joined[:n_nodes])
        of_old = np.empty(self.n_components, dtype=np.int64)
        of_old[self.component] = component[labels]
        return self._regroup(component, of_old)

    def renumber(self, new_row: IntArray, n_points: int) -> Constraints:
        """The constraints of another table of rows, such as the same points and new ones.

        Parameters
        ----------
        new_row : ndarray of shape (n_points_before,)
            Row of each point in the new table; -1 if it is not there. What the points of a
            component share is kept if one of them is there.
        n_points : int
            Rows of the new table.
        """
        kept = np.flatnonzero(new_row >= 0)
        raw = self.n_components + np.arange(n_points)
        raw[new_row[kept]] = self.component[kept]
        component = number_by_appearance(raw)
        of_old = np.full(self.n_components, -1)
        of_old[self.component[kept]] = component[new_row[kept]]
        return self._regroup(component, of_old)

    def cut(self, members: IntArray, n_nodes: int) -> Constraints:
        """The constraints of some points, and of nodes after them of which nothing is known.

        Parameters
        ----------
        members : ndarray of shape (n_members,)
        n_nodes : int
            At least n_members.
        """
        new_row = np.full(self.n_points, -1)
        new_row[members] = np.arange(len(members))
        return self.renumber(new_row, n_nodes)

    def _regroup(self, component: IntArray, of_old: IntArray) -> Constraints:
        """Constraints of new components, each of the old ones that `of_old` gives; -1 for none."""
        n_components = int(component.max(initial=-1)) + 1
        entries = self.apart.tocoo()
        row = of_old[entries.row]
        there = row >= 0
        ones = np.ones(int(there.sum()), dtype=np.int32)
        apart = csr_matrix(
            (ones, (row[there], entries.col[there])), (n_components, self.apart.shape[1])
        )
        apart.data[:] = 1
        known = np.full(n_components, -1)
        np.maximum.at(known, of_old[of_old >= 0], self.known[of_old >= 0])
        return Constraints(component, apart.astype(np.int8), known)

    def count_broken(self, labels: npt.NDArray[Any]) -> dict[str, int]:
        """What a partition breaks.

        Parameters
        ----------
        labels : ndarray of shape (n_points,)

        Returns
        -------
        broken : dict
            ``together``: components that are in several clusters. ``apart``: clusters that hold two
            points that must be apart.
        """
        cluster = np.unique(labels, return_inverse=True)[1]
        pairs = np.unique(np.stack([self.component, cluster]), axis=1)
        parted = (np.bincount(pairs[0]) > 1).sum()
        return {"together": int(parted), "apart": len(self.find_mixed(cluster))}

    def find_mixed(self, labels: IntArray) -> IntArray:
        """Clusters that hold two points that must be apart, shape (n_mixed,), rising.

        Parameters
        ----------
        labels : ndarray of shape (n_points,), ints from 0
        """
        degree = np.diff(self.apart.indptr)
        asked = np.flatnonzero((degree[self.component] > 0) | (self.known[self.component] >= 0))
        pairs = np.unique(np.stack([labels[asked], self.component[asked]]), axis=1)
        cluster, component = pairs
        rows, groups = expand_rows(self.apart, component)
        key = np.sort(cluster[rows] * max(self.apart.shape[1], 1) + groups)
        repeated = key[1:][key[1:] == key[:-1]] // max(self.apart.shape[1], 1)
        labelled = self.known[component] >= 0
        differing = np.unique(
            np.stack([cluster[labelled], self.known[component[labelled]]]), axis=1
        )[0]
        return np.union1d(repeated, differing[1:][differing[1:] == differing[:-1]])

    def digest(self) -> str:
        """A number that differs between different constraints."""
        held = (self.component, self.apart.indptr, self.apart.indices, self.known)
        sums = hashlib.blake2b(digest_size=16)
        for array in held:
            sums.update(np.ascontiguousarray(array, dtype=np.int64).data)
        return sums.hexdigest()

    def to_arrays(self) -> dict[str, Any]:
        """The arrays of a file, for `of_arrays`."""
        return {
            "component": self.component,
            "known": self.known,
            "apart_starts": self.apart.indptr,
            "apart_groups": self.apart.indices,
            "n_groups": np.array(self.apart.shape[1]),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Constraints:
        """The constraints that a file holds."""
        groups, starts = arrays["apart_groups"], arrays["apart_starts"]
        shape = (len(arrays["known"]), int(arrays["n_groups"]))
        apart = csr_matrix((np.ones(len(groups), dtype=np.int8), groups, starts), shape)
        return cls(arrays["component"], apart, arrays["known"])

    def save(self, folder: Path) -> None:
        """Write the constraints into an open run folder."""
        np.savez(folder / CONSTRAINTS_FILE, **self.to_arrays())

    @classmethod
    def load(cls, files: FileList) -> Constraints | None:
        """Read the constraints of an open run folder; None if the run had none."""
        if not (files.folder / CONSTRAINTS_FILE).is_file():
            return None
        path = files.check(CONSTRAINTS_FILE)
        try:
            with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                return cls.of_arrays(arrays)
        except Exception as error:  # zipfile and zlib raise kinds of their own on a damaged file
            raise FileFormatError(
                f"{path} is damaged ({error or type(error).__name__}); run `hilander cluster` again"
            ) from error


def check_fits(constraints: Constraints | None, n_points: int) -> Constraints | None:
    """The constraints, if they demand something; an error if they are of other points."""
    if constraints is None:
        return None
    if constraints.n_points != n_points:
        raise LabelError(
            f"the constraints are of {constraints.n_points:,} points, X has {n_points:,} rows; "
            "build them for these rows"
        )
    return None if constraints.is_empty else constraints


def expand_rows(matrix: csr_matrix, rows: IntArray) -> tuple[IntArray, IntArray]:
    """The entries of some rows of a sparse matrix.

    Parameters
    ----------
    matrix : csr_matrix
    rows : ndarray of shape (n_chosen,)

    Returns
    -------
    place : ndarray of shape (n_entries,)
        Place in `rows` of the row of each entry.
    column : ndarray of shape (n_entries,)
    """
    starts = matrix.indptr.astype(np.int64)
    count = starts[rows + 1] - starts[rows]
    place = np.repeat(np.arange(len(rows)), count)
    at = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
    return place, matrix.indices[starts[rows][place] + at].astype(np.int64)
