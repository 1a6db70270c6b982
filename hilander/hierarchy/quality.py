"""Estimated quality of each cluster, without labels.

A linkage is the probability that an edge joins one identity. The mean linkage of the edges inside
a cluster estimates its precision. The linkage of edges that leave it estimates its recall. Each
point counts as a certain link to itself, as in BCubed. For recall, linkages are squared: a small
linkage to each of many neighbours expresses uncertainty, not missing members.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, IntArray, row_blocks
from hilander.errors import SettingError
from hilander.hierarchy.representatives import find_medoids
from hilander.io.files import write_table

if TYPE_CHECKING:
    from hilander.hierarchy.hierarchy import Hierarchy

QUALITY_FILE = "cluster_quality.parquet"


@dataclass(frozen=True, eq=False)
class ClusterQuality:
    """Estimated quality of each cluster.

    Parameters
    ----------
    size : ndarray of shape (n_clusters,), int64
    cohesion : ndarray of shape (n_clusters,), float32, in [0, 1]
        Expected share of the edges inside that join one identity; 1 for a single point.
    separation : ndarray of shape (n_clusters,), float32, in [0, 1]
        Expected share of the edges that join one identity which stay inside.
    quality : ndarray of shape (n_clusters,), float32, in [0, 1]
        Harmonic mean of the two, as F is of precision and recall.
    """

    size: IntArray
    cohesion: FloatArray
    separation: FloatArray
    quality: FloatArray


def measure_quality(neighbours: IntArray, linkage: FloatArray, labels: IntArray) -> ClusterQuality:
    """Estimate the quality of each cluster from the linkage inside it and leaving it.

    With n_in edges inside of summed linkage L_in, and squared linkages that sum to S_in inside
    and to S_out on the edges that leave, a cluster of n points has cohesion
    ``(n + L_in) / (n + n_in)`` and separation ``(n + S_in) / (n + S_in + S_out)``.

    Parameters
    ----------
    neighbours, linkage : ndarray of shape (n_points, k)
        The graph of the points, and the linkage of its edges.
    labels : ndarray of shape (n_points,)
        Cluster of each point, from 0.

    Returns
    -------
    quality : ClusterQuality of labels.max() + 1 clusters
    """
    if neighbours.shape != linkage.shape or len(neighbours) != len(labels):
        raise SettingError(
            f"neighbours {neighbours.shape}, linkage {linkage.shape} and labels {labels.shape} "
            "differ; give the graph of the points that were clustered"
        )
    n_points, k = neighbours.shape
    sums = np.empty((4, n_points))
    for block in row_blocks(n_points, k):
        inside = labels[neighbours[block]] == labels[block][:, None]
        probable = np.asarray(linkage[block], dtype=np.float64)
        squared = probable**2
        parts = (inside, inside * probable, inside * squared, squared)
        sums[:, block] = [part.sum(axis=1) for part in parts]
    size = np.bincount(labels)
    n_inside, linkage_in, squared_in, squared_all = (
        np.bincount(labels, weights=one, minlength=len(size)) for one in sums
    )
    some = np.maximum(size, 1)  # a label without points
    cohesion = (some + linkage_in) / (some + n_inside)
    separation = (some + squared_in) / (some + squared_all)
    quality = 2 * cohesion * separation / (cohesion + separation)
    return ClusterQuality(
        size, *(part.astype(np.float32) for part in (cohesion, separation, quality))
    )


def write_quality(
    hierarchy: Hierarchy,
    neighbours: IntArray,
    linkage: FloatArray,
    folder: Path,
    ids: Any = None,
    features: npt.NDArray[Any] | None = None,
) -> None:
    """Write the quality of each final cluster into an open run folder.

    One row a cluster: cluster, peak and representative (the ids of its peak and its medoid), size,
    cohesion, separation, quality. `ids` gives the ids of rows: an array, or rows of files.
    """
    found = measure_quality(neighbours, linkage, hierarchy.labels(-1))
    names = np.arange(hierarchy.n_points) if ids is None else ids
    names = np.asarray(names) if isinstance(names, list | tuple) else names
    peaks, labels = hierarchy.peaks(-1), hierarchy.labels(-1)
    representatives = peaks if features is None else find_medoids(features, labels, peaks)
    columns = {
        "cluster": hierarchy.cluster_ids,
        "peak": names[peaks],
        "representative": names[representatives],
        "size": found.size,
        "cohesion": found.cohesion,
        "separation": found.separation,
        "quality": found.quality,
    }
    write_table(folder / QUALITY_FILE, columns)
