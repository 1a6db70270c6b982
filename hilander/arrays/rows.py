"""Array types, blocks of rows, and unit rows."""

import contextlib
import mmap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Values of a block: 16 MB as float32, large enough for fast vector code.
_BLOCK_VALUES = 1 << 22


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut the rows of a large array into blocks.

    Parameters
    ----------
    n_rows, n_columns : int
        Shape of the array.

    Yields
    ------
    rows : slice
        Consecutive and disjoint; together they cover all rows.
    """
    step = max(1, _BLOCK_VALUES // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def map_row_blocks(
    function: Callable[[npt.NDArray[Any]], Any], X: npt.NDArray[Any], n_columns: int
) -> Iterator[tuple[slice, Any]]:
    """Apply a function to the rows of a large array, block by block and in order.

    Parameters
    ----------
    function : callable
        Of a module, or a partial of one. It gets the rows as they are stored.
    X : ndarray of shape (n_rows, dim), also a mapped file, or rows that other processes hold
        The latter apply the function where the rows are; the blocks are their own then.
    n_columns : int
        Numbers of a row that a block has to hold.

    Yields
    ------
    rows : slice
    result : what the function gave
    """
    if is_remote(X):
        yield from X.map_blocks(function)  # type: ignore[attr-defined]
        return
    for rows in row_blocks(len(X), n_columns):
        yield rows, function(X[rows])
        drop_pages(X)


def place_rows(X: Any, rows: IntArray) -> IntArray:
    """Numbers of the rows of the blocks of `map_row_blocks`, where those are in another order."""
    rank = getattr(X, "rank", None)
    return rows if rank is None else rank[rows]


def is_remote(X: Any) -> bool:
    """Whether the rows are held by other processes, see `hilander.sharded`."""
    return hasattr(X, "map_blocks")


def read_rows(X: npt.NDArray[Any], rows: slice) -> FloatArray:
    """Rows of an array of any number type, as float32.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    rows : slice

    Returns
    -------
    block : ndarray of shape (len(rows), n_columns), float32
        A view if the array is float32 already.
    """
    return np.asarray(X[rows], dtype=np.float32)


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Rows of unit length; a zero row stays zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: FloatArray = vectors / np.maximum(length, np.float32(1e-12))
    return unit


def exact_unit_rows(block: FloatArray) -> npt.NDArray[np.float64]:
    """Rows of unit length in float64; in float32 squares could overflow or underflow."""
    unit = block.astype(np.float64)
    unit /= np.sqrt(np.einsum("ij,ij->i", unit, unit))[:, None]
    return unit


def sort_by_group(groups: npt.NDArray[Any], n_groups: int) -> tuple[IntArray, IntArray]:
    """Sort entries by group: their places, group by group, and where each group begins.

    Parameters
    ----------
    groups : ndarray of shape (n_entries,), ints from 0
        16-bit integers are sorted in linear time.
    n_groups : int

    Returns
    -------
    places : ndarray of shape (n_entries,)
    starts : ndarray of shape (n_groups + 1,)
    """
    sizes = np.bincount(groups, minlength=n_groups)
    return np.argsort(groups, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])


def drop_pages(X: npt.NDArray[Any]) -> None:
    """Release the memory of the pages of a mapped file that were read.

    Without it, reading a mapped file block by block counts the whole file as memory of the process.
    It does nothing to an array that is not mapped, or that is mapped with private changes.

    Parameters
    ----------
    X : ndarray
    """
    owner = _owner(X)
    if isinstance(owner, mmap.mmap) and hasattr(owner, "madvise"):
        with contextlib.suppress(OSError, ValueError):
            owner.madvise(mmap.MADV_DONTNEED)


def is_mapped(X: npt.NDArray[Any]) -> bool:
    """Whether an array is a mapped file, whose pages are in memory only while they are read."""
    return isinstance(_owner(X), mmap.mmap)


def _owner(X: npt.NDArray[Any]) -> Any:
    """The owner of the memory of an array; None for its own or a private mapping of a file."""
    owner: Any = getattr(X, "base", None) if hasattr(X, "order") else X  # of ReorderedRows
    while isinstance(owner, np.ndarray):
        if getattr(owner, "mode", "r") == "c":
            return None
        owner = owner.base
    return owner
