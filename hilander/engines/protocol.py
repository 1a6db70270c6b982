"""Where tasks run: the protocol of an engine, and what a task took.

A task is a function of a module and its inputs. Its results stay where they were computed, until
another task needs them or they are fetched. Nobody but the engine asks where that is.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from hilander.engines.threads import open_workers

WORKER_MEMORY = "4GB"  # of a worker, by default
_KILOBYTE = 1024  # unit of the peaks that the system reports


class Held(Protocol):
    """A value that the engine holds; given to a task, the task gets the value itself."""


@dataclass(frozen=True)
class TaskRecord:
    """What one task took.

    Parameters
    ----------
    worker : str
        Host and process.
    seconds : float
    moved : int
        Bytes of the arrays that it read from the engine and returned to it.
    peak : int
        Highest memory of its process while it ran, in bytes.
    cpu : float
        Seconds of a processor, which other programs of the machine do not change.
    """

    worker: str
    seconds: float
    moved: int
    peak: int
    cpu: float = 0.0


@dataclass(frozen=True, eq=False)
class Task:
    """A task that was submitted.

    Parameters
    ----------
    results : sequence of Held
    record : Held
        Its `TaskRecord`.
    rows : int
        Rows that it treats, for the progress.
    """

    results: Sequence[Any]
    record: Any
    rows: int = 0


class Engine(Protocol):
    """Runs tasks.

    Attributes
    ----------
    name : str
    n_workers : int
        Tasks that run at a time.
    worker_memory : int
        Bytes that a task may use; partitions are cut so that it is enough.
    """

    name: str
    worker_memory: int

    @property
    def n_workers(self) -> int:
        """Tasks that run at a time."""

    def put(self, value: Any) -> Any:
        """Hold a value that many tasks read."""

    def submit(
        self, function: Callable[..., Any], *inputs: Any, n_results: int = 1, rows: int = 0
    ) -> Task:
        """Run a function as soon as there is a worker and its inputs are there.

        Parameters
        ----------
        function : callable
            Of a module. It gives one result, or a tuple of `n_results`.
        *inputs
            Held values and plain ones. Lists are not searched for held values.
        n_results : int
        rows : int
        """

    def fetch(self, held: Any) -> Any:
        """The value; an error of its task is raised here."""

    def wait(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        """Wait until some tasks are done; gives those and the others."""

    def close(self) -> None:
        """End what the engine started."""


def run_tasks(
    engine: Engine, tasks: Iterable[Task], *, ahead: int | None = None
) -> Iterator[tuple[Task, TaskRecord]]:
    """Run tasks and give each when it is done, with what it took.

    Parameters
    ----------
    engine : Engine
    tasks : iterable of Task
        Submitted when the iterable is read, so that few are under way at a time.
    ahead : int, optional
        Tasks that are submitted and not done; by default two for each worker.
    """
    most = ahead or 2 * engine.n_workers
    waiting: list[Task] = []
    for task in tasks:
        waiting.append(task)
        while len(waiting) >= most:
            done, waiting = engine.wait(waiting)
            yield from ((one, engine.fetch(one.record)) for one in done)
    while waiting:
        done, waiting = engine.wait(waiting)
        yield from ((one, engine.fetch(one.record)) for one in done)


def run_measured(function: Callable[..., Any], n_results: int, inputs: Sequence[Any]) -> Any:
    """Run a task in this thread: its results, and its record as the last one."""
    _reset_peak()
    start, used = time.perf_counter(), time.thread_time()
    with open_workers(alone=True):  # one thread for BLAS: the same digits everywhere
        found = function(*inputs)
    results = (found,) if n_results == 1 else tuple(found)
    worker = f"{socket.gethostname()}:{os.getpid()}:{threading.get_ident() % 1_000_000}"
    moved = sum(_count_bytes(one) for one in (*inputs, *results))
    seconds, cpu = time.perf_counter() - start, time.thread_time() - used
    record = TaskRecord(worker, seconds, moved, read_peak(), cpu)
    return (*results, record)


def _count_bytes(value: Any) -> int:
    """Bytes of an array, or of the arrays of a value."""
    if isinstance(value, list | tuple):
        return sum(map(_count_bytes, value))
    if hasattr(value, "__dataclass_fields__"):
        return sum(_count_bytes(getattr(value, name)) for name in value.__dataclass_fields__)
    return int(getattr(value, "nbytes", 0))


def _reset_peak() -> None:
    """Let the system measure the peak of the process anew, where it can."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")


def read_peak() -> int:
    """Highest memory of this process since the last reset, in bytes."""
    with suppress(OSError), open("/proc/self/status") as stream:
        for line in stream:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * _KILOBYTE
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * _KILOBYTE)
