"""The points of a run before preparation: pieces of shards, read by the workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.embeddings.canonical_order import invert_order
from hilander.embeddings.validation import as_embeddings
from hilander.errors import EmbeddingError, FileFormatError, HiLanderError
from hilander.io.shards import Shard, reading
from hilander.sharded.arrays import ArrayShard
from hilander.sharded.stage_log import StageLog


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows of a shard.

    Parameters
    ----------
    shard : Shard or ArrayShard
    start, stop : int
        Rows of the shard.
    first : int
        Number of the first row in the whole set.
    dtype : str
        In which rows are given, one for all shards.
    chosen : ndarray of shape (n_chosen,), optional
        Rows of the piece that are used; None for all.
    """

    shard: Shard | ArrayShard
    start: int
    stop: int
    first: int
    dtype: str
    chosen: IntArray | None = None

    def __len__(self) -> int:
        return self.stop - self.start if self.chosen is None else len(self.chosen)

    def read(self) -> npt.NDArray[Any]:
        """The rows, shape (n_rows, dim)."""
        rows = self.shard.read(self.start, self.stop).astype(self.dtype, copy=False)
        return rows if self.chosen is None else rows[self.chosen]


class ShardedPoints:
    """Reads like an array of shape (n_points, dim); `map_blocks` works where the rows are read.

    Parameters
    ----------
    log : StageLog
    pieces : list of Piece
        Not empty.
    """

    def __init__(self, log: StageLog, pieces: list[Piece]) -> None:
        self.log, self.pieces = log, [one for one in pieces if len(one)]
        self.starts = np.concatenate([[0], np.cumsum([len(one) for one in self.pieces])])
        self.shape = int(self.starts[-1]), self.pieces[0].shard.dim
        self.dtype, self.ndim = np.dtype(self.pieces[0].dtype), 2
        self._known: dict[Any, list[Any]] = {}

    @classmethod
    def of_shards(cls, log: StageLog, shards: list[Any]) -> ShardedPoints:
        """The pieces of all shards, in order."""
        dtype = np.result_type(*{one.dtype for one in shards}).str
        pieces, first = [], 0
        for shard in shards:
            for start, stop in shard.pieces():
                pieces.append(Piece(shard, start, stop, first + start, dtype))
            first += shard.n_rows
        return cls(log, pieces)

    def __len__(self) -> int:
        return self.shape[0]

    def check(self) -> None:
        """Read all rows once; the first error names the shard and its row."""
        self.digest  # noqa: B018

    @cached_property
    def digest(self) -> str:
        """Digest of all rows, which are checked when they are first read for it."""
        found = [one for _, one in self.map_blocks(_accept, of_piece=check_piece)]
        text = f"{self.dtype.str}{self.shape}{''.join(found)}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def map_blocks(
        self, function: Callable[..., Any], *, of_piece: Callable[..., Any] | None = None
    ) -> Iterator[tuple[slice, Any]]:
        """Apply a function to the rows of each piece; the results in order.

        A function of a module, which depends on the rows alone, is applied only once.
        """
        if function not in self._known:
            submit, work = self.log.engine.submit, of_piece or partial(_apply, function)
            tasks = self.log.run(
                "prepare", (submit(work, one, rows=len(one)) for one in self.pieces), len(self)
            )
            found = [self.log.engine.fetch(task.results[0]) for task in tasks]
            if isinstance(function, partial):
                yield from zip(self.slices(), found, strict=True)
                return
            self._known[function] = found
        yield from zip(self.slices(), self._known[function], strict=True)

    def slices(self) -> Iterator[slice]:
        """Rows of each piece."""
        for start, stop in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            yield slice(start, stop)

    def select(self, rows: IntArray) -> ShardedPoints:
        """Some rising rows, without reading them."""
        ends = np.searchsorted(rows, self.starts)
        pieces = []
        for number, piece in enumerate(self.pieces):
            chosen = rows[ends[number] : ends[number + 1]] - self.starts[number]
            if piece.chosen is not None:
                chosen = piece.chosen[chosen]
            pieces.append(replace(piece, chosen=chosen))
        return ShardedPoints(self.log, pieces)

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        """Rows of a slice or an array of numbers, as a new array."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        wanted, place = np.unique(np.asarray(rows), return_inverse=True)
        ends = np.searchsorted(wanted, self.starts)
        held = [
            self.log.engine.submit(
                _read_some, self.pieces[at], wanted[ends[at] : ends[at + 1]] - self.starts[at]
            ).results[0]
            for at in np.flatnonzero(np.diff(ends)).tolist()
        ]
        parts = [self.log.engine.fetch(one) for one in held]
        empty = np.empty((0, self.shape[1]), dtype=self.dtype)
        return np.concatenate([empty, *parts])[place]


class SortedPoints:
    """Points in another order: rows are gathered in it, and blocks are those of the pieces.

    Parameters
    ----------
    base : ShardedPoints
    order : ndarray of shape (n_points,)
        Row of `base` that has each place.

    Attributes
    ----------
    rank : ndarray of shape (n_points,)
        Place of each row of `base`.
    """

    def __init__(self, base: ShardedPoints, order: IntArray) -> None:
        self.base, self.order, self.rank = base, order, invert_order(order)
        self.shape, self.dtype, self.ndim = base.shape, base.dtype, base.ndim
        self.map_blocks = base.map_blocks

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, rows: Any) -> npt.NDArray[Any]:
        """Rows of a slice or an array of numbers, as a new array."""
        return self.base[self.order[rows]]


def check_piece(piece: Piece) -> str:
    """Refuse a piece whose rows are not embeddings; the error names its shard.

    Returns
    -------
    digest : str
        Of the rows.
    """
    path = piece.shard.path
    with reading(path):
        rows = piece.read()
        if rows.shape != (len(piece), piece.shard.dim):
            raise EmbeddingError(
                f"rows {piece.start} to {piece.stop} have the shape {rows.shape}, expected "
                f"{(len(piece), piece.shard.dim)}; write it again"
            )
        try:
            as_embeddings(rows, as_stored=True, name=f"rows from {piece.start}:")
        except HiLanderError as error:
            raise FileFormatError(f"{path}: {error}") from None
        zero = np.flatnonzero(~rows.any(axis=1))
        if len(zero):
            raise EmbeddingError(
                f"row {piece.start + int(zero[0])} is all zeros, expected a direction; drop it"
            )
    return hashlib.blake2b(
        np.ascontiguousarray(rows).view(np.uint8).data, digest_size=16
    ).hexdigest()


def _accept(rows: npt.NDArray[Any]) -> None:
    """Stands for `check_piece` among the functions that were applied."""


def _apply(function: Callable[[npt.NDArray[Any]], Any], piece: Piece) -> Any:
    return function(piece.read())


def _read_some(piece: Piece, rows: IntArray) -> npt.NDArray[Any]:
    return piece.read()[rows]
