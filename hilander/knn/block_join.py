"""All pairs of two sets of rows by one matrix product; only the promising are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from hilander.arrays.row_source import Index32, RowSource
from hilander.engines.threads import Workers
from hilander.knn.nearest_lists import Candidates, NearestLists, best_of_each_row, best_of_matrix
from hilander.knn.search_progress import SearchProgress

# Beyond this many candidates a row, a block prunes its own before it hands them on.
_MANY_CANDIDATES = 4
# Ranges of rows that are merged side by side; a number of its own, so that results do not
# depend on the number of workers.
_MERGE_PARTS = 4


@dataclass(frozen=True, eq=False)
class Block:
    """Pairs to be looked at: each of `left` with each of `right`, for the lists of both.

    Parameters
    ----------
    left, right : ndarray of row numbers, int32
    """

    left: Index32
    right: Index32


@dataclass(frozen=True, eq=False)
class Joiner:
    """Compares blocks of rows and keeps the best of each row.

    Parameters
    ----------
    source : RowSource
    lists : NearestLists of as many rows
    workers : Workers
    batch : int
        Blocks compared between two updates of the lists. The result depends on it only where
        similarities are equal.
    progress : SearchProgress
        Knows which batches are in the lists from an earlier search.
    """

    source: RowSource
    lists: NearestLists
    workers: Workers
    batch: int = 64
    progress: SearchProgress = field(default_factory=SearchProgress)

    def start(self, groups: Iterable[Index32]) -> Iterator[int]:
        """Begin the lists of each group of rows with the best of the group itself.

        Groups must not overlap. Yields the number of pairs compared.
        """
        groups = iter(groups)
        while some := list(islice(groups, self.batch)):
            if not self.progress.is_known():
                self.workers.map(self._start_group, some)
                self.progress.note(self.lists)
            yield sum(len(rows) ** 2 for rows in some)

    def join(self, blocks: Iterable[Block]) -> Iterator[int]:
        """Compare the blocks and take what is better into the lists of both sides.

        Yields the number of pairs compared.
        """
        blocks = iter(blocks)
        while some := list(islice(blocks, self.batch)):
            if not self.progress.is_known():
                # All of a batch see the same lists: who is quicker must not matter.
                self.merge(self.workers.map(self._compare, some))
                self.progress.note(self.lists)
            yield sum(len(block.left) * len(block.right) for block in some)

    def _start_group(self, rows: Index32) -> None:
        points = self.source.take(rows)
        cosine = points @ points.T
        np.fill_diagonal(cosine, -np.inf)
        count = min(self.lists.count, len(rows) - 1)
        if count < 1:
            return
        best = best_of_matrix(cosine, count)
        value = np.take_along_axis(cosine, best, axis=1)
        order = np.argsort(-value, axis=1, kind="stable")
        self.lists.value[rows, :count] = np.take_along_axis(value, order, axis=1)
        self.lists.column[rows, :count] = rows[np.take_along_axis(best, order, axis=1)]

    def _compare(self, block: Block) -> Candidates:
        cosine = self.source.take(block.left) @ self.source.take(block.right).T
        floor = self.lists.floor
        left_floor, right_floor = floor[block.left], floor[block.right]
        promising = cosine > left_floor[:, None]
        promising |= cosine > right_floor
        # Of the raveled mask: numpy finds what is true in one dimension many times faster.
        places = np.flatnonzero(promising.ravel())
        left, right = np.divmod(places, len(block.right))
        value = cosine.ravel()[places]
        for_left, for_right = value > left_floor[left], value > right_floor[right]
        left_row, right_row = block.left[left], block.right[right]
        found = Candidates(
            np.concatenate([left_row[for_left], right_row[for_right]]),
            np.concatenate([right_row[for_left], left_row[for_right]]),
            np.concatenate([value[for_left], value[for_right]]),
        )
        most = _MANY_CANDIDATES * self.lists.count * (len(block.left) + len(block.right))
        if len(found) > most:
            return found.where(best_of_each_row(found, self.lists.count))
        return found

    def merge(self, parts: list[Candidates]) -> None:
        """Take candidates into the lists, side by side for several ranges of rows."""
        found = Candidates.gather(parts)
        part = found.row % _MERGE_PARTS
        self.workers.map(
            lambda number: self.lists.merge(found.where(part == number)), range(_MERGE_PARTS)
        )
