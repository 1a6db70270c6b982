"""Rows of a comparison as tables: for the terminal, for Markdown, for HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hilander.comparison.rows import Row


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of several runs; the deviation of one run is 0."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise one value or more."""
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), deviation)

    def show(self, digits: int = 3) -> str:
        """The mean, and the deviation unless it rounds to 0."""
        text = f"{self.mean:.{digits}f}"
        if round(self.deviation, digits) > 0:
            text += f" ± {self.deviation:.{digits}f}"
        return text


@dataclass(frozen=True)
class Summary:
    """All runs of one method on one data set.

    Parameters
    ----------
    method, family, version : str
    n_runs : int
        Runs with a result.
    scores : dict of str to Spread
        pairwise_f, bcubed_f, nmi, ari, n_clusters, tune_seconds, fit_seconds, predict_seconds,
        cpu_seconds, peak_memory; empty if no run had a result.
    params : dict
    error : str or None
        Why results are missing.
    """

    method: str
    family: str
    version: str
    n_runs: int
    scores: dict[str, Spread]
    params: dict[str, Any]
    error: str | None

    def mean(self, name: str) -> float:
        """Mean of a score; NaN if there is none."""
        return self.scores[name].mean if name in self.scores else math.nan

    @property
    def seconds(self) -> float:
        """Time to fit and predict in one run, without tuning; NaN if there is none."""
        return self.mean("fit_seconds") + self.mean("predict_seconds")


_NUMBERS = (
    "pairwise_f", "bcubed_f", "nmi", "ari", "n_clusters", "tune_seconds", "fit_seconds",
    "predict_seconds", "cpu_seconds", "peak_memory",
)  # fmt: skip


def summarise_rows(rows: Iterable[Row]) -> list[Summary]:
    """One summary for each method, by falling BCubed F; methods without a result come last.

    Parameters
    ----------
    rows : iterable of Row
        Of one data set.

    Returns
    -------
    summaries : list of Summary
    """
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    summaries = [_summarise(runs) for runs in by_method.values()]
    return sorted(summaries, key=lambda one: -one.mean("bcubed_f") if one.n_runs else math.inf)


def _summarise(runs: list[Row]) -> Summary:
    good = [row for row in runs if row.error is None]
    scores = {}
    for name in _NUMBERS:
        values = [value for row in good if (value := getattr(row, name)) is not None]
        if values:
            scores[name] = Spread.of(values)
    first = (good or runs)[0]
    error = next((row.error for row in runs if row.error), None)
    return Summary(
        first.method, first.family, first.version, len(good), scores, first.params, error
    )


Column = tuple[str, Callable[[Summary], str]]

COLUMNS: tuple[Column, ...] = (
    ("method", lambda one: one.method),
    ("Fp", lambda one: _show(one, "pairwise_f")),
    ("Fb", lambda one: _show(one, "bcubed_f")),
    ("NMI", lambda one: _show(one, "nmi")),
    ("ARI", lambda one: _show(one, "ari")),
    ("clusters", lambda one: show_count(one.mean("n_clusters"))),
    ("tune s", lambda one: show_seconds(one.mean("tune_seconds"))),
    ("fit s", lambda one: show_seconds(one.mean("fit_seconds"))),
    ("predict s", lambda one: show_seconds(one.mean("predict_seconds"))),
    ("memory GB", lambda one: show_memory(one.mean("peak_memory"))),
    ("settings", lambda one: show_params(one.params)),
)
SHORT = ("method", "Fp", "Fb", "NMI", "clusters", "tune s", "fit s", "predict s")


def tabulate(summaries: Sequence[Summary], names: Sequence[str] | None = None) -> list[list[str]]:
    """Cells of a table, with the header as the first row.

    The row of a method without a result holds its name and its error.

    Parameters
    ----------
    summaries : sequence of Summary
    names : sequence of str, optional
        Names of the columns; all by default.
    """
    columns = [column for column in COLUMNS if names is None or column[0] in names]
    table = [[name for name, _ in columns]]
    for one in summaries:
        if one.n_runs:
            table.append([show(one) for _, show in columns])
        else:
            table.append([one.method, one.error or "no result"])
    return table


def format_comparison(summaries: Sequence[Summary]) -> str:
    """Format a comparison as a table for the terminal, followed by the errors."""
    table = tabulate([one for one in summaries if one.n_runs], SHORT)
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    lines += [
        f"{one.method}: {one.error}" + (f" ({one.n_runs} runs done)" if one.n_runs else "")
        for one in summaries
        if one.error
    ]
    return "\n".join(lines)


def format_markdown(summaries: Sequence[Summary], names: Sequence[str] | None = None) -> str:
    """Format a comparison as a Markdown table; an error takes the place of the first score."""
    table = tabulate(summaries, names)
    width = len(table[0])
    lines = ["| " + " | ".join(table[0]) + " |", "|" + "---|" * width]
    for row in table[1:]:
        cells = [cell.replace("|", "\\|") for cell in row]
        if len(cells) < width:
            cells = [cells[0], f"*{cells[1]}*"] + ["–"] * (width - 2)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _show(one: Summary, name: str) -> str:
    return one.scores[name].show() if name in one.scores else "–"


def show_count(value: float) -> str:
    """A count with thousands separators."""
    return "–" if math.isnan(value) else f"{value:,.0f}"


def show_seconds(value: float) -> str:
    """Seconds, with fewer decimals the more there are."""
    if math.isnan(value):
        return "–"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def show_memory(value: float) -> str:
    """Bytes in GB."""
    return "–" if math.isnan(value) else f"{value / 2**30:.2f}"


def show_params(params: dict[str, Any]) -> str:
    """Settings in one cell."""
    return ", ".join(
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in params.items()
    )
