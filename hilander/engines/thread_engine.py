"""Tasks in threads of this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Any

from hilander.engines.protocol import WORKER_MEMORY, Task, run_measured
from hilander.engines.threads import open_workers
from hilander.errors import SettingError
from hilander.io.memory import parse_memory


class ThreadEngine:
    """Runs tasks in threads; held values stay in the memory of this process.

    Parameters
    ----------
    n_workers : int, optional
        Threads; by default one for each processor.
    worker_memory : str or int
        Memory of a thread, such as "4GB"; partitions are cut so that it is enough.

    Attributes
    ----------
    name : str
    """

    name = "threads"

    def __init__(
        self, n_workers: int | None = None, worker_memory: str | int = WORKER_MEMORY
    ) -> None:
        if n_workers is not None and n_workers < 1:
            raise SettingError(f"n_workers={n_workers} is not a number of threads; use 1 or more")
        self.worker_memory = parse_memory(worker_memory)
        self._n_workers = n_workers or len(os.sched_getaffinity(0))
        self._pool: ThreadPoolExecutor | None = None
        self._limits = ExitStack()

    @property
    def n_workers(self) -> int:
        """Tasks that run at a time."""
        return self._n_workers

    def put(self, value: Any) -> Future[Any]:
        """Hold a value that many tasks read."""
        held: Future[Any] = Future()
        held.set_result(value)
        return held

    def submit(
        self, function: Callable[..., Any], *inputs: Any, n_results: int = 1, rows: int = 0
    ) -> Task:
        """Run a function in a thread; see `Engine.submit`."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_workers)
            # Held until the engine is closed: each task would give the limit back to the others.
            self._limits.enter_context(open_workers(alone=True))
        results: list[Future[Any]] = [Future() for _ in range(n_results + 1)]
        # Threads take tasks in order, so a task waits only for those that have begun.
        self._pool.submit(_run, function, inputs, results)
        return Task(results[:-1], results[-1], rows)

    def fetch(self, held: Future[Any]) -> Any:
        """The value; an error of its task is raised here."""
        return held.result()

    def wait(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        """Wait until some tasks are done; gives those and the others."""
        wait([task.record for task in tasks], return_when=FIRST_COMPLETED)
        done = [task for task in tasks if task.record.done()]
        return done, [task for task in tasks if not task.record.done()]

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
            self._limits.close()


def _run(
    function: Callable[..., Any], inputs: Sequence[Any], results: Sequence[Future[Any]]
) -> None:
    """Run one task and set its results, or its error for each of them."""
    try:
        values = [one.result() if isinstance(one, Future) else one for one in inputs]
        found = run_measured(function, len(results) - 1, values)
    except BaseException as error:
        for result in results:
            result.set_exception(error)
        return
    for result, value in zip(results, found, strict=True):
        result.set_result(value)
