"""Runs the tasks of each stage, with one progress bar, and records what they took."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from hilander.engines.protocol import Engine, Task, TaskRecord, read_peak, run_tasks


@dataclass
class StageCost:
    """What a stage took so far.

    Parameters
    ----------
    stage : str
    rows, tasks : int
        Rows that tasks treated, and tasks; a row is counted by each part of the stage.
    seconds : float
        From its first task to its last, without what the driver did in between.
    work_seconds, cpu_seconds : float
        Of all tasks together; those of a processor leave out what other programs took.
    bytes_moved : int
        Bytes of the arrays that tasks read from the engine and returned to it.
    workers : dict of str to dict
        ``tasks``, ``seconds`` and ``peak_bytes`` of each worker.
    """

    stage: str
    rows: int = 0
    tasks: int = 0
    seconds: float = 0.0
    work_seconds: float = 0.0
    cpu_seconds: float = 0.0
    bytes_moved: int = 0
    workers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, task: Task, record: TaskRecord) -> None:
        """Count one task."""
        self.rows += task.rows
        self.tasks += 1
        self.work_seconds += record.seconds
        self.cpu_seconds += record.cpu
        self.bytes_moved += record.moved
        one = self.workers.setdefault(record.worker, {"tasks": 0, "seconds": 0.0, "peak_bytes": 0})
        one["tasks"] += 1
        one["seconds"] = round(one["seconds"] + record.seconds, 4)
        one["peak_bytes"] = max(one["peak_bytes"], record.peak)

    def to_dict(self) -> dict[str, Any]:
        """The cost as plain values for JSON."""
        peaks = [one["peak_bytes"] for one in self.workers.values()]
        return {
            "stage": self.stage,
            "rows": self.rows,
            "tasks": self.tasks,
            "seconds": round(self.seconds, 4),
            "work_seconds": round(self.work_seconds, 4),
            "cpu_seconds": round(self.cpu_seconds, 4),
            "bytes_moved": self.bytes_moved,
            "peak_bytes": max(peaks, default=0),
            "workers": self.workers,
        }


class StageLog:
    """Runs tasks on an engine and records them by stage.

    Parameters
    ----------
    engine : Engine
    verbose : bool
        Draw a progress bar for each stage (only on a terminal).

    Attributes
    ----------
    costs : dict of str to StageCost
    driver_peak : int
        Highest memory of this process after a stage, in bytes.
    """

    def __init__(self, engine: Engine, verbose: bool = False) -> None:
        self.engine, self.verbose = engine, verbose
        self.costs: dict[str, StageCost] = {}
        self.driver_peak = 0

    def run(self, stage: str, tasks: Iterable[Task], rows: int) -> list[Task]:
        """Run tasks to their end; they are given in the order in which they were submitted.

        Parameters
        ----------
        stage : str
        tasks : iterable of Task
        rows : int
            Rows of all tasks.
        """
        cost = self.costs.setdefault(stage, StageCost(stage))
        submitted: list[Task] = []

        def watch() -> Iterator[Task]:
            for task in tasks:
                submitted.append(task)
                yield task

        start = time.perf_counter()
        hide = None if self.verbose else True
        with tqdm(total=rows, desc=stage, unit=" rows", unit_scale=True, disable=hide) as bar:
            for task, record in run_tasks(self.engine, watch()):
                cost.add(task, record)
                bar.update(task.rows)
        cost.seconds += time.perf_counter() - start
        self.driver_peak = max(self.driver_peak, read_peak())
        return submitted

    def to_dict(self) -> dict[str, Any]:
        """Everything that was recorded, as plain values for JSON."""
        return {
            "engine": self.engine.name,
            "workers": self.engine.n_workers,
            "driver_peak_bytes": max(self.driver_peak, read_peak()),
            "stages": [cost.to_dict() for cost in self.costs.values()],
        }
