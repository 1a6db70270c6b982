"""The context of super-nodes: what the edges of their whole set look like.

In one set most of what is alike are pieces of one identity, in another they are neighbours that
merely look alike, and a single edge does not tell which set it is of. All edges together do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray
from hilander.graph.edges import logit_of
from hilander.linkage.evidence.cluster_features import LINK_EVIDENCE, SIZE_EVIDENCE
from hilander.linkage.evidence.edge_features import EDGE_EVIDENCE

_CLUSTER = 5  # points from which on a super-node counts as a cluster
_FEWEST_EDGES = 30  # of a kind; fewer say nothing, and all edges stand in
_QUANTILES = (50, 75, 90, 95, 99)
_KINDS = ("clusters", "singles")
_MEANS = ("crossing_linkage", "crossing_log_odds", "mutual", "shared")
_SIZE = "smaller"
_NAMES = EDGE_EVIDENCE + SIZE_EVIDENCE + LINK_EVIDENCE
_PLACES = [_NAMES.index(name) for name in (*_MEANS, _SIZE)]
N_CONTEXT_INPUTS = len(_PLACES)

CONTEXT = (
    "share_of_clusters",
    *(
        f"{name}_of_{kind}"
        for kind in _KINDS
        for name in (
            "guess",
            *(f"logit_{quantile}" for quantile in _QUANTILES),
            *_MEANS,
            "size_spread",
        )
    ),
)


def take_context_inputs(evidence: FloatArray) -> FloatArray:
    """The columns of the evidence that the context is made of, shape (n_nodes, k, N_TELLING)."""
    return evidence[..., _PLACES]


def describe_context(context_inputs: FloatArray, guess: FloatArray) -> FloatArray:
    """Numbers `CONTEXT` of a graph of super-nodes.

    How sure the first look is of the edges between clusters and of those of single points, how
    many of the points' edges cross there, and how alike their neighbours are.

    Parameters
    ----------
    telling : ndarray of shape (n_nodes, k, N_TELLING)
        As `take_context_inputs` gives it.
    guess : ndarray of shape (n_nodes, k)
        Linkage as the first look sees it.

    Returns
    -------
    context : ndarray of shape (len(CONTEXT),), float32
    """
    columns, guess = context_inputs.reshape(-1, context_inputs.shape[-1]), guess.ravel()
    smaller = columns[:, -1]
    clusters, singles = smaller > np.log(_CLUSTER - 0.5), smaller < np.log(1.5)
    values = [np.log((clusters.sum() + 1) / (len(clusters) + 2))]
    for kind in (clusters, singles):
        chosen = kind if kind.sum() >= _FEWEST_EDGES else np.ones_like(kind)
        values += _describe_edges(columns[chosen], guess[chosen])
    return np.asarray(values, dtype=np.float32)


def add_context(seen: FloatArray, context: FloatArray) -> FloatArray:
    """Evidence of shape (block, k, width) with the same context beside every edge."""
    beside = np.broadcast_to(context, (*seen.shape[:2], len(context)))
    return np.concatenate([seen, beside], axis=-1)


def _describe_edges(columns: FloatArray, guess: FloatArray) -> list[npt.NDArray[np.floating]]:
    """Numbers of the edges of one kind."""
    return [
        guess.mean(dtype=np.float64),
        *np.percentile(logit_of(guess), _QUANTILES),
        *columns[:, :-1].mean(axis=0, dtype=np.float64),
        columns[:, -1].std(dtype=np.float64),
    ]
