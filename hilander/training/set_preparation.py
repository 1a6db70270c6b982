"""Preparing a set without labels: centred, and whitened within the clusters it falls into.

An embedder that was made for something else spends most of its directions on what tells members
of one identity apart. Labels would show which; without them the clusters of a first look do. They
are not the identities, but mostly pieces of them, and that is enough. Whether it helps is tried
before it is done: half of the clusters teach a whitening, and it has to rank the edges of the
other half better.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, unit_rows
from hilander.embeddings.preparation import OwnPreparation, Preparation, learn_preparation
from hilander.embeddings.regions import take_regions
from hilander.embeddings.whitening import whiten_within
from hilander.graph.knn_graph import KnnGraph
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.work import Work
from hilander.training.map_choice import MOST_FEATURES, choose_whitening

if TYPE_CHECKING:
    from hilander.estimator import HiLander

# First the most careful of the ridges, for clusters are less sure than labels; those that are found
# after it are better and may say more.
OWN_RIDGES = 3.0, 1.0
# Of average precision. Clusters were found with the embeddings as they are, and so speak for them:
# what they gain by whitening is a third of what identities gain.
LEAST_OWN_GAIN = 0.0035
_REGIONS, _REGION_POINTS = 20, 400


def suit_preparation(
    model: HiLander,
    points: npt.NDArray[Any],
    rules: Rules,
    graph: KnnGraph | None = None,
    work: Work | None = None,
) -> Preparation:
    """How these embeddings are prepared: as the model learnt it, or as they themselves ask for.

    Parameters
    ----------
    model : HiLander, fitted or in the box
    points : ndarray of shape (n_points, dim)
    rules : Rules of the run
    graph : KnnGraph, optional
        The user's own graph of the points, which whitening would belie unless it is asked for.
    work : Work, optional
        Is told what was chosen.
    """
    chosen = model.preparation_
    if isinstance(chosen, OwnPreparation):
        learnt = learn_preparation(points, chosen.centre)
        chosen = replace(learnt, own=True, whitens_own=model.whiten is not False)
    if chosen.whitens_own and chosen.transform is None:
        asked = model.whiten is True or graph is None
        if asked and points.shape[1] <= MOST_FEATURES:
            chosen = whiten_by_clusters(model, points, chosen, rules)
        chosen = replace(chosen, whitens_own=chosen.transform is not None)
    if work is not None:
        work.preparation = chosen.describe()
    return chosen


def whiten_by_clusters(
    model: HiLander, points: npt.NDArray[Any], plain: Preparation, rules: Rules
) -> Preparation:
    """The same preparation, with a whitening if the clusters of some regions speak for one.

    Pieces of clusters teach it as well, and are not joined for it: what is too much is worse.
    """
    rules = replace(rules, keep_pieces=True)
    sample = plain.apply(points[take_regions(points, _REGIONS, _REGION_POINTS)])
    if len(sample) <= rules.k:
        return plain
    found = _cluster(model, sample, rules)
    first, second = OWN_RIDGES
    if model.whiten == "auto" and not choose_whitening(
        sample, found, rules.k, seed=0, ridges=(first,), least_gain=LEAST_OWN_GAIN
    ):
        return plain
    found = _cluster(model, unit_rows(sample @ whiten_within(sample, found, first)), rules)
    return replace(plain, transform=whiten_within(sample, found, second))


def _cluster(model: HiLander, points: FloatArray, rules: Rules) -> IntArray:
    """Clusters of prepared points, shape (n_points,)."""
    from hilander.training.plans import make_scorer

    score = make_scorer(model.network_, model.device, rules)
    return Hierarchy.of_steps(walk_levels(points, score, rules)).labels(-1)
