"""Preparation of a set without labels: centring, and whitening within its own clusters.

Most directions of an embedder made for another purpose show differences between members of one
identity. Labels would show which directions these are. Without labels, the clusters of a first
clustering do: most of them are parts of identities, which is enough. The whitening is validated
before it is used: half of the clusters train it, and it has to improve the ranking of the edges of
the other half.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy.typing as npt

from hilander.arrays.rows import unit_rows
from hilander.embeddings.preparation import PerSetPreparation, Preparation, learn_preparation
from hilander.embeddings.regions import take_regions
from hilander.embeddings.whitening import whiten_within
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import Scorer
from hilander.training.clustering import cluster_points
from hilander.training.map_choice import MOST_FEATURES, choose_whitening
from hilander.training.model import Model

# Multiples of the mean variance within clusters (see `map_choice.RIDGES`). The first clusters are
# less certain than labels, so the first whitening is the most cautious one.
FIRST_RIDGE = 3.0
# The clusters of the whitened points are better, so the second whitening may be stronger.
SECOND_RIDGE = 1.0
# Average precision that the whitening has to gain. The clusters were found without it and so favour
# the plain embeddings: the gain on clusters is a third of the gain on identities.
LEAST_CLUSTER_GAIN = 0.0035
# Regions of the set that are clustered, and points of each; bound the time for a large set. They
# are many and small: the 400 nearest points of a point are closer to each other in a set of a
# million than in one of thousands, and the gain of a whitening would grow with the number of
# points.
_N_REGIONS = 400
_REGION_POINTS = 20


def resolve_preparation(
    model: Model,
    points: npt.NDArray[Any],
    rules: Rules,
    score: Scorer,
    *,
    whiten: bool | Literal["auto"] = "auto",
    own_graph: bool = False,
) -> Preparation:
    """The preparation of a set: the model's, or one learned from the set itself.

    Parameters
    ----------
    model : Model
    points : ndarray of shape (n_points, dim)
        Embeddings before preparation.
    rules : Rules of the run
    score : Scorer of the model
    whiten : bool or "auto"
        Whether a model that prepares each set by itself may whiten it; "auto": if it helps.
    own_graph : bool
        Whether the user gave a graph of the points. Whitening would change the neighbours, so
        "auto" does not whiten then.
    """
    chosen = model.preparation
    if isinstance(chosen, PerSetPreparation):
        learned = learn_preparation(points, chosen.centre)
        chosen = replace(learned, per_set=True, whitens_each_set=whiten is not False)
    if chosen.whitens_each_set and chosen.transform is None:
        wanted = whiten is True or not own_graph
        if wanted and points.shape[1] <= MOST_FEATURES:
            chosen = whiten_by_clusters(chosen, points, rules, score, force=whiten is True)
        chosen = replace(chosen, whitens_each_set=chosen.transform is not None)
    return chosen


def whiten_by_clusters(
    plain: Preparation,
    points: npt.NDArray[Any],
    rules: Rules,
    score: Scorer,
    *,
    force: bool = False,
) -> Preparation:
    """The same preparation, with a whitening if it helps the clusters of some regions.

    Parameters
    ----------
    plain : Preparation without a map
    points : ndarray of shape (n_points, dim)
    rules : Rules of the run
    score : Scorer
    force : bool
        Whiten even if it does not help.
    """
    sample = plain.apply(points[take_regions(points, _N_REGIONS, _REGION_POINTS)])
    if len(sample) <= rules.k:
        return plain
    found = cluster_points(sample, score, rules)
    if not force and not choose_whitening(
        sample, found, rules.k, seed=0, ridges=(FIRST_RIDGE,), least_gain=LEAST_CLUSTER_GAIN
    ):
        return plain
    whitened = unit_rows(sample @ whiten_within(sample, found, FIRST_RIDGE))
    found = cluster_points(whitened, score, rules)
    return replace(plain, transform=whiten_within(sample, found, SECOND_RIDGE))
