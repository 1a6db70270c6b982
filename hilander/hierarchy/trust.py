"""How far the links of a small set can be trusted.

A model that was trained on other sets judges points by comparing them with each other. In a set of
few points, none of which has another one of its identity, the nearest ones look like one identity.
Such a set is known by its nearest neighbours: their linkage is lower than in a set of few points
that has several of each identity.
"""

from __future__ import annotations

from hilander.arrays.rows import FloatArray

# Larger sets are not looked at: their points are compared with enough others.
MOST_POINTS = 400
# With fewer points nothing tells the two kinds of sets from each other.
FEWEST_POINTS = 12
# Mean linkage of the nearest neighbours. On 300 sets of 4 to 400 points of five train files, it is
# lower in 93 % of the sets of 12 points or more that have hardly two of an identity, and in 9 % of
# those that have three or more.
LEAST_LINKAGE = 0.833
# Share of their confidence that the links of such sets deserve, and those of the smallest sets: as
# many of the linked points have another one of their identity in their cluster.
WHERE_LOW, WHERE_FEWEST = 0.4, 0.5


def estimate_trust(linkage: FloatArray) -> float:
    """Share of their confidence that the links of a set deserve; 1 for most sets.

    Parameters
    ----------
    linkage : ndarray of shape (n_points, k)
        Linkage of the edges of each point to its neighbours, the most similar first.
    """
    if len(linkage) > MOST_POINTS:
        return 1.0
    if len(linkage) < FEWEST_POINTS:
        return WHERE_FEWEST
    return WHERE_LOW if float(linkage[:, 0].mean()) < LEAST_LINKAGE else 1.0
