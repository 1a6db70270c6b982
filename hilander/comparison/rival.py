"""The one signature that every method of the comparison has, and how its settings are searched."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import SettingError
from hilander.graph.knn_graph import KnnGraph

Params = Mapping[str, Any]
Family = Literal["paper", "today", "ours", "floor"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Points to cluster.

    Parameters
    ----------
    features : ndarray of shape (n_points, dim), float32
        Prepared: of unit length, centred where the training set asks for it.
    graph : KnnGraph of n_points nodes
        Shared by all methods; each takes as many columns as it wants.
    seed : int
        Of whatever the method draws.
    """

    features: FloatArray
    graph: KnnGraph
    seed: int = 0

    def neighbours(self, k: int) -> KnnGraph:
        """The graph of the k nearest, or of as many as there are."""
        k = min(k, self.graph.k)
        return KnnGraph(self.graph.neighbours[:, :k], self.graph.affinity[:, :k])


@dataclass(frozen=True)
class Axis:
    """One setting and the values to try.

    Parameters
    ----------
    name : str
    values : tuple
        Rising, if numbers.
    refine : bool
        Whether values between the best one and its neighbours are worth trying.
    """

    name: str
    values: tuple[Any, ...]
    refine: bool = False


def _no_fit(problem: Problem, labels: IntArray, params: Params) -> Any:
    return None


def _no_start(problem: Problem, fitted: Any, params: Params) -> Any:
    return fitted


@dataclass(frozen=True)
class Rival:
    """A way to cluster, with all that a fair comparison must know of it.

    Parameters
    ----------
    name : str
        As tables show it.
    family : {"paper", "today", "ours", "floor"}
    cluster : callable (problem, state, params) -> labels of shape (n_points,)
        -1 marks noise, which the protocol turns into singletons. `state` is what `start` gave.
    axes : tuple of Axis
        What is tuned; none for a method that needs no tuning or does its own.
    fit : callable (problem, labels, params) -> fitted
        Learns from labelled points; only of methods that need labels.
    start : callable (problem, fitted, params) -> state
        Work that many settings share, such as a tree that is then cut. By default gives `fitted`.
    fitted_by, started_by : tuple of str
        Settings that `fit` and `start` depend on; they are called once for each of their values.
    needs_labels : bool
    uses_graph : bool
    varies : bool
        Whether the seed matters, so that several are run.
    memory : callable (n_points, dim, k) -> bytes
        Estimate of the most memory it takes, without the interpreter.
    requires : tuple of (module, extra)
        Optional libraries, and the extra that installs them.
    package : str
        Distribution whose version the rows name.
    """

    name: str
    family: Family
    cluster: Callable[[Problem, Any, Params], IntArray]
    axes: tuple[Axis, ...] = ()
    fit: Callable[[Problem, IntArray, Params], Any] = _no_fit
    start: Callable[[Problem, Any, Params], Any] = _no_start
    fitted_by: tuple[str, ...] = ()
    started_by: tuple[str, ...] = ()
    needs_labels: bool = False
    uses_graph: bool = True
    varies: bool = False
    memory: Callable[[int, int, int], int] = lambda n, d, k: 4 * n * d + 24 * n * k
    requires: tuple[tuple[str, str], ...] = ()
    package: str = "hilander"

    def settings(self) -> list[dict[str, Any]]:
        """Every combination of the axes' values."""
        names = [axis.name for axis in self.axes]
        combinations = itertools.product(*(axis.values for axis in self.axes))
        return [dict(zip(names, values, strict=True)) for values in combinations]

    def check_installed(self) -> None:
        """Refuse to run without the optional libraries, saying what installs them."""
        for module, extra in self.requires:
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise SettingError(
                    f"{self.name} needs {module}, which is not installed ({error}); "
                    f"pip install 'hilander[{extra}]'"
                ) from error


def noise_to_singletons(labels: IntArray) -> IntArray:
    """Number clusters from 0 and give every noise point (-1) a cluster of its own.

    Parameters
    ----------
    labels : ndarray of shape (n_points,)

    Returns
    -------
    labels : ndarray of shape (n_points,), int64, from 0
    """
    labels = np.asarray(labels, dtype=np.int64).copy()
    noise = labels < 0
    labels[noise] = labels.max(initial=-1) + 1 + np.arange(noise.sum())
    numbered: IntArray = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return numbered
