"""The signature that every method of the comparison has, and the settings to try."""

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
        Prepared: of unit length, and centred if the training set is in a narrow cone.
    graph : KnnGraph of n_points nodes
        Shared by all methods; each uses as many columns as it needs.
    seed : int
        Seed of the method's random choices.
    """

    features: FloatArray
    graph: KnnGraph
    seed: int = 0

    def neighbours(self, k: int) -> KnnGraph:
        """The graph of the k nearest neighbours, or of all if the graph has fewer."""
        k = min(k, self.graph.k)
        return KnnGraph(self.graph.neighbours[:, :k], self.graph.affinity[:, :k])


@dataclass(frozen=True)
class Axis:
    """One setting, and the values to try.

    Parameters
    ----------
    name : str
    values : tuple
        In rising order, if they are numbers.
    refine : bool
        Whether values between the best one and those next to it are tried too.
    """

    name: str
    values: tuple[Any, ...]
    refine: bool = False


def _no_fit(problem: Problem, labels: IntArray, params: Params) -> Any:
    return None


def _no_start(problem: Problem, fitted: Any, params: Params) -> Any:
    return fitted


def _no_choices(fitted: Any) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Rival:
    """A clustering method, with everything that the comparison needs to know about it.

    Parameters
    ----------
    name : str
        Name in tables.
    family : {"paper", "today", "ours", "floor"}
        A method of the paper's tables, a newer one, this library, or the baseline.
    cluster : callable (problem, state, params) -> labels of shape (n_points,)
        `state` is the result of `start`. -1 marks noise; the comparison counts each noise point as
        a cluster.
    axes : tuple of Axis
        Settings to tune; none for a method without settings, or one that tunes itself.
    fit : callable (problem, labels, params) -> fitted
        Learns from labelled points. It is called only if `needs_labels`.
    start : callable (problem, fitted, params) -> state
        Work that several settings share, such as building a tree that `cluster` cuts. By default
        it returns `fitted`.
    fitted_by, started_by : tuple of str
        Settings that `fit` and `start` depend on. Each is called once for each of their values.
    choices : callable (fitted) -> dict
        Settings that a method which tunes itself has chosen.
    needs_labels : bool
    varies : bool
        Whether the result depends on the seed; then several seeds are run.
    memory : callable (n_points, dim, k) -> bytes
        Estimate of the peak memory, without the interpreter.
    requires : tuple of (module, extra)
        Optional libraries, and the extra that installs them.
    package : str
        Distribution whose version is recorded in the rows.
    """

    name: str
    family: Family
    cluster: Callable[[Problem, Any, Params], IntArray]
    axes: tuple[Axis, ...] = ()
    fit: Callable[[Problem, IntArray, Params], Any] = _no_fit
    start: Callable[[Problem, Any, Params], Any] = _no_start
    fitted_by: tuple[str, ...] = ()
    started_by: tuple[str, ...] = ()
    choices: Callable[[Any], dict[str, Any]] = _no_choices
    needs_labels: bool = False
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
        """Refuse to run without the optional libraries; the error names what installs them."""
        for module, extra in self.requires:
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise SettingError(
                    f"{self.name} needs {module}, which is not installed ({error}); "
                    f"pip install 'hilander[{extra}]'"
                ) from error


def noise_to_singletons(labels: IntArray) -> IntArray:
    """Number clusters from 0, and make each noise point (-1) a cluster of its own.

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
