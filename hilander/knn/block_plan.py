"""Sizes of the blocks of a search, for a given amount of memory."""

from __future__ import annotations

from dataclasses import dataclass

from hilander.engines.threads import PRODUCT
from hilander.errors import GraphError

_BLOCK = 1024  # rows; the product of two such blocks fits the cache of a core
_SMALLEST_BLOCK = 64  # rows; smaller products are slow
_BATCH = 64  # blocks between two updates of the lists
_GIGABYTE = 1e9  # bytes
_PAIR_BYTES = 14  # a row and a cell, twice while they are concatenated, and their places
_PRODUCT_BYTES = 16  # a number of a product, with its masks and indices


@dataclass(frozen=True)
class BlockPlan:
    """Sizes of the blocks of a search.

    Parameters
    ----------
    block : int
        Rows of a block; a matrix product compares two blocks.
    batch : int
        Blocks compared between two updates of the lists.
    pairs : int
        Pairs of a row and a probed cell that are held at a time.
    product : int
        Numbers that a worker may hold as the result of a matrix product.
    sample : int
        Largest sample from which the centres of cells are learned.
    """

    block: int
    batch: int
    pairs: int
    product: int = PRODUCT
    sample: int = 1 << 30


def plan_blocks(n_rows: int, dim: int, count: int, memory: float | None = None) -> BlockPlan:
    """Choose the sizes of the blocks of a search.

    Parameters
    ----------
    n_rows, dim : int
        Shape of the features.
    count : int
        Length of the lists.
    memory : float, optional
        Bytes that the search may take beyond the features; None for sizes that fit the cache.

    Raises
    ------
    GraphError
        The memory is too small even for the smallest blocks.
    """
    most_pairs = max(64 * n_rows, 1 << 22)
    if memory is None:
        return BlockPlan(_BLOCK, _BATCH, most_pairs)
    lists = list_bytes(n_rows, count)
    least = lists + _work_bytes(_SMALLEST_BLOCK, 1, dim, count) + 12 * n_rows
    if memory < least:
        raise GraphError(
            f"a memory budget of {memory / _GIGABYTE:.3g} GB is too small to search {n_rows} rows "
            f"for {count} neighbours; give at least {least / _GIGABYTE:.3g} GB, or use a smaller k"
        )
    spare = memory - lists
    block, batch = _BLOCK, _BATCH
    while batch > 1 and _work_bytes(block, batch, dim, count) > spare / 2:
        batch //= 2
    while block > _SMALLEST_BLOCK and _work_bytes(block, batch, dim, count) > spare / 2:
        block //= 2
    return BlockPlan(
        block,
        batch,
        pairs=int(min(most_pairs, max(n_rows / 16, spare / 4 / _PAIR_BYTES))),
        product=int(min(PRODUCT, max(_SMALLEST_BLOCK**2, spare / 8 / _PRODUCT_BYTES))),
        sample=int(spare / 4 / (4 * dim)),
    )


def list_bytes(n_rows: int, count: int) -> int:
    """Bytes of the lists and of the graph that is built from them."""
    return n_rows * count * (8 + 12)


def _work_bytes(block: int, batch: int, dim: int, count: int) -> int:
    """Bytes to compare blocks: two products at a time, and a batch of candidates."""
    product = 2 * (6 * block * block + 8 * block * dim)
    # A block returns a few candidates a row. Merging holds them about four times.
    candidates = batch * 2 * block * count * 12
    return product + 4 * candidates
