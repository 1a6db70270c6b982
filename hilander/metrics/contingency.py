"""The sparse table of identities against clusters, from which all metrics are computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hilander.arrays.rows import IntArray
from hilander.embeddings.labels import encode_labels
from hilander.errors import LabelError


@dataclass(frozen=True)
class Contingency:
    """Number of points of each identity in each cluster, non-empty cells only.

    A dense table of 50,000 identities and 60,000 clusters would take 24 GB. The number of non-empty
    cells is at most the number of points.

    Parameters
    ----------
    counts : ndarray of shape (n_cells,), positive
        Points in each non-empty cell.
    cell_true, cell_pred : ndarray of shape (n_cells,)
        Identity and cluster of each cell, as codes from 0.
    true_sizes : ndarray of shape (n_identities,), positive
        Points of each identity.
    pred_sizes : ndarray of shape (n_clusters,), positive
        Points of each cluster.
    """

    counts: IntArray
    cell_true: IntArray
    cell_pred: IntArray
    true_sizes: IntArray
    pred_sizes: IntArray

    def __post_init__(self) -> None:
        if not len(self.counts) == len(self.cell_true) == len(self.cell_pred):
            raise LabelError(
                f"a contingency has {len(self.counts)} counts for {len(self.cell_true)} identities "
                f"and {len(self.cell_pred)} clusters of cells; give one of each for every cell"
            )
        totals = {int(a.sum()) for a in (self.counts, self.true_sizes, self.pred_sizes)}
        if len(totals) != 1:
            raise LabelError(
                f"cells, identities and clusters count different points {sorted(totals)}, expected "
                "one number; build it with build_contingency"
            )

    @property
    def n_points(self) -> int:
        """Number of labelled points."""
        return int(self.counts.sum())

    @property
    def n_identities(self) -> int:
        """Number of true identities."""
        return len(self.true_sizes)

    @property
    def n_clusters(self) -> int:
        """Number of predicted clusters."""
        return len(self.pred_sizes)


def build_contingency(true: ArrayLike, pred: ArrayLike) -> Contingency:
    """Count the points of each (identity, cluster) pair that occurs.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point: integers, strings or other labels. Every value is
        one group, also -1. Give noise points different labels if they are singletons.

    Returns
    -------
    contingency : Contingency
        Memory and time grow with the number of points.

    Raises
    ------
    LabelError
        If there are no points, or the two do not label the same number of points.
    """
    true_codes, n_true = encode_side(true, "true")
    pred_codes, n_pred = encode_side(pred, "pred")
    if len(true_codes) != len(pred_codes):
        raise LabelError(
            f"true has {len(true_codes)} labels and pred has {len(pred_codes)}, expected the same "
            "number; give both for the same points in the same order"
        )
    # One integer a pair: below n_points ** 2, so int64 holds it up to 3e9 points.
    cells, counts = np.unique(true_codes * n_pred + pred_codes, return_counts=True)
    return Contingency(
        counts=counts.astype(np.int64, copy=False),
        cell_true=cells // n_pred,
        cell_pred=cells % n_pred,
        true_sizes=np.bincount(true_codes, minlength=n_true).astype(np.int64, copy=False),
        pred_sizes=np.bincount(pred_codes, minlength=n_pred).astype(np.int64, copy=False),
    )


def encode_side(labels: ArrayLike, name: str) -> tuple[IntArray, int]:
    """Encode the labels of one side: codes from 0, and the number of different labels.

    Parameters
    ----------
    labels : array-like of shape (n_points,)
    name : str
        Name of the labels in errors.

    Returns
    -------
    codes : ndarray of shape (n_points,), int64, in [0, n_values)
    n_values : int

    Raises
    ------
    LabelError
        If there are none, one is missing, or they are not one column.
    """
    if labels is None:
        raise LabelError(
            f"{name} is None, expected one label for each point; give labels to compare"
        )
    try:
        codes, classes = encode_labels(labels)
    except LabelError as error:
        # There are two sets of labels: name the invalid one.
        raise LabelError(f"{name}: {error}") from error
    return codes, len(classes)
