"""The page of the wide suite, ``docs/results/wide.md``, from rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.datasets import FACE_LIKE
from benchmarks.rows import RESULTS, ROOT, put_block, read_rows
from benchmarks.wide_sets import GROUPS, SETS, TEST_SCALES, TRAIN_SCALES
from benchmarks.wide_worker import FITTED, METHODS, PRETRAINED

ROWS = RESULTS / "wide.jsonl"
PAGE = ROOT / "docs" / "results" / "wide.md"
MARKS = ("<!-- wide: begin -->", "<!-- wide: end -->")
SHOWN = ("pairwise_f", "bcubed_f", "nmi")
MISSING = "missing"  # start of the error of a pretrained model that has not been made
REFUSED = "†"

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One method on one test set, the mean over seeds.

    Parameters
    ----------
    scores : dict of str to float
        Of `SHOWN`; empty if there is no result.
    error : str or None
        Why there is no result, or why seeds are missing.
    refused : bool
        Whether the method refused some of the draws.
    """

    scores: dict[str, float]
    error: str | None
    refused: bool

    @property
    def counts(self) -> bool:
        """Whether the cell counts in means and ranks: a failure does, a missing model does not."""
        return bool(self.scores) or not (self.error or "").startswith(MISSING)

    @property
    def bcubed_f(self) -> float:
        """BCubed F; 0 for a failure."""
        return self.scores.get("bcubed_f", 0.0)


Cells = Mapping[tuple[str, str], Cell]


def select_latest(rows: Iterable[Row]) -> list[Row]:
    """The rows that count: of each set and method, those of the last data and the last commit.

    Of several rows of one seed, the last counts. A row of a missing model counts only if there is
    no other.
    """
    rows = list(rows)
    data = {row["dataset"]: row["dataset_hash"] for row in rows}
    rows = [row for row in rows if row["dataset_hash"] == data[row["dataset"]]]
    commit = {(row["dataset"], row["method"]): row["commit"] for row in rows}
    kept: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        key = (row["dataset"], row["method"])
        if row["commit"] != commit[key]:
            continue
        seeds = kept.setdefault(key, {})
        if not is_missing(row):
            for seed in [seed for seed, one in seeds.items() if is_missing(one)]:
                del seeds[seed]  # the model has been made since
        if not (is_missing(row) and seeds):
            seeds[row["seed"]] = row
    return [row for seeds in kept.values() for row in seeds.values()]


def is_missing(row: Row) -> bool:
    """Whether a row stands for a pretrained model that has not been made."""
    return (row["error"] or "").startswith(MISSING)


def collect_cells(rows: Iterable[Row]) -> dict[tuple[str, str], Cell]:
    """A cell for each measured set and method. A seed that failed counts as scores of 0."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in select_latest(rows):
        grouped.setdefault((row["dataset"], row["method"]), []).append(row)
    cells = {}
    for key, some in grouped.items():
        good = [row for row in some if not row["error"]]
        means = {name: sum(row[name] for row in good) / len(some) for name in SHOWN}
        error = next((row["error"] for row in some if row["error"]), None)
        cells[key] = Cell(means if good else {}, error, any(row["refused"] for row in good))
    return cells


@dataclass(frozen=True)
class Standing:
    """One method against others, over the test sets.

    Parameters
    ----------
    n_sets, n_rivals : int
        Sets on which the method and at least one rival were run; rivals run on any of them.
    rank : float
        Mean rank by BCubed F, from 1; ties share their mean rank.
    bcubed_f : float
        Mean over sets; a failure counts as 0.
    best : float
        Mean over sets of the best rival's BCubed F, another rival for each set.
    worst_set, worst_rival : str
        Set with the lowest difference to the best rival, and that rival.
    difference : float
        BCubed F minus that of the best rival, on the worst set.
    """

    n_sets: int
    n_rivals: int
    rank: float
    bcubed_f: float
    best: float
    worst_set: str
    worst_rival: str
    difference: float


def compare_with(cells: Cells, method: str, rivals: Sequence[str]) -> Standing | None:
    """Compare a method with rivals; None if no set has both."""
    ranks, own, best, differences, used = [], [], [], [], set()
    for name in SETS:
        mine = cells.get((name, method))
        others = {
            rival: cell.bcubed_f
            for rival in rivals
            if (cell := cells.get((name, rival))) is not None and cell.counts
        }
        if mine is None or not mine.counts or not others:
            continue
        used |= set(others)
        ranks.append(float(rankdata([-mine.bcubed_f, *(-one for one in others.values())])[0]))
        own.append(mine.bcubed_f)
        strongest = max(others, key=lambda rival: others[rival])
        best.append(others[strongest])
        differences.append((mine.bcubed_f - others[strongest], name, strongest))
    if not own:
        return None
    difference, worst_set, worst_rival = min(differences)
    means = (float(np.mean(values)) for values in (ranks, own, best))
    return Standing(len(own), len(used), *means, worst_set, worst_rival, difference)


def list_rivals(*kinds: str) -> list[str]:
    """Names of the methods of the given kinds."""
    return [name for name, method in METHODS.items() if method.kind in kinds]


def format_summary(cells: Cells) -> str:
    """The table at the top: the fitted and the pretrained model against the rivals."""
    every, untuned = list_rivals("tuned", "untuned"), list_rivals("untuned")
    lines = [
        "| model | rivals | sets | mean rank | mean Fb | mean Fb of the best rival of each set "
        "| worst set (Fb minus that of the best rival) |",
        "|---|---|---|---|---|---|---|",
    ]
    for label, method, rivals, kinds in (
        ("fitted", FITTED, every, "tuned and untuned"),
        ("pretrained", PRETRAINED, untuned, "untuned"),
        ("pretrained", PRETRAINED, every, "tuned and untuned"),
    ):
        one = compare_with(cells, method, rivals)
        if one is None:
            lines.append(f"| {label} | {kinds} | 0 | not run | | | |")
            continue
        lines.append(
            f"| {label} | {one.n_rivals}, {kinds} | {one.n_sets} "
            f"| {one.rank:.2f} of {one.n_rivals + 1} | {show(one.bcubed_f)} | {show(one.best)} "
            f"| {one.worst_set}: {one.difference:+.3f} ({one.worst_rival}) |"
        )
    return "\n".join(lines)


def format_methods(cells: Cells) -> str:
    """Mean rank among all methods and mean BCubed F of each method, by rising rank."""
    ranked = []
    for method in METHODS:
        one = compare_with(cells, method, [other for other in METHODS if other != method])
        if one is not None:
            failed = sum(
                bool(cell.counts and cell.error)
                for (name, of), cell in cells.items()
                if of == method and name in SETS
            )
            ranked.append((one.rank, method, one, failed))
    lines = ["| method | sets | failed | mean rank | mean Fb |", "|---|---|---|---|---|"]
    for rank, method, one, failed in sorted(ranked, key=lambda row: row[:2]):
        lines.append(
            f"| {method} | {one.n_sets} | {failed} | {rank:.2f} of {one.n_rivals + 1} "
            f"| {show(one.bcubed_f)} |"
        )
    return "\n".join(lines)


def format_group(cells: Cells, group: str) -> str:
    """One table: methods by sets of a group, Fp / Fb / NMI, the best of each score in bold."""
    names = [name for name, one in SETS.items() if one.group == group]
    lines = ["| method | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    best = {name: find_best(cells, name) for name in names}
    errors = []
    for method in METHODS:
        texts = []
        for name in names:
            cell = cells.get((name, method))
            texts.append(_show_cell(cell, best[name]))
            if cell is not None and cell.error and cell.counts:
                errors.append(f"- {method} on {name}: {cell.error}")
        lines.append(f"| {method} | " + " | ".join(texts) + " |")
    return "\n".join([*lines, "", "Errors:", "", *errors] if errors else lines)


def find_best(cells: Cells, name: str) -> dict[str, str]:
    """The highest value of each score on one set, as it is shown."""
    found = [cell.scores for (of, _), cell in cells.items() if of == name and cell.scores]
    return {key: show(max(one[key] for one in found)) for key in SHOWN} if found else {}


def _show_cell(cell: Cell | None, best: Mapping[str, str]) -> str:
    if cell is None:
        return "not run"
    if not cell.scores:
        return "*failed*" if cell.counts else "*missing*"
    texts = [show(cell.scores[key]) for key in SHOWN]
    bold = [
        f"**{text}**" if text == best[key] else text for key, text in zip(SHOWN, texts, strict=True)
    ]
    return " / ".join(bold) + (f" {REFUSED}" if cell.refused else "")


def show(value: float) -> str:
    """A score with three decimals, without the zero before the point."""
    return f"{value:.3f}".removeprefix("0")


def format_circumstances(rows: Sequence[Row]) -> str:
    """Commits, machines and the most seeds of the rows that are shown."""
    rows = select_latest(rows)
    commits = sorted({row["commit"] for row in rows})
    machines = sorted({row["machine"] for row in rows})
    seeds = max(row["seed"] for row in rows) + 1
    return f"Commits {', '.join(commits)}; {'; '.join(machines)}; up to {seeds} seeds."


def format_scales() -> str:
    """The scales of the face-like sets, as one sentence."""
    tests = ", ".join(
        f"{name} {TEST_SCALES[name]} after {train} {TRAIN_SCALES[train]}"
        for name, (train, _) in FACE_LIKE.items()
    )
    return f"Scales of the face-like presets (share of the identities), test after train: {tests}."


def format_page(rows: Sequence[Row]) -> str:
    """Everything between the marks of the page."""
    if not rows:
        return f"{format_scales()}\n\nNot measured yet."
    cells = collect_cells(rows)
    parts = [format_circumstances(rows), "## Summary", format_summary(cells)]
    parts += ["Each method among all others:", format_methods(cells)]
    for group, title in GROUPS.items():
        parts += [f"## {title}", *([format_scales()] if group == "face-like" else [])]
        parts.append(format_group(cells, group))
    return "\n\n".join(parts)


def render(rows: Path = ROWS, page: Path = PAGE) -> None:
    """Write the page from the rows."""
    text = page.read_text(encoding="utf-8")
    page.write_text(put_block(text, MARKS, format_page(read_rows(rows))), encoding="utf-8")
