"""EVoC: an embedding of the k-NN graph, and density clusters of it in several layers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.comparison.rival import Axis, Params, Problem, Rival


def run_evoc(problem: Problem, fitted: Any, params: Params) -> list[IntArray]:
    """All layers of EVoC, from the finest to the coarsest.

    Parameters
    ----------
    problem : Problem
    fitted : None
    params : {"noise_level": float, "base_min_cluster_size": int}

    Returns
    -------
    layers : list of ndarray of shape (n_points,), -1 for noise
    """
    from evoc import EVoC

    model = EVoC(
        noise_level=params["noise_level"],
        base_min_cluster_size=params["base_min_cluster_size"],
        random_state=problem.seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba warns about its version
        model.fit(problem.features)
    return [np.asarray(layer, dtype=np.int64) for layer in model.cluster_layers_]


def take_layer(problem: Problem, state: list[IntArray], params: Params) -> IntArray:
    """The layer with a given number, from the finest; the coarsest if there are fewer."""
    return state[min(int(params["layer"]), len(state) - 1)]


EVOC = Rival(
    name="EVoC",
    family="today",
    cluster=take_layer,
    axes=(
        Axis("noise_level", (0.0, 0.3)),
        Axis("base_min_cluster_size", (3, 5, 20, 100)),
        Axis("layer", (0, 1, 2)),
    ),
    start=run_evoc,
    started_by=("noise_level", "base_min_cluster_size"),
    varies=True,
    memory=lambda n, d, k: 12 * n * d + 2_000 * n,
    requires=(("evoc", "rivals"),),
    package="evoc",
)
