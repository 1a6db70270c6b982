"""Content of a report, before it is laid out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.explorer.partition.grouping import Grouping, group_by_level
from hilander.explorer.partition.summary import choose_exemplars, count_sizes, show_share
from hilander.explorer.review.wording import describe_event
from hilander.explorer.review_log.state import ReviewState
from hilander.explorer.run.map_layout import MapLayout
from hilander.explorer.run.run_folder import Run
from hilander.explorer.session.explorer import Explorer
from hilander.metrics.report import Scores, score_clustering

# Clusters under one heading, and members of each: what a reader looks at.
SHOWN_CLUSTERS = 8
SHOWN_IMAGES = 12
# Named clusters and corrections that are listed: a reader wants all of them, a file has an end.
SHOWN_NAMED = 60
SHOWN_CORRECTIONS = 300


@dataclass(frozen=True, eq=False)
class Shown:
    """Clusters shown under one heading.

    Parameters
    ----------
    title, note : str
    clusters : list of int
    titles : list of str
        Name of each cluster, or its number.
    members : list of ndarray
        Rows shown of each cluster.
    facts : list of str
        Description of each cluster.
    """

    title: str
    note: str
    clusters: list[int]
    titles: list[str]
    members: list[IntArray]
    facts: list[str]


@dataclass(frozen=True, eq=False)
class LevelFacts:
    """One level of the hierarchy, or the corrected clusters.

    Parameters
    ----------
    name : str
    n_clusters, largest : int
    quality : float, in [0, 1]
        Mean over the clusters.
    scores : Scores, optional
        If true identities are known.
    """

    name: str
    n_clusters: int
    largest: int
    quality: float
    scores: Scores | None


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """Content of a report.

    Parameters
    ----------
    run : Run
    summary : dict of str to str
    levels : list of LevelFacts
        The finest first. The corrected clusters are the last one, if there are corrections.
    labels : ndarray of shape (n_points,)
        Cluster of each point, as corrected.
    sizes : list of dict
        Result of `count_sizes`.
    layout : MapLayout, optional
    colours : ndarray of shape (n_places,)
        Final cluster of each peak of the map.
    shown : list of Shown
    corrections : list of (str, str)
        Date and words of each action of the review that is in force, the last one first.
    n_corrections : int
        Number of all of them; `corrections` has the latest.
    """

    run: Run
    summary: dict[str, str]
    levels: list[LevelFacts]
    labels: IntArray
    sizes: list[dict[str, int]]
    layout: MapLayout | None
    colours: IntArray
    shown: list[Shown]
    corrections: list[tuple[str, str]]
    n_corrections: int

    @property
    def corrections_note(self) -> str:
        """Say which of the corrections are listed."""
        listed, total = len(self.corrections), self.n_corrections
        which = "All actions" if listed == total else f"The latest {listed:,} of {total:,} actions"
        return f"{which} of the review that are in force, the latest first."

    @property
    def level_table(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows of the table of levels."""
        heads = ["Level", "Clusters", "Largest", "Quality"]
        if self.levels[0].scores is not None:
            heads += ["Pairwise F", "BCubed F", "NMI", "ARI"]
        rows = []
        for one in self.levels:
            row = [one.name, f"{one.n_clusters:,}", f"{one.largest:,}", show_share(one.quality)]
            if one.scores is not None:
                found = one.scores
                values = (found.pairwise.f, found.bcubed.f, found.nmi, found.ari)
                row += [f"{value:.3f}" for value in values]
            rows.append(row)
        return heads, rows

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


def gather_facts(explorer: Explorer) -> ReportFacts:
    """Compute the content of a report.

    Parameters
    ----------
    explorer : Explorer
        The run with its review.
    """
    run, review = explorer.run, explorer.review
    _ = explorer.candidates  # doubts are those that the page shows
    grouping = explorer.reviewed()
    layout = explorer.map
    colours = np.empty(0, dtype=np.int64) if layout is None else grouping.labels[layout.points]
    levels = _describe_levels(run, grouping, is_corrected=bool(review.done))
    corrections = [
        (event.at[:10], describe_event(event)) for event in review.done[-SHOWN_CORRECTIONS:][::-1]
    ]
    return ReportFacts(
        run,
        _summarise(run, grouping, review.state, len(review.done), levels[-1].scores),
        levels,
        grouping.labels,
        count_sizes(grouping.sizes[grouping.alive]),
        layout,
        colours,
        _choose_shown(grouping, review.state),
        corrections,
        len(review.done),
    )


def _describe_levels(run: Run, grouping: Grouping, *, is_corrected: bool) -> list[LevelFacts]:
    known = run.items.labels

    def describe(name: str, one: Grouping) -> LevelFacts:
        scores = None if known is None else score_clustering(known.codes, one.labels)
        quality = float(one.quality[one.alive].mean())
        return LevelFacts(name, int(one.alive.sum()), int(one.sizes.max()), quality, scores)

    levels = [describe(f"Level {n}", group_by_level(run, n)) for n in range(run.n_levels)]
    return [*levels, describe("As corrected", grouping)] if is_corrected else levels


def _summarise(
    run: Run, grouping: Grouping, state: ReviewState, n_actions: int, scores: Scores | None
) -> dict[str, str]:
    """Return the numbers at the top."""
    sizes = grouping.sizes[grouping.alive]
    summary = {
        "items": f"{run.n_points:,}",
        "clusters": f"{len(sizes):,}",
        "levels": str(run.n_levels),
        "of one item": f"{int((sizes == 1).sum()):,}",
        "largest": f"{int(sizes.max()):,}",
        "median size": f"{int(np.median(sizes)):,}",
    }
    if run.details.get("remark"):
        summary["remark"] = str(run.details["remark"])
    if n_actions:
        summary |= {"named": f"{len(state.names):,}", "corrections": f"{n_actions:,}"}
        if state.junk:
            summary["marked as junk"] = f"{len(state.junk):,}"
    if scores is not None:
        summary |= {
            "pairwise F": f"{scores.pairwise.f:.3f}",
            "BCubed F": f"{scores.bcubed.f:.3f}",
            "NMI": f"{scores.nmi:.3f}",
            "true identities": f"{scores.n_identities:,}",
        }
    return summary


def _choose_shown(grouping: Grouping, state: ReviewState) -> list[Shown]:
    by_size = grouping.order("size")
    named = by_size[np.isin(by_size, list(state.names))]
    chosen = [
        _show(grouping, state, "Named clusters", _count_named(len(named)), named[:SHOWN_NAMED]),
    ]
    good = ~np.isin(np.arange(grouping.n_groups), list(state.junk))
    largest = by_size[good[by_size]]
    note = "Clusters with the most items."
    chosen.append(_show(grouping, state, "Largest clusters", note, largest[:SHOWN_CLUSTERS]))
    doubtful = grouping.order("doubt")
    doubtful = doubtful[(grouping.doubt[doubtful] > 0) & good[doubtful]]
    note = "Clusters that most probably hold items of another identity."
    doubted = doubtful[:SHOWN_CLUSTERS]
    chosen.append(_show(grouping, state, "Most doubtful clusters", note, doubted))
    purity = grouping.purity
    if purity is not None:
        misplaced = np.round((1 - purity) * grouping.sizes).astype(np.int64)
        mixed = np.argsort(-misplaced, kind="stable")
        mixed = mixed[(misplaced[mixed] > 0) & good[mixed]][:SHOWN_CLUSTERS]
        note = "Clusters with the most items outside of their most frequent identity."
        chosen.append(_show(grouping, state, "Most mixed clusters", note, mixed))
    return [one for one in chosen if one.clusters]


def _count_named(count: int) -> str:
    if count <= SHOWN_NAMED:
        return "Clusters that were given a name, the largest first."
    return f"The {SHOWN_NAMED} largest of {count:,} clusters that were given a name."


def _show(
    grouping: Grouping, state: ReviewState, title: str, note: str, clusters: IntArray
) -> Shown:
    chosen = clusters.tolist()
    members = [choose_exemplars(grouping.members(cluster), SHOWN_IMAGES) for cluster in chosen]
    purity = grouping.purity
    titles, facts = [], []
    for cluster in chosen:
        titles.append(state.names.get(cluster, f"Cluster {cluster}"))
        values = [f"#{cluster}"] if cluster in state.names else []
        values.append(f"{int(grouping.sizes[cluster]):,} items")
        values.append(f"doubt {show_share(grouping.doubt[cluster])}")
        if purity is not None:
            values.append(f"purity {show_share(purity[cluster])}")
        values += ["junk"] * (cluster in state.junk) + ["edited"] * (cluster in state.changed)
        facts.append(", ".join(values))
    return Shown(title, note, chosen, titles, members, facts)
