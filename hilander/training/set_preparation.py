"""Preparing a set without labels: centred, and whitened within the clusters it falls into.

An embedder that was made for something else spends most of its directions on what tells members
of one identity apart. Labels would show which; without them the clusters of a first look do. They
are not the identities, but mostly pieces of them, and that is enough. Whether it helps is tried
before it is done: half of the clusters teach a whitening, and it has to rank the edges of the
other half better.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, unit_rows
from hilander.embeddings.preparation import PerSetPreparation, Preparation, learn_preparation
from hilander.embeddings.regions import take_regions
from hilander.embeddings.whitening import whiten_within
from hilander.hierarchy.hierarchy import Hierarchy
from hilander.hierarchy.levels import walk_levels
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.scorers import Scorer
from hilander.training.map_choice import MOST_FEATURES, choose_whitening
from hilander.training.model import Model

# First the most careful of the ridges, for clusters are less sure than labels; those that are found
# after it are better and may say more.
OWN_RIDGES = 3.0, 1.0
# Of average precision. Clusters were found with the embeddings as they are, and so speak for them:
# what they gain by whitening is a third of what identities gain.
LEAST_OWN_GAIN = 0.0035
_REGIONS, _REGION_POINTS = 20, 400


def resolve_preparation(
    model: Model,
    points: npt.NDArray[Any],
    rules: Rules,
    score: Scorer,
    *,
    whiten: bool | Literal["auto"] = "auto",
    own_graph: bool = False,
) -> Preparation:
    """How a set is prepared: as the model learnt it, or as the set itself asks for.

    Parameters
    ----------
    model : Model
    points : ndarray of shape (n_points, dim)
    rules : Rules of the run
    score : Scorer of the model
    whiten : bool or "auto"
        Whether a model that prepares each set anew may whiten it; "auto": where that helps.
    own_graph : bool
        Whether the user gave a graph of the points. Its neighbours would not be those of whitened
        points, so "auto" does not whiten then.
    """
    chosen = model.preparation
    if isinstance(chosen, PerSetPreparation):
        learnt = learn_preparation(points, chosen.centre)
        chosen = replace(learnt, own=True, whitens_each_set=whiten is not False)
    if chosen.whitens_each_set and chosen.transform is None:
        wanted = whiten is True or not own_graph
        if wanted and points.shape[1] <= MOST_FEATURES:
            chosen = whiten_by_clusters(chosen, points, rules, score, must=whiten is True)
        chosen = replace(chosen, whitens_each_set=chosen.transform is not None)
    return chosen


def whiten_by_clusters(
    plain: Preparation, points: npt.NDArray[Any], rules: Rules, score: Scorer, *, must: bool = False
) -> Preparation:
    """The same preparation, with a whitening if the clusters of some regions gain by one.

    Fragments of clusters are learnt from as well, and are not joined for it: a whitening within
    too large clusters does more harm than one within too small ones.

    Parameters
    ----------
    plain : Preparation without a map
    points : ndarray of shape (n_points, dim)
    rules : Rules of the run
    score : Scorer
    must : bool
        Whiten even if the clusters do not gain.
    """
    rules = replace(rules, keep_fragments=True)
    sample = plain.apply(points[take_regions(points, _REGIONS, _REGION_POINTS)])
    if len(sample) <= rules.k:
        return plain
    found = _cluster(sample, rules, score)
    first, second = OWN_RIDGES
    if not must and not choose_whitening(
        sample, found, rules.k, seed=0, ridges=(first,), least_gain=LEAST_OWN_GAIN
    ):
        return plain
    found = _cluster(unit_rows(sample @ whiten_within(sample, found, first)), rules, score)
    return replace(plain, transform=whiten_within(sample, found, second))


def _cluster(points: FloatArray, rules: Rules, score: Scorer) -> IntArray:
    """Clusters of prepared points, shape (n_points,)."""
    return Hierarchy.of_steps(walk_levels(points, score, rules)).labels(-1)
