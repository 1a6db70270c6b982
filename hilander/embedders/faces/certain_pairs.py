"""Pairs of faces that are of one person with near certainty, by dlib's own scale.

A model that clusters a set sees how its points lie relative to each other. In a small set of one
person, or of few, there are no others to compare with, and the person falls apart. dlib's distances
have a scale that is known without the set: the distribution of distances between different people.

A pair is certain if, among all pairs of a set of this size, less than `_EXPECTED_WRONG` pairs of
different people are expected to be that near. So the bound falls with the size of the set; from
some hundred faces on only near copies are certain, and the model decides about all others.
"""

from __future__ import annotations

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray

# Distances, and the share of pairs of different people that are nearer: 17.3 million pairs of the
# training set of CelebA. `python -m benchmarks.embedders distances` measures it again.
_DISTANCES = (0.30, 0.35, 0.40, 0.45, 0.50)
_SHARES_NEARER = (1.7e-6, 5.1e-6, 1.5e-5, 4.5e-5, 1.4e-4)
# Pairs of different people that may be called certain, over all pairs of a set, on average.
_EXPECTED_WRONG = 0.05
# Faces whose pairs are formed; the bound is far below the table for more.
_MOST_FACES = 1000


def certain_distance(n_faces: int) -> float:
    """Distance below which a pair of a set is certain; 0 if none is.

    Parameters
    ----------
    n_faces : int
        Size of the set.
    """
    n_pairs = n_faces * (n_faces - 1) / 2
    if n_pairs < 1:
        return 0.0
    share = _EXPECTED_WRONG / n_pairs
    if share < _SHARES_NEARER[0]:
        return 0.0
    logs = np.log(_SHARES_NEARER)
    return float(np.interp(np.log(share), logs, _DISTANCES))


def find_certain_pairs(features: FloatArray, photos: IntArray) -> IntArray:
    """Find pairs that are of one person, as few as join all of them.

    Parameters
    ----------
    features : ndarray of shape (n_faces, 128), float32
        As dlib's network gives them.
    photos : ndarray of shape (n_faces,)
        Photo of each face. Faces of one photo are of different people, so a pair that would join
        two of them, also through others, is left out.

    Returns
    -------
    pairs : ndarray of shape (n_pairs, 2)
        Rows, the nearest pair first. The pairs form no circle.
    """
    bound = certain_distance(len(features)) if len(features) <= _MOST_FACES else 0.0
    if bound <= 0:
        return np.empty((0, 2), np.int64)
    first, second = np.triu_indices(len(features), 1)
    wide = features.astype(np.float64)
    squares = (wide**2).sum(axis=1)
    squared = squares[first] + squares[second] - 2 * (wide @ wide.T)[first, second]
    near = np.flatnonzero(squared < bound**2)
    order = near[np.argsort(squared[near], kind="stable")]
    people = [{int(photo)} for photo in photos]
    group = np.arange(len(features))
    pairs = []
    for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True):
        kept, joined = int(group[a]), int(group[b])
        if kept != joined and not people[kept] & people[joined]:
            people[kept] |= people[joined]
            group[group == joined] = kept
            pairs.append((a, b))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
