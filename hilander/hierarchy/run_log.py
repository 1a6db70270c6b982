"""The log of a run: what each stage did and how long it took."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hilander.graph.search_report import SearchReport
from hilander.hierarchy.levels import LevelStep
from hilander.hierarchy.work import Work


@dataclass
class RunLog:
    """Stages of a run, in order.

    Attributes
    ----------
    stages : list of dict
        ``stage`` and ``seconds`` of each stage so far, with further facts.
    first : LevelStep, optional
        The first level, once `watch` has passed it on.
    p_taus : list of float
        Threshold of each level so far.
    work : Work
        Does the stages of the level loop.
    """

    stages: list[dict[str, Any]] = field(default_factory=list)
    first: LevelStep | None = None
    p_taus: list[float] = field(default_factory=list)
    work: Work = field(default_factory=Work)
    _since: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Time of all stages so far."""
        return float(sum(stage["seconds"] for stage in self.stages))

    @property
    def search(self) -> SearchReport | None:
        """Report of the first k-NN search; None if the graph was given."""
        return None if self.first is None else self.first.graph.search

    def note(self, stage: str, **facts: Any) -> None:
        """Record a stage that started when the previous one ended."""
        now = time.perf_counter()
        self.stages.append({"stage": stage, "seconds": round(now - self._since, 4), **facts})
        self._since = now

    def watch(self, steps: Iterable[LevelStep]) -> Iterator[LevelStep]:
        """Record each level and pass it on."""
        for number, step in enumerate(steps):
            self.first = self.first or step
            self.p_taus.append(step.parents.p_tau)
            given = step.joined or step
            self.note(
                f"level_{number}",
                n_nodes=len(given.labels),
                n_edges_added=given.parents.n_edges,
                n_clusters=len(given.peaks),
                p_tau=round(step.parents.p_tau, 4),
                **self._parts(number),
            )
            yield step

    def _parts(self, level: int) -> dict[str, Any]:
        """Seconds of the parts of a level, and whether any was read from kept work."""
        done = [one for one in self.work.done if one["level"] == level]
        parts: dict[str, Any] = {f"{one['stage']}_seconds": one["seconds"] for one in done}
        return parts | ({"kept": True} if any(one["kept"] for one in done) else {})
