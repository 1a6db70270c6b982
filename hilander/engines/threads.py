"""Threads for numpy code that releases the global interpreter lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PRODUCT = 1 << 21  # numbers of a matrix product that one worker holds by default; fits the cache


class Workers:
    """Apply a function to items, in parallel if there are several threads.

    Parameters
    ----------
    pool : ThreadPoolExecutor or None
        None to work in the calling thread.
    product : int
        Numbers that one worker may hold as the result of a matrix product.
    """

    def __init__(self, pool: ThreadPoolExecutor | None = None, product: int = PRODUCT) -> None:
        self._pool = pool
        self.product = product

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Results of the function in the order of the items."""
        if self._pool is None:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))


@contextmanager
def open_workers(*, alone: bool = False, product: int = PRODUCT) -> Iterator[Workers]:
    """Open as many workers as BLAS has threads, and limit BLAS to one thread each.

    Products of blocks that fit the cache gain little from a second thread, and the code between
    two products gains nothing. Whole blocks in parallel keep every core busy. The results do not
    depend on the number of threads.

    Parameters
    ----------
    alone : bool
        Work in the calling thread, for small inputs.
    product : int
        Numbers that one worker may hold as the result of a matrix product.
    """
    controller = _blas_controller()
    n_threads = max((info["num_threads"] for info in controller.info()), default=1)
    with controller.limit(limits=1):
        if alone or n_threads == 1:
            yield Workers(None, product)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            yield Workers(pool, product)


@cache
def _blas_controller() -> Any:
    # Finding the loaded libraries takes milliseconds, so it is done once.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
