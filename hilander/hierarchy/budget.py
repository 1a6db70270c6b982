"""Estimates of a run's time and memory before it starts, and the plan for a memory budget.

The estimates are those of a cost model: work that grows with points, width and neighbours, divided
by the speed of this machine. Its constants were measured by ``python -m benchmarks.scale``; a test
compares them with the measured rows.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, is_mapped
from hilander.embeddings.preparation import PerSetPreparation, Preparation
from hilander.errors import SettingError
from hilander.io.memory import format_memory, parse_memory

Store = Literal["float32", "float16", "mapped"]
LONG_RUN = 50_000  # points from which on an estimate is printed and work is stored
FEATURES_FILE = "features.npy"

# Bytes, taken from the rows of the benchmark; `python -m benchmarks.scale calibrate` compares.
_BASE = 430e6  # interpreter, libraries and small blocks
_ROOM = 1.15  # safety factor: planned memory over measured memory
_GRAPH = 16  # neighbours, affinity and linkage, for each edge
_POINT = 120  # labels, parents, densities and the rows of the table, for each point
_LISTS = 20  # candidates of the search and the graph made of them, for each edge
_SEARCH_BLOCKS = 0.55e6  # for each square of k: candidates of the blocks at work
_SEARCH_POINT = 100
_MOST_MAPS = 2**31  # bytes up to which scoring keeps two maps of the nodes
# Seconds of all levels for a million points of 128 features at k = 10, where matrix products run at
# _REFERENCE operations a second.
_REFERENCE = 100e9
_EXACT_UP_TO = 30_000
_EFFICIENCY = 0.4  # of an exact search, of what a plain matrix product reaches
_SEARCH_SECONDS, _SEARCH_GROWTH = 83.0, 1.35
_OTHER_SECONDS = 4.0  # preparing and writing


@dataclass(frozen=True)
class MethodCost:
    """Memory and time of a method's scoring, decoding and pooling.

    Bytes are measured; seconds are for a million points of 128 features at k = 10 on the reference
    machine, all levels together.

    Parameters
    ----------
    node_map : float
        Bytes of one map that scoring keeps of each node.
    edge_features : float
        Bytes that scoring holds for each edge.
    score_blocks : float
        Bytes of the blocks that are scored at a time.
    decode_edge : float
        Bytes of decoding, for each edge.
    score_seconds, decode_seconds, pool_seconds : float
    """

    node_map: float
    edge_features: float
    score_blocks: float
    decode_edge: float
    score_seconds: float
    decode_seconds: float
    pool_seconds: float


@dataclass(frozen=True)
class Load:
    """How large a run is.

    Parameters
    ----------
    n_points, dim, k : int
    cost : MethodCost
    given : int
        Bytes that the input itself holds in memory; 0 for a mapped file.
    """

    n_points: int
    dim: int
    k: int
    cost: MethodCost
    given: int = 0

    def features(self, store: Store) -> float:
        """Bytes of the prepared features in memory."""
        return {"float32": 4.0, "float16": 2.0, "mapped": 0.0}[store] * self.n_points * self.dim

    def maps(self, *, frugal: bool) -> float:
        """Bytes of the maps that scoring keeps of all nodes."""
        one = self.cost.node_map * self.n_points
        return one if frugal or 2 * one > _MOST_MAPS else 2 * one

    def search(self) -> float:
        """Bytes that the search works with, beyond the features."""
        lists = _LISTS * (self.k + 2) + _SEARCH_POINT
        return float(lists * self.n_points + _SEARCH_BLOCKS * self.k**2)

    def memory(self, store: Store = "float32", *, frugal: bool = False) -> dict[str, float]:
        """Bytes by part; of the stages only the largest counts.

        Parameters
        ----------
        store : {"float32", "float16", "mapped"}
        frugal : bool
            With the least memory that scoring needs, as under a budget.
        """
        edges = float(self.n_points * self.k)
        stages = {
            "search": self.search(),
            "scoring": self.cost.edge_features * edges
            + self.maps(frugal=frugal)
            + self.cost.score_blocks,
            "decoding": self.cost.decode_edge * edges,
        }
        largest = max(stages, key=lambda name: stages[name])
        return {
            "program": _BASE,
            "input": float(self.given),
            "features": self.features(store),
            "graph": _GRAPH * edges + _POINT * self.n_points,
            largest: stages[largest],
        }

    def peak(self, store: Store = "float32", *, frugal: bool = False) -> float:
        """Peak bytes, with a safety factor."""
        return _ROOM * sum(self.memory(store, frugal=frugal).values())

    def seconds(self, speed: float) -> dict[str, float]:
        """Seconds by stage.

        Parameters
        ----------
        speed : float
            Floating-point operations a second of a matrix product; see `measure_speed`.
        """
        millions, slower = self.n_points / 1e6, _REFERENCE / speed
        wider, more = self.dim / 128, self.k / 10
        if self.n_points <= _EXACT_UP_TO:  # every pair once
            search = self.n_points**2 * self.dim / (_REFERENCE * _EFFICIENCY)
        else:
            search = _SEARCH_SECONDS * millions**_SEARCH_GROWTH * wider * more**1.15
        stages = {
            "search": search,
            "score": self.cost.score_seconds * millions * more * (0.3 + 0.7 * wider),
            "decode": self.cost.decode_seconds * millions * more,
            "pool": self.cost.pool_seconds * millions * more * wider,
            "other": _OTHER_SECONDS * millions * wider,
        }
        return {stage: took * slower for stage, took in stages.items()}


@dataclass(frozen=True)
class MemoryPlan:
    """How the features are stored, and how much memory search and scoring may use.

    Parameters
    ----------
    store : {"float32", "float16", "mapped"}
        In memory, in memory at half precision, or at half precision in a file.
    search : int or None
        Bytes that the search may use; None for its default.
    score : int or None
        Bytes that scoring may keep of the nodes; None for its default.
    """

    store: Store = "float32"
    search: int | None = None
    score: int | None = None

    def prepare(
        self,
        preparation: Preparation | PerSetPreparation,
        points: npt.NDArray[Any],
        folder: Path | None,
    ) -> FloatArray:
        """Prepare embeddings into the storage that was planned, block by block.

        Parameters
        ----------
        preparation : Preparation or OwnPreparation
        points : ndarray of shape (n_points, dim)
            Not changed.
        folder : Path, optional
            Where the file of a mapped store goes.

        Returns
        -------
        prepared : ndarray of shape (n_points, dim), float32 or float16
        """
        if self.store == "float32":
            return preparation.apply(points)
        if self.store == "float16":
            return preparation.apply(points, out=np.empty(points.shape, dtype=np.float16))
        if folder is None:
            raise SettingError("features are to be stored in a file, but there is no folder for it")
        path = folder / FEATURES_FILE
        out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=points.shape)
        preparation.apply(points, out=out)
        out.flush()
        del out
        mapped: FloatArray = np.load(path, mmap_mode="r")
        return mapped


def measure_load(points: npt.NDArray[Any], k: int, cost: MethodCost) -> Load:
    """How large a run on these points is."""
    given = 0 if is_mapped(points) else int(points.nbytes)
    return Load(len(points), points.shape[1], k, cost, given)


def plan_memory(load: Load, budget: str | int | None, *, may_map: bool = False) -> MemoryPlan:
    """Choose how to stay within a budget.

    Parameters
    ----------
    load : Load
    budget : str or int, optional
        Such as "4GB"; None for no limit.
    may_map : bool
        Whether there is a folder for a mapped store.

    Raises
    ------
    SettingError
        When nothing fits; the message names an amount that would.
    """
    if budget is None:
        return MemoryPlan()
    budget = parse_memory(budget)
    stores: tuple[Store, ...] = ("float32", "float16", "mapped") if may_map else (
        "float32", "float16"
    )  # fmt: skip
    for store in stores:
        spare = budget - load.peak(store, frugal=True)
        if spare >= 0:
            maps = load.maps(frugal=True)
            return MemoryPlan(store, int(load.search() + spare), int(maps + spare))
    raise SettingError(_explain_shortage(load, budget, stores[-1]))


def _explain_shortage(load: Load, budget: int, store: Store) -> str:
    least = load.peak(store, frugal=True)
    large = {
        name: amount for name, amount in load.memory(store, frugal=True).items() if amount >= 1e6
    }
    large["safety margin"] = least - sum(large.values())  # so that the parts add up
    parts = ", ".join(f"{name} {format_memory(amount)}" for name, amount in large.items())
    ways = [f"a memory of {format_memory(least * 1.05)}"]
    if load.given and replace(load, given=0).peak(store, frugal=True) <= budget:
        ways.append("the embeddings as a .npy file, which is not loaded")
    fewer = _largest_that_fits(load, budget, store, "n_points")
    if fewer >= 1_000:
        ways.append(f"{fewer:,} points or fewer")
    k = _largest_that_fits(load, budget, store, "k")
    if k >= 5:
        ways.append(f"k = {k}")
    return (
        f"{load.n_points:,} x {load.dim} points at k = {load.k} need at least "
        f"{format_memory(least)} ({parts}), got a memory of {format_memory(budget)}; "
        f"use {', or '.join(ways)}"
    )


def _largest_that_fits(load: Load, budget: int, store: Store, name: str) -> int:
    """Largest number of points, or neighbours, whose peak is within the budget; 0 for none."""
    low, high = 0, int(getattr(load, name))
    while low < high:
        middle = (low + high + 1) // 2
        given = load.given * middle // load.n_points if name == "n_points" else load.given
        fits = replace(load, **{name: middle}, given=given).peak(store, frugal=True) <= budget  # type: ignore[arg-type]
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


@cache
def measure_speed() -> float:
    """Floating-point operations a second of a matrix product, measured for a tenth of a second."""
    rng = np.random.default_rng(0)
    left = rng.standard_normal((1_024, 128), dtype=np.float32)
    right = rng.standard_normal((128, 2_048), dtype=np.float32)
    left @ right
    best, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < 0.1:
        start = time.perf_counter()
        left @ right
        best = min(best, time.perf_counter() - start)
    return float(2 * left.size * right.shape[1] / best)


def describe_estimate(load: Load, plan: MemoryPlan) -> str:
    """One line: estimated time and memory, and their largest parts."""
    speed = measure_speed()
    seconds = load.seconds(speed)
    memory = load.memory(plan.store, frugal=plan.score is not None)
    slow = ", ".join(f"{stage} {show_time(took)}" for stage, took in seconds.items() if took >= 0.5)
    large = ", ".join(
        f"{part} {format_memory(held)}" for part, held in memory.items() if held >= 1e7
    )
    stored = {"float32": "", "float16": ", at half precision", "mapped": ", features in a file"}
    return (
        f"{load.n_points:,} x {load.dim} points, k = {load.k}: about "
        f"{show_time(sum(seconds.values()))} ({slow or 'all stages short'}; matrix products run "
        f"at {speed / 1e9:.0f} GFLOP/s here) and {format_memory(sum(memory.values()))} of "
        f"memory ({large}{stored[plan.store]})"
    )


def show_time(seconds: float) -> str:
    """A rough time in words: ``40 s``, ``7 min``, ``2.5 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5_400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
