"""Exact search: every pair of rows once, by blocked matrix product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hilander.arrays.row_source import Index32
from hilander.knn.block_join import Block, Joiner


def search_exactly(joiner: Joiner, block: int) -> Iterator[int]:
    """Fill the lists of the joiner with the most similar rows of each row.

    A product of two blocks serves the rows of both, so each pair is computed once.

    Parameters
    ----------
    joiner : Joiner
    block : int
        Rows of a block.

    Yields
    ------
    done : int
        Pairs compared since the last time, of about `n_exact_pairs`.
    """
    rows = cut_rows(np.arange(len(joiner.source), dtype=np.int32), block)
    yield from joiner.start(rows)
    yield from joiner.join(pairs_of_blocks(rows))


def n_exact_pairs(n_rows: int, block: int) -> int:
    """Pairs that `search_exactly` compares, within a block twice."""
    return n_rows * (n_rows + min(n_rows, block)) // 2


def cut_rows(rows: Index32, block: int) -> list[Index32]:
    """Cut rows into nearly equal pieces of at most `block`."""
    return np.array_split(rows, -(-len(rows) // block)) if len(rows) else []


def pairs_of_blocks(rows: list[Index32]) -> Iterator[Block]:
    """Every two of the pieces once, near ones first.

    Row by row the lists of all pieces grow together, which keeps the candidates few.
    """
    for offset in range(1, len(rows)):
        for first in range(len(rows) - offset):
            yield Block(rows[first], rows[first + offset])
