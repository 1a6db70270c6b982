"""Measures of the whole set, which every edge between super-nodes has in common.

In one set, most similar super-nodes are fragments of one identity. In another, they are identities
that resemble each other. A single edge does not show the difference; all edges of the set do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import BoolArray, FloatArray
from hilander.graph.edges import logit_of

QUANTILES = (50, 75, 90, 95, 99)  # percentiles of the logits; links are among the upper ones
KINDS = ("clusters", "singles")
_CLUSTER_POINTS = 5  # fewest points of a super-node that counts as a cluster
_FEWEST_EDGES = 30  # edges of a kind; with fewer, all edges are measured in their place
_SIZE = "smaller"  # the edge feature that separates the kinds


class SetMeasures:
    """Measures of all edges of a graph of super-nodes, by kind.

    Edges of "clusters" join two super-nodes of at least 5 points; those of "singles" have a single
    point at one end.

    Parameters
    ----------
    columns : ndarray of shape (n_nodes, k, n_inputs)
        Edge features that the context reads.
    names : sequence of str
        Their names.
    probability : ndarray of shape (n_nodes, k)
        Of the first stage.
    """

    def __init__(self, columns: FloatArray, names: Sequence[str], probability: FloatArray) -> None:
        columns, probability = columns.reshape(-1, columns.shape[-1]), probability.ravel()
        smaller = columns[:, list(names).index(_SIZE)]
        is_cluster, is_single = smaller > np.log(_CLUSTER_POINTS - 0.5), smaller < np.log(1.5)
        self.log_share_of_clusters = np.log((is_cluster.sum() + 1) / (len(is_cluster) + 2))
        self.of = {
            kind: KindMeasures(columns, names, probability, chosen)
            for kind, chosen in zip(KINDS, (is_cluster, is_single), strict=True)
        }


class KindMeasures:
    """Measures of the edges of one kind."""

    def __init__(
        self,
        columns: FloatArray,
        names: Sequence[str],
        probability: FloatArray,
        is_kind: BoolArray,
    ) -> None:
        chosen = is_kind if is_kind.sum() >= _FEWEST_EDGES else np.ones_like(is_kind)
        columns, probability = columns[chosen], probability[chosen]
        self.probability = probability.mean(dtype=np.float64)
        percentiles = np.percentile(logit_of(probability), QUANTILES)
        self.logit: dict[int, npt.NDArray[np.floating]] = dict(
            zip(QUANTILES, percentiles, strict=True)
        )
        means = columns.mean(axis=0, dtype=np.float64)
        self.mean: dict[str, npt.NDArray[np.floating]] = dict(zip(names, means, strict=True))
        self.size_deviation = columns[:, list(names).index(_SIZE)].std(dtype=np.float64)


def add_context(edge_features: FloatArray, context: FloatArray) -> FloatArray:
    """Append the context, shape (n_context,), to the features (block, k, width) of every edge."""
    repeated = np.broadcast_to(context, (*edge_features.shape[:2], len(context)))
    return np.concatenate([edge_features, repeated], axis=-1)
