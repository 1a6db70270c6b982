"""The k-NN graph of a run's first level: neighbours of a point, and nearest clusters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray
from hilander.errors import FileFormatError
from hilander.io.mapped_npz import map_npz


@dataclass(frozen=True, eq=False)
class RunGraph:
    """Neighbours, cosines and linkages, mapped from the run folder.

    Row ``i`` holds the edges that leave point ``i``.

    Parameters
    ----------
    neighbours : ndarray of shape (n_points, k)
    affinity : ndarray of shape (n_points, k)
    linkage : ndarray of shape (n_points, k)
    """

    neighbours: IntArray
    affinity: FloatArray
    linkage: FloatArray

    @property
    def k(self) -> int:
        """Number of neighbours of each point."""
        return int(self.neighbours.shape[1])

    def nearest_clusters(
        self, rows: IntArray, labels: IntArray, limit: int
    ) -> list[tuple[int, float, float, int]]:
        """Rank the other clusters by the linkage of the edges that lead to them.

        Parameters
        ----------
        rows : ndarray of shape (n_rows,)
            Members of one cluster.
        labels : ndarray of shape (n_points,)
        limit : int

        Returns
        -------
        nearest : list of (cluster, summed linkage / edges, mean affinity, crossing edges)
        """
        if len(rows) == 0:
            return []
        own = labels[rows[0]]
        targets = labels[self.neighbours[rows]]
        crossing = targets != own
        found, inverse = np.unique(targets[crossing], return_inverse=True)
        counts = np.bincount(inverse, minlength=len(found))
        linkage = np.bincount(inverse, self.linkage[rows][crossing], len(found))
        affinity = np.bincount(inverse, self.affinity[rows][crossing], len(found))
        best = np.argsort(-linkage, kind="stable")[:limit]
        n_edges = targets.size
        return [
            (int(found[i]), float(linkage[i] / n_edges), float(affinity[i] / counts[i]),
             int(counts[i]))
            for i in best
        ]  # fmt: skip


def read_run_graph(path: Path, n_points: int) -> RunGraph | None:
    """Map the graph of a run into memory; None if the run has none."""
    if not path.is_file():
        return None
    arrays = map_npz(path)
    try:
        graph = RunGraph(arrays["neighbours"], arrays["affinity"], arrays["linkage"])
    except KeyError as error:
        message = f"{path} has no array {error}; run `hilander cluster` again"
        raise FileFormatError(message) from None
    shapes = {graph.neighbours.shape, graph.affinity.shape, graph.linkage.shape}
    if len(shapes) != 1 or graph.neighbours.ndim != 2 or len(graph.neighbours) != n_points:
        raise FileFormatError(
            f"{path} holds arrays of shapes {sorted(shapes)}, expected one shape "
            f"({n_points}, k); run `hilander cluster` again"
        )
    if graph.neighbours.dtype.kind not in "iu" or not (
        int(graph.neighbours.min()) >= 0 and int(graph.neighbours.max()) < n_points
    ):
        raise FileFormatError(
            f"{path} names neighbours outside of the {n_points} points; "
            "run `hilander cluster` again"
        )
    return graph
