"""Exact search: every pair of rows once, by blocked matrix product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hilander.arrays.row_source import Index32
from hilander.knn.block_join import Block, Joiner


def search_exactly(joiner: Joiner, block: int) -> Iterator[int]:
    """Fill the lists of the joiner with the most similar rows of each row.

    The product of two blocks updates the rows of both, so each pair is computed once.

    Parameters
    ----------
    joiner : Joiner
    block : int
        Rows of a block.

    Yields
    ------
    done : int
        Pairs compared since the previous yield, of about `n_exact_pairs`.
    """
    rows = cut_rows(np.arange(len(joiner.source), dtype=np.int32), block)
    yield from joiner.start(rows)
    yield from joiner.join(pairs_of_blocks(rows))


def n_exact_pairs(n_rows: int, block: int) -> int:
    """Number of pairs that `search_exactly` compares; those within a block count twice."""
    return n_rows * (n_rows + min(n_rows, block)) // 2


def cut_rows(rows: Index32, block: int) -> list[Index32]:
    """Cut rows into nearly equal blocks of at most `block` rows."""
    return np.array_split(rows, -(-len(rows) // block)) if len(rows) else []


def pairs_of_blocks(rows: list[Index32]) -> Iterator[Block]:
    """Every pair of blocks once, neighbouring blocks first.

    In this order all lists fill at the same rate, which keeps the number of candidates small.
    """
    for offset in range(1, len(rows)):
        for first in range(len(rows) - offset):
            yield Block(rows[first], rows[first + offset])
