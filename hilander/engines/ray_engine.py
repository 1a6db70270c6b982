"""Tasks on a Ray cluster; retries, transport, spilling to disk and scheduling are Ray's.

Ray is optional: ``pip install 'hilander[ray]'``.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

from hilander.engines.protocol import WORKER_MEMORY, Task, run_measured
from hilander.errors import SettingError
from hilander.io.memory import parse_memory

_STARTS = 3  # tries to start a local Ray, which gives up after 30 s on a machine under load
_FOREVER = -1  # a task whose worker died is run again however often that happens


class RayEngine:
    """Runs tasks on Ray: on a cluster, or on a local Ray that is started and stopped.

    Parameters
    ----------
    address : str, optional
        Of a running cluster, such as "auto" or "ray://host:10001". Without it the Ray that this
        process is connected to is used, or else a local one is started.
    n_workers : int, optional
        Tasks that run at a time; by default one for each processor of the cluster.
    worker_memory : str or int
        Memory of a worker, such as "4GB"; partitions are cut so that it is enough.
    object_store : str or int, optional
        Memory of the object store of a local Ray, such as "2GB". What does not fit goes to disk.

    Attributes
    ----------
    name : str
    """

    name = "ray"

    def __init__(
        self,
        address: str | None = None,
        n_workers: int | None = None,
        worker_memory: str | int = WORKER_MEMORY,
        object_store: str | int | None = None,
    ) -> None:
        if n_workers is not None and n_workers < 1:
            raise SettingError(f"n_workers={n_workers} is not a number of workers; use 1 or more")
        self.address, self._asked = address, n_workers
        self.worker_memory = parse_memory(worker_memory)
        self._store = None if object_store is None else parse_memory(object_store)
        self._ray: Any = None
        self._remote: Any = None
        self._owns = False

    @property
    def n_workers(self) -> int:
        """Tasks that run at a time."""
        found = int(self._connect().cluster_resources().get("CPU", 1))
        return max(1, found if self._asked is None else min(found, self._asked))

    def put(self, value: Any) -> Any:
        """Hold a value in the object store, once on each node that reads it."""
        return self._connect().put(value)

    def submit(
        self, function: Callable[..., Any], *inputs: Any, n_results: int = 1, rows: int = 0
    ) -> Task:
        """Run a function as a Ray task; see `Engine.submit`."""
        self._connect()
        results = self._remote.options(num_returns=n_results + 1).remote(
            function, n_results, *inputs
        )
        return Task(results[:-1], results[-1], rows)

    def fetch(self, held: Any) -> Any:
        """The value; an error of its task is raised here."""
        ray = self._connect()
        try:
            return ray.get(held)
        except ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from None

    def wait(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        """Wait until some tasks are done; gives those and the others."""
        records = [task.record for task in tasks]
        ready, _ = self._connect().wait(records, num_returns=1, fetch_local=False)
        more, _ = self._connect().wait(
            records, num_returns=len(records), timeout=0, fetch_local=False
        )
        done = set(ready) | set(more)
        return (
            [task for task in tasks if task.record in done],
            [task for task in tasks if task.record not in done],
        )

    def close(self) -> None:
        """Stop the local Ray, if this engine started it."""
        if self._ray is not None and self._owns:
            self._ray.shutdown()
        self._ray = self._remote = None
        self._owns = False

    def _connect(self) -> Any:
        """The module of Ray, connected."""
        if self._ray is not None:
            return self._ray
        ray = import_ray()
        if not ray.is_initialized():
            self._start(ray)
        self._ray = ray
        self._remote = ray.remote(max_retries=_FOREVER, num_cpus=1)(_run)
        return ray

    def _start(self, ray: Any) -> None:
        how: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if self.address is not None:
            how["address"] = self.address
        else:
            how |= {
                "num_cpus": self._asked or len(os.sched_getaffinity(0)),
                "include_dashboard": False,
                "object_store_memory": self._store,
            }
        for left in reversed(range(_STARTS)):
            try:
                ray.init(**how)
                break
            except Exception as error:  # Ray raises plain ones where a node is slow to start
                ray.shutdown()
                if left and self.address is None:
                    continue
                reason = str(error).splitlines()[0]
                raise SettingError(
                    f"Ray cannot be reached at {self.address or 'this machine'} ({reason}); start "
                    "it with `ray start --head`, or leave the address out for a local one"
                ) from error
        self._owns = True


def import_ray() -> Any:
    """The module of Ray; the error gives the command that installs it."""
    # Ray asks a server for its usage statistics, unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # that of this process
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # they are raised when fetched
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise SettingError(
            f"the engine ray needs Ray, which cannot be imported ({error}); "
            "pip install 'hilander[ray]'"
        ) from error


def _run(function: Callable[..., Any], n_results: int, *inputs: Any) -> Any:
    return run_measured(function, n_results, inputs)
