"""Arrays that are cut into parts, which the engine holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray
from hilander.sharded.stage_log import StageLog

_ROWS_AT_ONCE = 1 << 16  # rows that `take` gathers before it asks for more


@dataclass(eq=False)
class PartedRows:
    """Rows of unit length, in parts of consecutive rows.

    Parameters
    ----------
    log : StageLog
        Runs the tasks.
    parts : list of Held
        Arrays of shape (n_part, dim), float32.
    starts : ndarray of shape (n_parts + 1,)
        Row at which each part begins, and the number of rows.
    dim : int
    total : ndarray of shape (dim,), float64
        Sum of all rows.
    stage : str
        Under which the tasks are recorded.
    """

    log: StageLog
    parts: list[Any]
    starts: IntArray
    dim: int
    total: npt.NDArray[np.float64]
    stage: str = "prepare"

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return len(self), self.dim

    @property
    def ndim(self) -> int:
        """Number of dimensions, 2."""
        return 2

    @property
    def dtype(self) -> np.dtype[np.float32]:
        """Number type of the rows."""
        return np.dtype(np.float32)

    def cut(self, rows: IntArray) -> Iterator[tuple[int, IntArray]]:
        """Each part that has some of the rising rows, and their places in it."""
        ends = np.searchsorted(rows, self.starts)
        for part in np.flatnonzero(np.diff(ends)).tolist():
            yield part, rows[ends[part] : ends[part + 1]] - self.starts[part]

    def gather(self, rows: IntArray) -> list[Any]:
        """Held arrays that together are some rising rows; for tasks that need rows of others."""
        submit = self.log.engine.submit
        return [
            submit(take_rows, self.parts[part], inside).results[0]
            for part, inside in self.cut(rows)
        ]

    def take(self, rows: npt.NDArray[Any]) -> FloatArray:
        """The rows of these numbers, in their order, shape (n, dim)."""
        wanted, place = np.unique(rows, return_inverse=True)
        found = np.empty((len(wanted), self.dim), dtype=np.float32)
        at = 0
        for start in range(0, len(wanted), _ROWS_AT_ONCE):
            for held in self.gather(wanted[start : start + _ROWS_AT_ONCE]):
                some = self.log.engine.fetch(held)
                found[at : at + len(some)] = some
                at += len(some)
        return found[place]

    def __getitem__(self, rows: Any) -> FloatArray:
        """Rows of a slice or an array of numbers, as a new array."""
        return self.take(np.arange(len(self))[rows] if isinstance(rows, slice) else rows)

    def map_blocks(self, function: Callable[..., Any]) -> Iterator[tuple[slice, Any]]:
        """Apply a function to each part; the results in order."""
        submit = self.log.engine.submit
        sizes = np.diff(self.starts).tolist()
        tasks = self.log.run(
            self.stage,
            (submit(function, one, rows=n) for one, n in zip(self.parts, sizes, strict=True)),
            len(self),
        )
        for number, task in enumerate(tasks):
            rows = slice(int(self.starts[number]), int(self.starts[number + 1]))
            yield rows, self.log.engine.fetch(task.results[0])


def take_rows(part: FloatArray, rows: IntArray) -> FloatArray:
    """Some rows of a part."""
    return np.asarray(part)[rows]
