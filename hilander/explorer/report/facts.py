"""Content of a report, before it is laid out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.explorer.partition.grouping import Grouping, group_by_level
from hilander.explorer.partition.summary import choose_exemplars, count_sizes
from hilander.explorer.run.map_layout import MapLayout, build_map
from hilander.explorer.run.run_folder import Run
from hilander.metrics.report import Scores, score_clustering

# Clusters under one heading, and members of each: what a reader looks at.
SHOWN_CLUSTERS = 8
SHOWN_IMAGES = 12


@dataclass(frozen=True, eq=False)
class Shown:
    """Clusters shown under one heading.

    Parameters
    ----------
    title, note : str
    clusters : list of int
    members : list of ndarray
        Rows shown of each cluster.
    facts : list of str
        Description of each cluster.
    """

    title: str
    note: str
    clusters: list[int]
    members: list[IntArray]
    facts: list[str]


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """Content of a report.

    Parameters
    ----------
    run : Run
    summary : dict of str to str
    scores : list of Scores, optional
        Scores of each level, the finest first.
    sizes : list of dict
        Result of `count_sizes`.
    layout : MapLayout, optional
    colours : ndarray of shape (n_places,)
        Final cluster of each peak of the map.
    shown : list of Shown
    """

    run: Run
    summary: dict[str, str]
    scores: list[Scores] | None
    sizes: list[dict[str, int]]
    layout: MapLayout | None
    colours: IntArray
    shown: list[Shown]

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the run, if it has them."""
        settings = self.run.details.get("settings")
        return settings if isinstance(settings, dict) else {}

    @property
    def versions(self) -> dict[str, Any]:
        """Versions of the packages, if the run has them."""
        versions = self.run.details.get("versions")
        return versions if isinstance(versions, dict) else {}

    @property
    def stages(self) -> list[tuple[str, float]]:
        """Stages and their seconds, if the run has them."""
        stages = self.run.details.get("stages")
        if not isinstance(stages, list):
            return []
        return [
            (str(stage.get("stage")), float(stage.get("seconds") or 0))
            for stage in stages
            if isinstance(stage, dict)
        ]


def gather_facts(run: Run, cache: Path | None = None) -> ReportFacts:
    """Compute the content of a report.

    Parameters
    ----------
    run : Run
    cache : Path, optional
        Folder of map layouts that were computed before.
    """
    grouping = group_by_level(run, run.n_levels - 1)
    known = run.items.labels
    scores = None
    if known is not None:
        scores = [score_clustering(known.codes, table.labels) for table in run.nested.tables]
    layout = build_map(run, cache)
    colours = np.empty(0, dtype=np.int64) if layout is None else grouping.labels[layout.points]
    sizes = grouping.sizes
    summary = {
        "items": f"{run.n_points:,}",
        "clusters": f"{len(sizes):,}",
        "levels": str(run.n_levels),
        "of one item": f"{int((sizes == 1).sum()):,}",
        "largest": f"{int(sizes.max()):,}",
        "median size": f"{int(np.median(sizes)):,}",
    }
    if scores is not None:
        summary |= {
            "pairwise F": f"{scores[-1].pairwise.f:.3f}",
            "BCubed F": f"{scores[-1].bcubed.f:.3f}",
            "NMI": f"{scores[-1].nmi:.3f}",
            "true identities": f"{scores[-1].n_identities:,}",
        }
    shown = _choose_shown(grouping)
    return ReportFacts(run, summary, scores, count_sizes(sizes), layout, colours, shown)


def _choose_shown(grouping: Grouping) -> list[Shown]:
    chosen = [
        _show(
            grouping, "Largest clusters", "Clusters with the most items.", grouping.order("size")
        ),
    ]
    doubtful = grouping.order("doubt")
    doubtful = doubtful[grouping.doubt[doubtful] > 0]
    note = "The linkage of the weakest merge inside is the lowest."
    chosen.append(_show(grouping, "Most doubtful clusters", note, doubtful))
    purity = grouping.purity
    if purity is not None:
        misplaced = np.round((1 - purity) * grouping.sizes).astype(np.int64)
        mixed = np.argsort(-misplaced, kind="stable")
        mixed = mixed[misplaced[mixed] > 0]
        note = "Clusters with the most items outside of their most frequent identity."
        chosen.append(_show(grouping, "Most mixed clusters", note, mixed))
    return [one for one in chosen if one.clusters]


def _show(grouping: Grouping, title: str, note: str, clusters: IntArray) -> Shown:
    chosen = clusters[:SHOWN_CLUSTERS].tolist()
    members = [choose_exemplars(grouping.members(cluster), SHOWN_IMAGES) for cluster in chosen]
    purity = grouping.purity
    facts = []
    for cluster in chosen:
        values = [f"{int(grouping.sizes[cluster]):,} items", f"doubt {grouping.doubt[cluster]:.2f}"]
        if purity is not None:
            values.append(f"purity {purity[cluster]:.2f}")
        facts.append(", ".join(values))
    return Shown(title, note, chosen, members, facts)
