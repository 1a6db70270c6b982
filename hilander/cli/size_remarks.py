"""Remarks on a run that may be wrong: few points, singletons, one cluster, one cloud in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from hilander.embeddings.dominant_identity import has_no_groups

if TYPE_CHECKING:
    from hilander.hierarchy.hierarchy import Hierarchy

MIN_POINTS = 50  # points; with this many or fewer, any cluster sizes are plausible
MAX_SINGLETONS = 0.95  # share of the points; above it, a remark is printed
TRAIN = "train on labels of such embeddings (hilander train)"


def remark_on_sizes(
    hierarchy: Hierarchy, points: npt.NDArray[Any], *, can_whiten: bool, whitened: bool
) -> str:
    """One line if the sizes of the final clusters suggest a problem, and what to do; else empty.

    Parameters
    ----------
    hierarchy : Hierarchy
    points : ndarray of shape (n_points, dim)
        The embeddings, not prepared.
    can_whiten : bool
        Whether the option --whiten is open to the model.
    whitened : bool
        Whether the embeddings were whitened.
    """
    if hierarchy.n_points <= MIN_POINTS:
        return remark_on_trust(hierarchy)
    whiten = f", --whiten {'no' if whitened else 'yes'}" if can_whiten else ""
    n_alone = int((hierarchy.sizes() == 1).sum())
    if n_alone > MAX_SINGLETONS * hierarchy.n_points:
        return (
            f"{n_alone:,} of {hierarchy.n_points:,} points are in a cluster of their own: either "
            "each is its own identity, or the model does not recognise identities in these "
            f"embeddings; if so, try a lower --p-tau{whiten}, or {TRAIN}"
        )
    if hierarchy.n_clusters() > 1:
        return remark_on_cloud(hierarchy, points) or remark_on_trust(hierarchy)
    finer = [number for number, level in enumerate(hierarchy.levels) if level.n_clusters > 1]
    below = f" (level_{finer[-1]} of clusters.parquet has more clusters)" if finer else ""
    return (
        f"all points are in one cluster{below}: either they are one identity, or the model does "
        f"not distinguish identities in these embeddings; if so, try a higher --p-tau{whiten}, or "
        f"{TRAIN}"
    )


def remark_on_trust(hierarchy: Hierarchy) -> str:
    """One line on a small set that the model cannot judge; else empty."""
    from hilander.hierarchy.trust import FEWEST_POINTS

    n_points = hierarchy.n_points
    if hierarchy.trust == 1:
        return ""
    few = f"{n_points} points are too few to compare with each other"
    unlike = f"these are only {n_points} points, and few have a neighbour that is clearly alike"
    return (
        f"{few if n_points < FEWEST_POINTS else unlike}: the model is out of its depth. In such "
        f"sets some {hierarchy.trust:.0%} of the links are right, and confidences are lowered "
        f"accordingly; cluster more points at once, or {TRAIN}"
    )


def remark_on_cloud(hierarchy: Hierarchy, points: npt.NDArray[Any]) -> str:
    """One line if there are several clusters, but the points have no visible gaps; else empty."""
    if 2 * hierarchy.sizes().max() > hierarchy.n_points or not has_no_groups(points):
        return ""
    return (
        f"these {hierarchy.n_points:,} points form one cloud without gaps, and the "
        f"{hierarchy.n_clusters():,} clusters are parts of it: the points may be one identity, or "
        "one identity each, or the embeddings do not separate identities"
    )
