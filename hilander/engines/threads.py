"""Threads for work that numpy does outside the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

PRODUCT = 1 << 21


class Workers:
    """Run a function over items, in threads where there are several, results in the items' order.

    Parameters
    ----------
    pool : ThreadPoolExecutor or None
        None for work in the calling thread.
    product : int
        Numbers that one worker may hold as the result of a matrix product.
    """

    def __init__(self, pool: ThreadPoolExecutor | None = None, product: int = PRODUCT) -> None:
        self._pool = pool
        self.product = product

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Results of the function, in the order of the items."""
        if self._pool is None:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))


@contextmanager
def open_workers(*, alone: bool = False, product: int = PRODUCT) -> Iterator[Workers]:
    """As many workers as the matrix products would use threads, each product in one thread.

    Products of cache-sized blocks gain little from a second thread, and what is done with them
    between two products gains nothing; whole blocks side by side keep every core busy. It also
    makes the numbers independent of how many threads there are.

    Parameters
    ----------
    alone : bool
        Work in the calling thread, for inputs too small to be worth a second one.
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
    # Looking for the loaded libraries takes milliseconds, so it is done once.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
