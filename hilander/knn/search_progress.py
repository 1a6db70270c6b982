"""Progress of a search: a long one can be stored on disk and continued later."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import numpy as np

from hilander.io.writing import write_atomically
from hilander.knn.nearest_lists import NearestLists

_STORING_SHARE = 20  # storing may take one twentieth of the time


class SearchProgress:
    """Counts the batches of a search. This base class stores nothing."""

    def __init__(self) -> None:
        self._n_begun = 0
        self._n_stored = 0

    def restore(self, lists: NearestLists) -> None:
        """Fill the lists from an earlier search with the same arguments, if there is one."""

    def is_done(self) -> bool:
        """Begin the next batch; True if the restored lists include its result."""
        self._n_begun += 1
        return self._n_begun <= self._n_stored

    def note(self, lists: NearestLists) -> None:
        """Record that the batch begun last has been merged into the lists."""


class StoredSearch(SearchProgress):
    """Stores the lists in a file at intervals.

    With the same rows, k, memory and seed a search does the same batches in the same order, and the
    result of a batch depends on the lists alone. So a search that starts with stored lists and
    skips the batches in them gives the same graph as one without an interruption.

    Parameters
    ----------
    path : Path
        Written atomically. The caller makes sure that it belongs to the same search.
    every : float
        Least number of seconds between two writes.
    """

    def __init__(self, path: Path, every: float = 30.0) -> None:
        super().__init__()
        self.path, self._every, self._last = path, every, perf_counter()

    def restore(self, lists: NearestLists) -> None:
        """Fill the lists from an earlier search with the same arguments, if there is one."""
        if not self.path.is_file():
            return
        try:
            with open(self.path, "rb") as stream, np.load(stream, allow_pickle=False) as kept:
                value, column, n_stored = kept["value"], kept["column"], int(kept["known"])
        except Exception:  # a damaged file raises errors of zipfile and zlib too: start again
            return
        if value.shape == lists.value.shape == column.shape:
            lists.value[:], lists.column[:] = value, column
            self._n_stored = n_stored

    def note(self, lists: NearestLists) -> None:
        """Store the lists if `every` seconds have passed."""
        start = perf_counter()
        if start - self._last < self._every:
            return
        with write_atomically(self.path) as temporary, open(temporary, "wb") as stream:
            np.savez(stream, value=lists.value, column=lists.column, known=self._n_begun)
        self._last = perf_counter()
        self._every = max(self._every, _STORING_SHARE * (self._last - start))
