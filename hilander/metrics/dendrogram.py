"""Dendrogram purity: how pure the subtrees are that join points of one identity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.embeddings.labels import encode_labels
from hilander.errors import SettingError


def dendrogram_purity(y_true: npt.ArrayLike, children: IntArray) -> float:
    """Mean purity of the smallest subtree that holds a pair of points of one identity.

    For every pair of points of one identity, take the smallest subtree that holds both, and the
    share of its points that are of that identity. The mean over all pairs is 1 if and only if every
    identity is a subtree. A pair that no subtree holds counts with the share of its identity among
    all points. (Heller and Ghahramani, 2005.)

    Parameters
    ----------
    y_true : array-like of shape (n_points,)
    children : ndarray of shape (n_merges, 2)
        The two nodes of each merge; merge m makes node ``n_points + m``. The first two columns of a
        scipy linkage, or `MergeTree.children`.

    Returns
    -------
    purity : float, in [0, 1]; 1 where no identity has two points
    """
    codes = encode_labels(y_true, len(np.asarray(y_true)))[0]
    n_points = len(codes)
    pairs = np.asarray(children, dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or len(pairs) >= max(n_points, 1):
        raise SettingError(
            f"children has shape {pairs.shape}, expected (n_merges, 2) with fewer merges than the "
            f"{n_points} points; give the merges of one tree"
        )
    counts: list[dict[int, int] | None] = [{int(code): 1} for code in codes]
    size = [1] * n_points
    total, found = 0.0, np.zeros(int(codes.max(initial=0)) + 1)
    for left, right in pairs.tolist():
        large, small = counts[left], counts[right]
        if large is None or small is None:
            raise SettingError("a node is merged twice; give the merges of one tree")
        if len(large) < len(small):
            large, small = small, large
        n_below = size[left] + size[right]
        for code, count in small.items():
            before = large.get(code, 0)
            total += before * count * (before + count) / n_below
            found[code] += before * count
            large[code] = before + count
        counts[left] = counts[right] = None
        counts.append(large)
        size.append(n_below)
    identity = np.bincount(codes, minlength=len(found)).astype(float)
    possible = identity * (identity - 1) / 2
    total += float(((possible - found) * identity).sum()) / n_points
    return total / float(possible.sum()) if possible.sum() else 1.0
