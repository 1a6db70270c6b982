"""Compare blocks of rows by matrix products and merge the best pairs into the lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from hilander.arrays.row_source import Index32, RowSource
from hilander.engines.threads import Workers
from hilander.knn.nearest_lists import Candidates, NearestLists, best_of_each_row, best_of_matrix
from hilander.knn.search_progress import SearchProgress

_MANY_CANDIDATES = 4  # times the list length; with more candidates a row, a block prunes its own
_MERGE_PARTS = 4  # sets of rows merged in parallel; fixed, so that results do not depend on workers


@dataclass(frozen=True, eq=False)
class Block:
    """Pairs to compare: each row of `left` with each of `right`, for the lists of both.

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
        Blocks compared between two updates of the lists. It changes the result only among equal
        similarities.
    progress : SearchProgress
        Counts the batches; a stored one skips those that are in the lists already.
    """

    source: RowSource
    lists: NearestLists
    workers: Workers
    batch: int = 64
    progress: SearchProgress = field(default_factory=SearchProgress)

    def start(self, groups: Iterable[Index32]) -> Iterator[int]:
        """Fill the lists of each group of rows with the best rows of the same group.

        Groups must not overlap. Yields the number of pairs compared.
        """
        groups = iter(groups)
        while some := list(islice(groups, self.batch)):
            if not self.progress.is_done():
                self.workers.map(self._start_group, some)
                self.progress.note(self.lists)
            yield sum(len(rows) ** 2 for rows in some)

    def join(self, blocks: Iterable[Block]) -> Iterator[int]:
        """Compare the blocks and merge better pairs into the lists of both sides.

        Yields the number of pairs compared.
        """
        blocks = iter(blocks)
        while some := list(islice(blocks, self.batch)):
            if not self.progress.is_done():
                # All blocks of a batch read the same lists: the order of the threads has no effect.
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
        better = cosine > left_floor[:, None]
        better |= cosine > right_floor
        # On the raveled mask: flatnonzero is many times faster than nonzero in two dimensions.
        places = np.flatnonzero(better.ravel())
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
        """Merge candidates into the lists, in parallel for several sets of rows."""
        found = Candidates.gather(parts)
        part = found.row % _MERGE_PARTS
        self.workers.map(
            lambda number: self.lists.merge(found.where(part == number)), range(_MERGE_PARTS)
        )
