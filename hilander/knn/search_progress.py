"""How far a search has come: a long one can be kept on disk and taken up again."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

from hilander.io.writing import write_atomically
from hilander.knn.nearest_lists import NearestLists

_SELDOM = 20  # keeping may take a twentieth of the time


class SearchProgress:
    """Counts the batches of a search. This one keeps nothing and so takes up nothing."""

    def __init__(self) -> None:
        self._begun = 0
        self._known = 0

    def restore(self, lists: NearestLists) -> None:
        """Fill the lists with what an earlier search of the same kind has found."""

    def is_known(self) -> bool:
        """Begin the next batch; whether what it would find is in the lists already."""
        self._begun += 1
        return self._begun <= self._known

    def note(self, lists: NearestLists) -> None:
        """Note that the batch which was begun last is in the lists."""


class KeptSearch(SearchProgress):
    """Keeps the lists in a file now and then.

    A search does the same batches in the same order whenever it is given the same rows, k, memory
    and seed, and what a batch finds depends on the lists alone. So a search that starts with kept
    lists and leaves out the batches in them ends as if it had never been interrupted.

    Parameters
    ----------
    path : Path
        Written whole or not at all. Whoever gives it sees to it that it is of the same search.
    every : float
        Seconds between two times, at least.
    """

    def __init__(self, path: Path, every: float = 30.0) -> None:
        super().__init__()
        self.path, self._every, self._last = path, every, perf_counter()

    def restore(self, lists: NearestLists) -> None:
        """Fill the lists with what an earlier search of the same kind has found."""
        if not self.path.is_file():
            return
        try:
            with open(self.path, "rb") as stream, np.load(stream, allow_pickle=False) as kept:
                value, column, known = kept["value"], kept["column"], int(kept["known"])
        except Exception:  # damaged: zipfile and zlib raise kinds of their own; search anew
            return
        if value.shape == lists.value.shape == column.shape:
            lists.value[:], lists.column[:] = value, column
            self._known = known

    def note(self, lists: NearestLists) -> None:
        """Keep the lists if it is time to."""
        start = perf_counter()
        if start - self._last < self._every:
            return
        with write_atomically(self.path) as temporary, open(temporary, "wb") as stream:
            np.savez(stream, value=lists.value, column=lists.column, known=self._begun)
        self._last = perf_counter()
        self._every = max(self._every, _SELDOM * (self._last - start))
