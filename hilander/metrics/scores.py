"""Agreement of a clustering with the true identities.

Every metric takes ``(true, pred)``: two labellings of the same points. The names of the labels and
the order of the points have no effect. -1 is a label like any other, so noise points are one
cluster unless they are given different labels or left out. All metrics are computed from a sparse
table of identities against clusters, so a million points take seconds.

Conventions for degenerate cases:

- *pairwise*: two partitions into singletons score 1. If just one of them has pairs, precision,
  recall and F are 0.
- *NMI*: 1 if both sides are one group, 0 if just one side is. NMI and ARI are equal to those of
  scikit-learn.
- *BCubed* pairs every point with itself too, so it is always defined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hilander.arrays.rows import IntArray
from hilander.errors import SettingError
from hilander.metrics.contingency import Contingency, build_contingency, encode_side


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision and recall, and their harmonic mean F.

    Parameters
    ----------
    precision : float, in [0, 1]
        Share of what was joined that belongs together.
    recall : float, in [0, 1]
        Share of what belongs together that was joined.
    """

    precision: float
    recall: float

    def __post_init__(self) -> None:
        for name, value in (("precision", self.precision), ("recall", self.recall)):
            if not 0.0 <= value <= 1.0:
                raise SettingError(f"{name}={value}, expected a share in [0, 1]; check the counts")

    @property
    def f(self) -> float:
        """Harmonic mean of precision and recall, in [0, 1]; 0 if both are 0."""
        total = self.precision + self.recall
        return 2.0 * self.precision * self.recall / total if total > 0 else 0.0


def pairwise_f(true: ArrayLike, pred: ArrayLike) -> float:
    """Pairwise F (Fp): agreement on which pairs of points belong together.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point; -1 is a label like any other.

    Returns
    -------
    f : float, in [0, 1]
    """
    return pairwise_scores(true, pred).f


def pairwise_scores(true: ArrayLike, pred: ArrayLike) -> PrecisionRecall:
    """Precision and recall over unordered pairs of different points.

    Precision is the share of pairs in one cluster that are of one identity, recall the share of
    pairs of one identity that are in one cluster. The weight of a group is its size squared.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point; -1 is a label like any other.

    Returns
    -------
    scores : PrecisionRecall
        Both 1 if neither side has a pair, both 0 if just one side has none.
    """
    return pairwise_of(build_contingency(true, pred))


def bcubed_f(true: ArrayLike, pred: ArrayLike) -> float:
    """BCubed F (Fb): agreement averaged over the points.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point; -1 is a label like any other.

    Returns
    -------
    f : float, in (0, 1]
        Harmonic mean of the mean precision and the mean recall.
    """
    return bcubed_scores(true, pred).f


def bcubed_scores(true: ArrayLike, pred: ArrayLike) -> PrecisionRecall:
    """Precision and recall averaged over points.

    For a point of identity ``t`` in cluster ``c``, with ``t & c`` the points they share and the
    point itself included: precision is ``|t & c| / |c|``, recall ``|t & c| / |t|``. Every point has
    the same weight, so small groups count.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point; -1 is a label like any other.

    Returns
    -------
    scores : PrecisionRecall
        Both in (0, 1].
    """
    return bcubed_of(build_contingency(true, pred))


def nmi(true: ArrayLike, pred: ArrayLike) -> float:
    """Normalised mutual information, with the arithmetic mean of the entropies.

    ``2 I(T; C) / (H(T) + H(C))``. Many small clusters raise it whatever they hold, so
    read it together with the F scores.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point; -1 is a label like any other.

    Returns
    -------
    nmi : float, in [0, 1]
    """
    return nmi_of(build_contingency(true, pred))


def ari(true: ArrayLike, pred: ArrayLike) -> float:
    """Adjusted Rand index: agreement on pairs, corrected for chance.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point; -1 is a label like any other.

    Returns
    -------
    ari : float, in [-0.5, 1]
        0 on average for random labels, 1 for equal partitions.
    """
    return ari_of(build_contingency(true, pred))


def pure_share(true: ArrayLike, pred: ArrayLike) -> float:
    """Share of the points in correct clusters.

    A cluster is correct if it holds all points of one identity and no others. This is the share of
    the points that a user need not review.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point; -1 is a label like any other.

    Returns
    -------
    share : float, in [0, 1]
    """
    return pure_share_of(build_contingency(true, pred))


def purity(true: ArrayLike, pred: ArrayLike) -> float:
    """Share of the points that have the commonest identity of their cluster.

    Splitting is not penalised: singletons have purity 1.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point; -1 is a label like any other.

    Returns
    -------
    purity : float, in (0, 1]
    """
    table = build_contingency(true, pred)
    largest = np.zeros(table.n_clusters, dtype=np.int64)
    np.maximum.at(largest, table.cell_pred, table.counts)
    return int(largest.sum()) / table.n_points


def n_clusters(labels: ArrayLike) -> int:
    """Number of different labels.

    Parameters
    ----------
    labels : array-like of shape (n_points,)

    Returns
    -------
    count : int, at least 1
    """
    return encode_side(labels, "labels")[1]


def pairwise_of(table: Contingency) -> PrecisionRecall:
    """Pairwise scores of a contingency table."""
    shared = _count_pairs(table.counts)
    together = _count_pairs(table.pred_sizes)
    belonging = _count_pairs(table.true_sizes)
    if together == belonging == 0:
        return PrecisionRecall(1.0, 1.0)
    return PrecisionRecall(shared / max(together, 1), shared / max(belonging, 1))


def bcubed_of(table: Contingency) -> PrecisionRecall:
    """BCubed scores of a contingency table."""
    # Each of the c points of a cell has precision c / |cluster|: the cell adds c * c / |cluster|.
    squares = table.counts.astype(np.float64) ** 2
    precision = float((squares / table.pred_sizes[table.cell_pred]).sum()) / table.n_points
    recall = float((squares / table.true_sizes[table.cell_true]).sum()) / table.n_points
    # By rounding, a sum of many fractions can exceed 1.
    return PrecisionRecall(min(precision, 1.0), min(recall, 1.0))


def nmi_of(table: Contingency) -> float:
    """Normalised mutual information of a contingency table."""
    separate = _entropy(table.true_sizes) + _entropy(table.pred_sizes)
    if table.n_identities == table.n_clusters == 1:
        return 1.0
    # I(T; C) = H(T) + H(C) - H(T, C)
    information = separate - _entropy(table.counts)
    return min(max(2.0 * information / separate, 0.0), 1.0)


def ari_of(table: Contingency) -> float:
    """Adjusted Rand index of a contingency table."""
    # Python integers: products of pair counts overflow int64 from about 80,000 points on.
    shared = _count_pairs(table.counts)
    merged_wrongly = _count_pairs(table.pred_sizes) - shared
    split_wrongly = _count_pairs(table.true_sizes) - shared
    if merged_wrongly == split_wrongly == 0:
        return 1.0
    all_pairs = table.n_points * (table.n_points - 1) // 2
    apart = all_pairs - shared - merged_wrongly - split_wrongly
    above_chance = 2 * (shared * apart - merged_wrongly * split_wrongly)
    possible = (shared + split_wrongly) * (split_wrongly + apart)
    possible += (shared + merged_wrongly) * (merged_wrongly + apart)
    return above_chance / possible


def pure_share_of(table: Contingency) -> float:
    """Share of points in correct clusters, of a contingency table."""
    whole_identity = table.counts == table.true_sizes[table.cell_true]
    whole_cluster = table.counts == table.pred_sizes[table.cell_pred]
    return int(table.counts[whole_identity & whole_cluster].sum()) / table.n_points


def _count_pairs(sizes: IntArray) -> int:
    return int((sizes * (sizes - 1) // 2).sum())


def _entropy(sizes: IntArray) -> float:
    # Sorted, so that renaming labels does not change the rounding and equal partitions give 1.
    share = np.sort(sizes) / sizes.sum()
    return float(-(share * np.log(share)).sum())
