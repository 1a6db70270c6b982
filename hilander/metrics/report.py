"""All scores of a clustering in one value, and a text table of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from hilander.arrays.rows import IntArray
from hilander.metrics.contingency import build_contingency, encode_side
from hilander.metrics.scores import (
    PrecisionRecall,
    ari_of,
    bcubed_of,
    nmi_of,
    pairwise_of,
    pure_share_of,
)


class LevelLabels(Protocol):
    """The part of a hierarchy that is scored."""

    @property
    def n_levels(self) -> int:
        """Number of levels."""

    def labels(self, level: int, /) -> IntArray:
        """Cluster of each point at a level counted from 0, of shape (n_points,)."""


@dataclass(frozen=True)
class Scores:
    """Scores of a clustering against the true identities.

    Parameters
    ----------
    pairwise, bcubed : PrecisionRecall
        Over pairs of points, and over points.
    nmi : float, in [0, 1]
        Normalised mutual information, arithmetic mean.
    ari : float, in [-0.5, 1]
        Adjusted Rand index.
    n_clusters, n_identities : int
        Predicted clusters and true identities.
    pure_share : float, in [0, 1]
        Share of the points in clusters that hold all points of one identity and no others.
    n_points : int
    """

    pairwise: PrecisionRecall
    bcubed: PrecisionRecall
    nmi: float
    ari: float
    n_clusters: int
    n_identities: int
    pure_share: float
    n_points: int

    def to_dict(self) -> dict[str, float | int]:
        """The scores as one flat dictionary for JSON."""
        return {
            "pairwise_f": self.pairwise.f,
            "pairwise_precision": self.pairwise.precision,
            "pairwise_recall": self.pairwise.recall,
            "bcubed_f": self.bcubed.f,
            "bcubed_precision": self.bcubed.precision,
            "bcubed_recall": self.bcubed.recall,
            "nmi": self.nmi,
            "ari": self.ari,
            "n_clusters": self.n_clusters,
            "n_identities": self.n_identities,
            "pure_share": self.pure_share,
            "n_points": self.n_points,
        }


def score_clustering(true: ArrayLike, pred: ArrayLike) -> Scores:
    """Score a clustering by all metrics, from one contingency table.

    Parameters
    ----------
    true, pred : array-like of shape (n_points,)
        True identity and cluster of each point.

    Returns
    -------
    scores : Scores
    """
    table = build_contingency(true, pred)
    return Scores(
        pairwise=pairwise_of(table),
        bcubed=bcubed_of(table),
        nmi=nmi_of(table),
        ari=ari_of(table),
        n_clusters=table.n_clusters,
        n_identities=table.n_identities,
        pure_share=pure_share_of(table),
        n_points=table.n_points,
    )


def score_levels(hierarchy: LevelLabels, true: ArrayLike) -> list[Scores]:
    """Score every level of a hierarchy, finest first.

    Parameters
    ----------
    hierarchy : object with ``n_levels`` and ``labels(level)``
    true : array-like of shape (n_points,)
        True identity of each point.

    Returns
    -------
    scores : list of Scores, of length n_levels
    """
    codes, _ = encode_side(true, "true")  # once: strings are slow to encode
    return [score_clustering(codes, hierarchy.labels(i)) for i in range(hierarchy.n_levels)]


def format_scores(rows: Mapping[str, Scores]) -> str:
    """Format scores as a plain text table.

    Parameters
    ----------
    rows : mapping of name to Scores
        One line for each, in the order of the mapping.

    Returns
    -------
    table : str
        A header and the lines, without a final newline.
    """
    cells: list[tuple[str, ...]] = [("name", "Fp", "Fb", "NMI", "clusters / true")]
    for name, scores in rows.items():
        shares = (scores.pairwise.f, scores.bcubed.f, scores.nmi)
        counts = f"{scores.n_clusters:,} / {scores.n_identities:,}"
        # A line break in a name would break the table.
        cells.append((" ".join(name.split()), *(f"{share:.3f}" for share in shares), counts))
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    )
