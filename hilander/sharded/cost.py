"""What a sharded run will take: a cost model, fitted to measured rows.

Each stage takes seconds of a processor that are a sum of a few terms of the size of the run. The
constants are for sets whose search is by cells. ``python -m benchmarks.sharded fit`` prints them,
from the rows of ``benchmarks/results/sharded.jsonl``; a test compares predictions with the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hilander.hierarchy.budget import show_time
from hilander.io.memory import format_memory
from hilander.sharded.dealing import PART_SHARE, count_parts

STAGES = ("prepare", "search", "score", "pool", "driver")
_MILLION = 1e6
MOST_CELLS = 1 << 16
# Seconds of a processor for each term of `describe_terms`.
CONSTANTS: dict[str, tuple[float, ...]] = {
    "prepare": (1.75, 21.4),
    "search": (2.52, 10.3),
    "score": (2.67, 8.99),
    "pool": (0.0662, 0.0276),
    "driver": (18.9, 12.9),
}
# Bytes that the driver holds for each point and neighbour: the graph (8 + 4), linkage and the
# probabilities of the first stage (4 + 4), ranks (2), and the links of both directions twice over
# while they are sorted (16). And for each point: numbers, orders, densities, labels and levels.
GRAPH_BYTES, POINT_BYTES = 38, 120
CLUSTERS_PER_POINT = 0.15  # of the first level, whose features the driver holds twice
_PROGRAM = 450e6  # bytes of a process before it has any points
_WORKER_PROGRAM = 300e6  # bytes of a worker


@dataclass(frozen=True)
class Shape:
    """Size of a run.

    Parameters
    ----------
    n_points, dim, k : int
    """

    n_points: int
    dim: int
    k: int


def describe_terms(stage: str, shape: Shape) -> tuple[float, float]:
    """The terms whose weighted sum is the cost of a stage."""
    millions, wide = shape.n_points / _MILLION, shape.dim / 128
    edges = millions * shape.k / 15
    if stage == "prepare":  # reading and cutting; finding the cells of each row
        return millions * wide, millions**1.5 * wide
    if stage == "search":  # a row is compared with the rows of the cells that it probes
        return edges * wide, millions * wide * shape.n_points / count_cells(shape.n_points) / 100
    if stage == "score":  # features of edges; the classifiers
        return edges * wide, edges
    if stage == "pool":
        return millions * wide, millions
    return edges, edges * wide  # links, decoding, and the levels of clusters


def count_cells(n_points: int) -> int:
    """Number of cells that a search begins with; it may take twice as many."""
    return min(MOST_CELLS, 1 << round(math.log2(4 * math.sqrt(n_points))))


def predict(shape: Shape) -> dict[str, float]:
    """Seconds of a processor that each stage takes."""
    return {
        stage: sum(
            one * term
            for one, term in zip(CONSTANTS[stage], describe_terms(stage, shape), strict=True)
        )
        for stage in STAGES
    }


@dataclass(frozen=True)
class RunCost:
    """What a run takes on so many workers.

    Parameters
    ----------
    shape : Shape
    n_workers : int
    worker_memory : int
        Bytes.
    """

    shape: Shape
    n_workers: int
    worker_memory: int

    @property
    def n_parts(self) -> int:
        """Number of partitions."""
        return count_parts(self.shape.n_points, self.shape.dim, self.worker_memory)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each stage; tasks are shared by the workers, the driver's part is not."""
        shared = min(self.n_workers, max(1, self.n_parts))
        found = predict(self.shape)
        return {
            stage: cost if stage == "driver" else cost / shared for stage, cost in found.items()
        }

    @property
    def driver_bytes(self) -> float:
        """Highest memory of the driver."""
        points, edges = self.shape.n_points, self.shape.n_points * self.shape.k
        clusters = CLUSTERS_PER_POINT * points * self.shape.dim * 8
        return _PROGRAM + GRAPH_BYTES * edges + POINT_BYTES * points + clusters

    @property
    def worker_bytes(self) -> float:
        """Highest memory of a worker."""
        part = 4 * self.shape.n_points * self.shape.dim / self.n_parts
        return _WORKER_PROGRAM + part / PART_SHARE

    @property
    def store_bytes(self) -> float:
        """Object store of all nodes; what does not fit goes to disk. Points are held twice."""
        return 3 * 4.0 * self.shape.n_points * self.shape.dim

    def describe(self) -> str:
        """The prediction as lines of text."""
        seconds = self.seconds
        stages = ", ".join(f"{stage} {show_time(took)}" for stage, took in seconds.items())
        workers = "worker" if self.n_workers == 1 else "workers"
        return (
            f"{self.shape.n_points:,} x {self.shape.dim} points, k = {self.shape.k}, on "
            f"{self.n_workers} {workers} of {format_memory(self.worker_memory)}: "
            f"{self.n_parts:,} partitions, about {show_time(math.fsum(seconds.values()))} "
            f"({stages})\n"
            f"memory: a worker {format_memory(self.worker_bytes)}, the driver "
            f"{format_memory(self.driver_bytes)}, the object store "
            f"{format_memory(self.store_bytes)}"
        )
