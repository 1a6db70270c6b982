"""Exact search on GPUs, if the installed faiss supports them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hilander.arrays.row_source import RowSource
from hilander.knn.nearest_lists import NearestLists

_LONGEST_LIST = 2_048  # neighbours; the limit of faiss on a GPU
_BLOCK = 16_384  # rows of a query; bounds memory


def can_search_on_gpu(count: int) -> bool:
    """Whether faiss has a GPU that can find `count` neighbours."""
    import faiss

    count_gpus = getattr(faiss, "get_num_gpus", None)
    return count_gpus is not None and count_gpus() > 0 and count < _LONGEST_LIST


def search_on_gpu(source: RowSource, lists: NearestLists) -> Iterator[int]:
    """Fill the lists with the most similar rows of each row.

    Yields
    ------
    done : int
        Rows done since the previous yield.

    Raises
    ------
    RuntimeError
        From faiss: the rows do not fit the memory of the GPUs.
    """
    import faiss

    index: Any = faiss.index_cpu_to_all_gpus(faiss.IndexFlatIP(source.dim))
    starts = range(0, len(source), _BLOCK)
    for start in starts:
        index.add(np.ascontiguousarray(source.block(start, min(start + _BLOCK, len(source)))))
    for start in starts:
        rows = np.arange(start, min(start + _BLOCK, len(source)))
        points = np.ascontiguousarray(source.block(start, rows[-1] + 1))
        value, column = index.search(points, lists.count + 1)
        itself = column == rows[:, None]
        itself[~itself.any(axis=1), -1] = (
            True  # among many equal rows the row itself may be missing
        )
        lists.value[rows] = value[~itself].reshape(len(rows), -1)
        lists.column[rows] = column[~itself].reshape(len(rows), -1)
        yield len(rows)
