"""Draws ``docs/results/scale.md`` and its chart from the rows of ``benchmarks.scale``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rows import ROOT
from benchmarks.scale import OURS, RIVALS

Row = dict[str, Any]

PAGE = ROOT / "docs" / "results" / "scale.md"
CHART = ROOT / "docs" / "images" / "scale.png"
TEXT = ROOT / "benchmarks" / "scale_intro.md"
STAGES = ("prepare", "search", "score", "decode", "pool", "write", "other")
# CPU-seconds and bytes of the authors' released code on face-like points, one thread.
RELEASED = {20_000: (10.8, 1.0e9), 100_000: (190.0, 1.4e9), 200_000: (689.0, 1.7e9)}
# Seconds of Hi-LANDER in the paper, on 8 cores and a V100: Hannah and IMDB.
PAPER = {201_240: 37.0, 1_265_173: 511.0}
REAL = ((0.36, 0.60, 0.71, 0.79, 0.88), (-0.28, -0.13, -0.01, 0.12, 0.31), 0.913)
HUGE, TRAINING = "ms1m-like", "training, "


def latest(rows: Sequence[Row]) -> list[Row]:
    """The last row of each method and set. A later error does not replace a result."""
    kept: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row["dataset"], row["method"]
        if row["error"] is None or key not in kept or kept[key]["error"]:
            kept[key] = row
    return sorted(kept.values(), key=lambda row: (row["n"], _rank(row["method"])))


def _rank(method: str) -> int:
    order = [*OURS, *RIVALS]
    return order.index(method) if method in order else len(order)


def render(rows: Sequence[Row], intro: str) -> str:
    """The whole page."""
    rows = latest(rows)
    sized = [row for row in rows if not row["method"].startswith(TRAINING)]
    parts = [intro.rstrip()]
    if not rows:
        return "\n\n".join([*parts, "No run has been recorded yet."]) + "\n"
    parts += ["## Targets", render_targets(rows)]
    for dataset in dict.fromkeys(row["dataset"] for row in sized):
        some = [row for row in sized if row["dataset"] == dataset]
        parts += [_heading(some[0]), render_table(some)]
    trained = [row for row in rows if row["method"].startswith(TRAINING)]
    if trained:
        parts += ["## Training", "\n".join(_describe_training(row) for row in trained)]
    parts += ["## Where the time goes", render_stages(sized)]
    parts += ["## Synthetic points and real faces", render_realism(sized), _footnote(rows)]
    return "\n\n".join(parts) + "\n"


def _heading(row: Row) -> str:
    return f"## {row['n']:,} x {row['d']}"


def render_table(rows: Sequence[Row]) -> str:
    """Methods on one set of points."""
    lines = [
        "| method | seconds | CPU-seconds | peak memory | recall / same identity | clusters | "
        "Fp / Fb / NMI |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        name = row["method"] + (f", k = {row['k']}" if row.get("k") else "")
        if row.get("memory_budget"):
            name += f", within {row['memory_budget']}"
        if row["error"]:
            lines.append(f"| {name} | *{row['error']}* | | | | | |")
            continue
        recall = "–"
        if row.get("recall") is not None:
            recall = f"{row['recall']:.3f} / {row['same_recall']:.3f}"
        scores = " / ".join(f"{row[key]:.3f}" for key in ("pairwise_f", "bcubed_f", "nmi"))
        lines.append(
            f"| {name} | {row['seconds']:,.1f} | {row['cpu_seconds']:,.0f} | "
            f"{row['peak_memory'] / 1e9:.2f} GB | {recall} | {row['n_clusters']:,} | {scores} |"
        )
    n = rows[0]["n"]
    if n in RELEASED:
        seconds, memory = RELEASED[n]
        lines.append(
            f"| *released code (reference number)* | | {seconds:,.0f} | {memory / 1e9:.2f} GB "
            "| exact | | |"
        )
    return "\n".join(lines)


def render_targets(rows: Sequence[Row]) -> str:
    """A table of targets and measured values."""
    lines = ["| what | target | measured |", "|---|---|---|"]
    for what, target, measure in TARGETS:
        lines.append(f"| {what} | {target} | {measure(rows) or 'not measured yet'} |")
    return "\n".join(lines)


def find(rows: Sequence[Row], method: str, low: float, high: float) -> Row | None:
    """The row of a method whose number of points is within bounds; the largest such."""
    some = [
        row
        for row in rows
        if row["method"] == method and low <= row["n"] <= high and not row["error"]
    ]
    return max(some, key=lambda row: row["n"], default=None)


_PAPER, _DEFAULT = OURS


def _of_released(rows: Sequence[Row]) -> str:
    row = find(rows, _PAPER, 190_000, 210_000)
    if row is None:
        return ""
    share = RELEASED[200_000][0] / row["cpu_seconds"]
    return f"1/{share:.1f} ({row['cpu_seconds']:.0f} CPU-s), recall {row['recall']:.3f}"


def _of_million(rows: Sequence[Row]) -> str:
    parts = []
    for method in OURS:
        row = find(rows, method, 1.2e6, 1.3e6)
        if row is not None:
            minutes, memory = row["seconds"] / 60, row["peak_memory"] / 1e9
            parts.append(f"{method}: {minutes:.1f} min, {memory:.1f} GB")
    return "; ".join(parts)


def _of_stages(rows: Sequence[Row]) -> str:
    row = find(rows, _PAPER, 9e5, 1.3e6)
    if row is None:
        return ""
    millions = row["n"] / 1e6
    return (
        f"{row['stages']['score'] / millions:.0f} s and {row['stages']['decode'] / millions:.1f} s"
    )


def _of_growth(rows: Sequence[Row]) -> str:
    parts = []
    for method in OURS:
        small, large = find(rows, method, 190_000, 210_000), find(rows, method, 1.2e6, 1.3e6)
        if small and large:
            time = large["seconds"] / small["seconds"]
            memory = large["peak_memory"] / small["peak_memory"]
            processor = large["cpu_seconds"] / small["cpu_seconds"]
            parts.append(
                f"{method}: time {time:.1f} times (CPU-seconds {processor:.1f}), "
                f"memory {memory:.1f} times"
            )
    return "; ".join(parts)


def _of_training(rows: Sequence[Row]) -> str:
    some = [row for row in rows if row["method"].startswith(TRAINING) and not row["error"]]
    return "; ".join(f"{row['method']}: {row['seconds'] / 60:.1f} min" for row in some)


def _of_rivals(rows: Sequence[Row]) -> str:
    parts = []
    for method in OURS:
        ours = find(rows, method, 190_000, 210_000)
        others = {name: find(rows, name, 190_000, 210_000) for name in RIVALS if name != "k-means"}
        ratios = [
            f"{ours['seconds'] / row['seconds']:.2f} of {name}"
            for name, row in others.items()
            if ours and row
        ]
        if ratios:
            parts.append(f"{method}: {', '.join(ratios)}")
    return "; ".join(parts)


def _of_huge(rows: Sequence[Row]) -> str:
    some = [row for row in rows if row["dataset"].startswith(HUGE) and not row["error"]]
    return "; ".join(
        f"{row['method']}: {row['seconds'] / 60:.0f} min ({row['cpu_seconds'] / 60:.0f} CPU-min), "
        f"{row['peak_memory'] / 2**30:.1f} GiB"
        for row in some
    )


TARGETS: tuple[tuple[str, str, Callable[[Sequence[Row]], str]], ...] = (
    (
        "200 k x 128, end to end, the paper's network",
        "at most 1/10 of the released code's 690 CPU-s, at recall >= 0.95",
        _of_released,
    ),
    ("1.27 M x 128, end to end", "at most 10 minutes, at most 5 GB", _of_million),
    (
        "the paper's network and decoding alone, per million nodes, k = 10, hidden 512",
        "at most 60 s and 5 s",
        _of_stages,
    ),
    ("growth from 200 k to 1.27 M", "time at most 9 times, memory at most 7 times", _of_growth),
    ("training on 100 k x 128", "at most 15 minutes", _of_training),
    (
        "time relative to rivals on 200 k points",
        "below 1 of fast_hdbscan and EVoC, at most 2 of FINCH",
        _of_rivals,
    ),
    ("5.2 M x 256 from a float16 file", "completes within 20 GiB", _of_huge),
)


def _describe_training(row: Row) -> str:
    if row["error"]:
        return f"- {row['method']}, {row['n']:,} points: *{row['error']}*"
    return (
        f"- {row['method']}, {row['n']:,} points of {row['n_identities']:,} identities: "
        f"{row['stages']['train']:,.0f} s, {row['cpu_seconds']:,.0f} CPU-s, "
        f"{row['peak_memory'] / 1e9:.2f} GB; on 20,000 points of other identities Fp "
        f"{row['pairwise_f']:.3f}, Fb {row['bcubed_f']:.3f}, NMI {row['nmi']:.3f}"
    )


def render_stages(rows: Sequence[Row]) -> str:
    """A table of seconds and peak memory of the stages of our methods."""
    lines = [
        "Seconds, and in brackets the most memory held during the stage, in GB.",
        "",
        "| n | method | " + " | ".join(STAGES) + " |",
        "|---|---|" + "---|" * len(STAGES),
    ]
    for row in rows:
        if row["method"] in OURS and not row["error"]:
            cells = [_stage_cell(row, stage) for stage in STAGES]
            lines.append(f"| {row['n']:,} | {row['method']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _stage_cell(row: Row, stage: str) -> str:
    if stage not in row["stages"]:
        return "–"
    held = row["stage_memory"].get(stage)
    return f"{row['stages'][stage]:,.1f}" + (f" ({held / 1e9:.2f})" if held else "")


def render_realism(rows: Sequence[Row]) -> str:
    """Purity and cosines of each set of points and of real faces."""
    lines = [
        "Purity is the share of the 10 nearest neighbours that are of the same identity, by exact "
        "search for 2,000 points. Cosines are the 5, 25, 50, 75 and 95 % quantiles. "
        "[Face-like embeddings](face-like.md) describes the points.",
        "",
        "| points | purity | cosine within an identity | between identities |",
        "|---|---|---|---|",
        f"| real faces (CelebA, dlib) | {REAL[2]:.3f} | {_quantiles(REAL[0])} | "
        f"{_quantiles(REAL[1])} |",
    ]
    of_set = {row["dataset"]: row for row in rows}
    for name, row in of_set.items():
        cosines = f"{_quantiles(row['within'])} | {_quantiles(row['between'])}"
        lines.append(f"| {name} | {row['purity']:.3f} | {cosines} |")
    return "\n".join(lines)


def _quantiles(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)


def _footnote(rows: Sequence[Row]) -> str:
    commits = ", ".join(sorted({row["commit"] for row in rows}))
    machines = "; ".join(sorted({row["machine"] for row in rows}))
    threads = ", ".join(sorted({str(row["threads"]) for row in rows}))
    loads = [row["load"] for row in rows]
    trained = sorted({row["trained_on"] for row in rows if row.get("trained_on")})
    return (
        f"The paper's network was trained on {' and '.join(f'{n:,}' for n in trained) or 'no'} "
        "points. "
        f"Commit {commits}; {machines}; {threads} threads. The load of the machine was "
        f"{min(loads):g} to {max(loads):g} when the runs started. Above two, the number of cores, "
        "CPU-seconds vary less than seconds."
    )


def draw_chart(rows: Sequence[Row], path: Path) -> None:
    """Time and memory against the number of points, and our stages stacked."""
    from hilander.metrics.canvas import (
        BLUE,
        GREEN,
        INK,
        ORANGE,
        PURPLE,
        SKY,
        VERMILION,
        dress_axes,
        new_figure,
        save_figure,
    )

    rows = [row for row in latest(rows) if not row["error"] and row["dataset"].startswith("imdb")]
    rows = [row for row in rows if not row["method"].startswith(TRAINING)]
    colours = dict(
        zip([*OURS, *RIVALS], (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY), strict=True)
    )
    figure = new_figure(11, 4)
    time, memory, stacked = figure.subplots(1, 3)
    for axes, key, unit in ((time, "seconds", 1.0), (memory, "peak_memory", 1e9)):
        for method, colour in colours.items():
            some = [row for row in rows if row["method"] == method]
            if some:
                sizes, values = [r["n"] for r in some], [r[key] / unit for r in some]
                axes.plot(sizes, values, "o-", color=colour, label=method, markersize=4)
        axes.set_xscale("log")
        axes.set_yscale("log")
    time.plot(
        list(PAPER), list(PAPER.values()), "s--", color=INK, label="the paper (8 cores, V100)",
        markersize=4,
    )  # fmt: skip
    time.plot(
        list(RELEASED), [seconds for seconds, _ in RELEASED.values()], "^:", color=INK,
        label="released code, CPU-seconds", markersize=4,
    )  # fmt: skip
    dress_axes(time, "seconds", "points")
    dress_axes(memory, "peak memory, GB", "points")
    time.legend(frameon=False, fontsize=7)
    _stack_stages(stacked, rows, (VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY, INK))
    dress_axes(stacked, "seconds for each million points", "points")
    figure.subplots_adjust(left=0.06, right=0.99, bottom=0.16, top=0.96, wspace=0.28)
    save_figure(figure, path)


def _stack_stages(axes: Any, rows: Sequence[Row], colours: Sequence[str]) -> None:
    """A bar for each of our rows: seconds for a million points, by stage."""
    ours = [row for row in rows if row["method"] in OURS]
    names = [f"{row['n'] // 1000:,} k\n{OURS[row['method']]}" for row in ours]
    bottom = [0.0] * len(ours)
    for stage, colour in zip(STAGES, colours, strict=True):
        height = [row["stages"].get(stage, 0.0) / row["n"] * 1e6 for row in ours]
        axes.bar(names, height, bottom=bottom, color=colour, label=stage, width=0.7)
        bottom = [low + high for low, high in zip(bottom, height, strict=True)]
    axes.tick_params(axis="x", labelsize=6)
    axes.legend(frameon=False, fontsize=7)


def write_page(rows: Sequence[Row]) -> None:
    """Draw the chart and write the page."""
    draw_chart(rows, CHART)
    PAGE.write_text(render(rows, TEXT.read_text(encoding="utf-8")), encoding="utf-8")
