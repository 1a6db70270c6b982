"""Clustering with a trained model: plan a run, prepare the points, walk the levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy.typing as npt

from hilander.arrays.reordered import reorder_rows
from hilander.embeddings.canonical_order import find_canonical_order, invert_order
from hilander.embeddings.equal_rows import EqualRows, merge_equal_rows
from hilander.embeddings.preparation import refuse_zero_rows
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.basis import SetBase
from hilander.hierarchy.budget import Load, MemoryPlan, measure_load, plan_memory
from hilander.hierarchy.constraints.constraints import Constraints, check_fits
from hilander.hierarchy.equal_points import restore_equal_points
from hilander.hierarchy.levels import LevelStep, walk_levels
from hilander.hierarchy.original_order import reorder_graph, restore_original_order
from hilander.hierarchy.rules import Rules, resolve_rules
from hilander.hierarchy.work import Work
from hilander.knn.local_order import find_local_order
from hilander.knn.search import build_knn_graph
from hilander.training.methods import find_method
from hilander.training.model import Model
from hilander.training.set_preparation import resolve_preparation

# Points from which on they are sorted so that neighbours are near each other.
LOCAL_ORDER_FROM = 30_001


@dataclass(frozen=True)
class RunSettings:
    """How a trained model clusters a set.

    Parameters
    ----------
    method : str
        Name of the model's method.
    asked : mapping
        k, p_tau, early_stop, decoder; None, or absent, for the model's.
    adapt_k : bool
        Whether k is lower for small sets, unless it is given.
    whiten : bool or "auto"
        As for `resolve_preparation`.
    memory : str or int, optional
        Most memory to use, such as "4GB".
    device : str
    verbose : bool
        Draw progress bars (only on a terminal).
    """

    method: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    adapt_k: bool = True
    whiten: bool | Literal["auto"] = "auto"
    memory: str | int | None = None
    device: str = "auto"
    verbose: bool = False


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run: its rules, its size and its memory.

    Parameters
    ----------
    rules : Rules
    load : Load
        Size of the run.
    memory : MemoryPlan
    """

    rules: Rules
    load: Load
    memory: MemoryPlan


def plan_run(
    model: Model,
    points: npt.NDArray[Any],
    settings: RunSettings,
    graph: KnnGraph | None = None,
    *,
    may_map: bool = False,
) -> RunPlan:
    """Resolve the rules of a run and plan its memory.

    Parameters
    ----------
    model : Model
    points : ndarray of shape (n_points, dim)
    settings : RunSettings
    graph : KnnGraph, optional
        The user's own graph of the points.
    may_map : bool
        Whether the prepared points may be stored in a file.
    """
    rules = resolve_rules(
        model.rules, len(points), graph, adapt_k=settings.adapt_k, **settings.asked
    )
    cost = find_method(settings.method).cost(model.network.settings.hidden)
    load = measure_load(points, rules.k, cost)
    return RunPlan(rules, load, plan_memory(load, settings.memory, may_map=may_map))


def walk_points(
    model: Model,
    points: npt.NDArray[Any],
    settings: RunSettings,
    *,
    graph: KnnGraph | None = None,
    work: Work | None = None,
    constraints: Constraints | None = None,
) -> Iterator[LevelStep]:
    """Cluster points level by level.

    Parameters
    ----------
    model : Model
    points : ndarray of shape (n_points, dim)
        Embeddings before preparation.
    settings : RunSettings
    graph : KnnGraph, optional
        The user's own graph, of the prepared points.
    work : Work, optional
        Records time and memory of each stage, and may store its results.
    constraints : Constraints of n_points points, optional
        Held at every level.

    Returns
    -------
    steps : iterator of LevelStep
        The settings are checked at once. Each level is computed when the iterator reaches it.
    """
    method = find_method(settings.method)
    refuse_zero_rows(points)  # by their numbers in the input
    equal: EqualRows | None = None
    constraints = check_fits(constraints, len(points))
    if method.merges_equal_rows and graph is None:
        points, equal, constraints = _merge_equal(points, constraints)
    folder = None if work is None else work.folder
    plan = plan_run(model, points, settings, graph, may_map=folder is not None)
    given, order = points, find_canonical_order(points)
    points = reorder_rows(given, order)
    score = method.make_scorer(model.network, plan.rules, settings.device, plan.memory.score)
    preparation = resolve_preparation(
        model, points, plan.rules, score, whiten=settings.whiten, own_graph=graph is not None
    )
    if work is not None:
        work.preparation = preparation.describe()
        work.base = SetBase(preparation, plan.rules, score.measures)
    if graph is None and len(points) >= LOCAL_ORDER_FROM:
        order = order[find_local_order(points)]
        points = reorder_rows(given, order)
    graph = None if graph is None else reorder_graph(graph, order)
    if constraints is not None:
        constraints = constraints.renumber(invert_order(order), len(points))
    prepared = plan.memory.prepare(preparation, points, folder)
    search = partial(build_knn_graph, verbose=settings.verbose, memory=plan.memory.search)
    steps = walk_levels(
        prepared,
        score,
        plan.rules,
        graph=graph,
        search=search,
        work=work,
        constraints=constraints,
    )
    return restore_equal_points(restore_original_order(steps, order), equal)


def _merge_equal(
    points: npt.NDArray[Any], constraints: Constraints | None
) -> tuple[npt.NDArray[Any], EqualRows | None, Constraints | None]:
    """Merge equal rows, unless two of them must be apart."""
    distinct, equal = merge_equal_rows(points)
    if equal is None or constraints is None:
        return distinct, equal, constraints
    contracted = constraints.contract(equal.group, len(equal.first))
    if len(constraints.find_mixed(contracted.component[equal.group])):
        return points, None, constraints
    return distinct, equal, contracted
