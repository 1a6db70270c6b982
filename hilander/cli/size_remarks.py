"""What may be wrong with a run: nearly all points alone, all in one, or pieces of one cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from hilander.embeddings.dominant_identity import has_no_groups

if TYPE_CHECKING:
    from hilander.hierarchy.hierarchy import Hierarchy

FEWEST_POINTS = 50  # up to which any sizes may well be right
MOST_ALONE = 0.95  # share of the points
LABELS = "train with labels of such embeddings (hilander train)"


def remark_on_sizes(
    hierarchy: Hierarchy, points: npt.NDArray[Any], *, is_pretrained: bool, whitened: bool
) -> str:
    """One line if the final clusters look as if something were wrong, and what to do; else empty.

    Parameters
    ----------
    hierarchy : Hierarchy
    points : ndarray of shape (n_points, dim)
        The embeddings as they came.
    in_the_box : bool
        Whether the model in the box made it, whose whitening can be chosen.
    whitened : bool
        Whether the embeddings were whitened.
    """
    if hierarchy.n_points <= FEWEST_POINTS:
        return ""
    whiten = f", --whiten {'no' if whitened else 'yes'}" if is_pretrained else ""
    n_alone = int((hierarchy.sizes() == 1).sum())
    if n_alone > MOST_ALONE * hierarchy.n_points:
        return (
            f"{n_alone:,} of {hierarchy.n_points:,} points stay alone: each may be an identity of "
            "its own, or the model sees nothing in these embeddings that joins them; if so, try a "
            f"lower --p-tau{whiten}, or {LABELS}"
        )
    if hierarchy.n_clusters() > 1:
        return remark_on_cloud(hierarchy, points)
    finer = [number for number, level in enumerate(hierarchy.levels) if level.n_clusters > 1]
    below = f"; level_{finer[-1]} of clusters.parquet is finer" if finer else ""
    return (
        "all points are in one cluster: they may be one identity, or the model sees nothing in "
        f"these embeddings that tells them apart{below}; if so, try a higher --p-tau{whiten}, or "
        f"{LABELS}"
    )


def remark_on_cloud(hierarchy: Hierarchy, points: npt.NDArray[Any]) -> str:
    """One line if several clusters were found where nothing parts the points; else empty."""
    if 2 * hierarchy.sizes().max() > hierarchy.n_points or not has_no_groups(points):
        return ""
    return (
        f"nothing parts these {hierarchy.n_points:,} points: they lie in one cloud, of which the "
        f"{hierarchy.n_clusters():,} clusters are pieces. They may be one identity, or each one of "
        "its own, or the embeddings do not tell identities apart"
    )
