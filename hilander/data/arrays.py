"""The array types that every stage speaks."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Large enough for fast vector code, small enough (16 MB as float32) to stay out of the way.
_BLOCK_VALUES = 1 << 22


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Cut the rows of a large array into pieces that are worked on one at a time.

    Parameters
    ----------
    n_rows, n_columns : int
        Shape of the array.

    Yields
    ------
    rows : slice
        Consecutive, disjoint, together all rows.
    """
    step = max(1, _BLOCK_VALUES // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
