"""Features of a pair of linked clusters, from which their merge is judged.

All follow from the linkages of the points' edges: those between the two clusters, inside each, and
to other clusters. They do not depend on the embedder.
"""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import FloatArray
from hilander.graph.linked_pairs import LinkedPairs, Sums

N_MERGE_FEATURES = 10  # of `compute_merge_features`
_LEAST = 0.005  # distance of a mean linkage from 0 and 1 before its logit is taken
# A cluster counts as having one more inner edge of this linkage, so that a single point has a mean.
_PRIOR_LINKAGE = 0.9
_HALF_LINK = 0.5  # added to a cluster's links, as a divisor that is never 0


def compute_merge_features(pairs: LinkedPairs) -> FloatArray:
    """Features of each pair, shape (n_pairs, 10), float32.

    Logit of the mean linkage of the links between the two; log of their number for each neighbour
    of the smaller cluster; log size of the smaller and of the larger; the logit of the mean
    linkage inside each, the lower and the higher; the share of a cluster's links that lead to the
    other, the higher and the lower; the share of a cluster's linkage that leaves it, the higher and
    the lower.
    """
    low, high = pairs.low, pairs.high
    sizes = pairs.size[low], pairs.size[high]
    n_inside, total_inside = pairs.inside
    inner = _logit((total_inside + _PRIOR_LINKAGE) / (n_inside + 1))
    leaving = np.maximum(pairs.leaving, 1e-9)
    share = pairs.total / leaving[low], pairs.total / leaving[high]
    leaves = leaving / (leaving + total_inside + _HALF_LINK)
    columns = [
        _logit(pairs.total / pairs.count),
        np.log(pairs.count / (pairs.k * pairs.smaller)),
        np.log(np.minimum(*sizes)),
        np.log(np.maximum(*sizes)),
        np.minimum(inner[low], inner[high]),
        np.maximum(inner[low], inner[high]),
        np.maximum(*share),
        np.minimum(*share),
        np.maximum(leaves[low], leaves[high]),
        np.minimum(leaves[low], leaves[high]),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def _logit(probability: Sums) -> Sums:
    kept = np.clip(probability, _LEAST, 1 - _LEAST)
    logit: Sums = np.log(kept / (1 - kept))
    return logit
