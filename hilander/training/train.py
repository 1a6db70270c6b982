"""A labelled set in, a model out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hilander.arrays.rows import FloatArray, IntArray
from hilander.embeddings.equal_rows import drop_equal_rows
from hilander.embeddings.labels import check_trainable
from hilander.training.methods import find_method
from hilander.training.model import Model
from hilander.training.parameters import Parameters, check_enough, check_seed


def train_model(
    parameters: Parameters,
    points: FloatArray,
    labels: IntArray,
    *,
    checkpoint: str | Path | None = None,
    verbose: bool = False,
) -> Model:
    """Train a model with the parameters of an estimator.

    Parameters
    ----------
    parameters : Parameters
        Usually a `HiLander`.
    points : ndarray of shape (n_points, dim)
        Embeddings before preparation.
    labels : ndarray of shape (n_points,)
        Identity of each, from 0.
    checkpoint : path of a folder, optional
        Stores the state after each epoch; an interrupted run continues from it.
    verbose : bool
        Draw progress bars (only on a terminal).

    Returns
    -------
    model : Model
    """
    method = find_method(parameters.method)
    check_seed(parameters.random_state)
    check_trainable(labels)
    if method.merges_equal_rows:
        points, labels = drop_equal_rows(points, labels)
    plan = method.plan(parameters, points, labels)
    check_enough(parameters, plan.rules.k, len(points))
    preparation = method.prepare(parameters, points, labels, plan)
    model = method.learn(
        preparation.apply_to_training_set(points),
        labels,
        plan,
        checkpoint_folder=None if checkpoint is None else Path(checkpoint),
        verbose=verbose,
    )
    return replace(model, preparation=preparation, n_features=points.shape[1])
