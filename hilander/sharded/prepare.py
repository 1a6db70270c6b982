"""Preparation of the points of a sharded run, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray
from hilander.embeddings.preparation import Preparation
from hilander.sharded.parted import PartedRows
from hilander.sharded.points import Piece, ShardedPoints


def prepare_points(points: ShardedPoints, preparation: Preparation) -> PartedRows:
    """Prepare all points; the pieces stay with the engine, in the order of the input."""
    log = points.log
    held = log.engine.put(preparation)

    def submit() -> Iterator[Any]:
        for piece in points.pieces:
            yield log.engine.submit(_prepare_piece, held, piece, n_results=2, rows=len(piece))

    tasks = log.run("prepare", submit(), len(points))
    total = np.zeros(points.shape[1])
    for task in tasks:
        total += log.engine.fetch(task.results[1])
    parts = [task.results[0] for task in tasks]
    return PartedRows(log, parts, points.starts, points.shape[1], total)


def _prepare_piece(
    preparation: Preparation, piece: Piece
) -> tuple[FloatArray, npt.NDArray[np.float64]]:
    rows = preparation.apply(piece.read())
    return rows, rows.sum(axis=0, dtype=np.float64)
