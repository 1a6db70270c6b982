"""Progress of a run: items, rate and time left, on a terminal only."""

from __future__ import annotations

from time import perf_counter
from types import TracebackType
from typing import Self

from tqdm import tqdm


class Progress:
    """A progress bar on standard error, as a context manager. It measures the time too.

    Parameters
    ----------
    total : int
    unit : str
        What is counted, in the plural.
    shown : bool
        Show it, if standard error is a terminal.
    """

    def __init__(self, total: int, unit: str, *, shown: bool) -> None:
        self.seconds = 0.0
        hide = None if shown and total else True  # None: hidden unless on a terminal
        self._bar = tqdm(
            total=total, desc="embed", unit=f" {unit}", disable=hide, mininterval=0.5, smoothing=0.1
        )

    def __enter__(self) -> Self:
        self._start = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.seconds = perf_counter() - self._start
        self._bar.close()

    def step(self, n_items: int = 1) -> None:
        """Count items."""
        self._bar.update(n_items)
