"""The report as Markdown, with figures as PNG files in a folder beside it."""

from __future__ import annotations

from pathlib import Path

from hilander.explorer.report.colours import cluster_colour
from hilander.explorer.report.facts import ReportFacts
from hilander.io.writing import write_atomically
from hilander.metrics.canvas import new_figure, save_figure
from hilander.metrics.plots import draw_contact_sheet, draw_levels, draw_sizes

# Area of a peak on the map, in square points.
_DOT = 4.0


def write_markdown(facts: ReportFacts, output: Path) -> Path:
    """Write the Markdown file and its figures.

    Parameters
    ----------
    facts : ReportFacts
    output : Path
        Ends in `.md`; the figures of `report.md` go to the folder `report_files`.
    """
    pictures = output.with_name(output.stem + "_files")
    pictures.mkdir(parents=True, exist_ok=True)
    run = facts.run
    _draw_levels(facts, pictures / "levels.png")
    labels = run.items.labels
    sizes = draw_sizes(facts.labels, None if labels is None else labels.codes)
    save_figure(sizes, pictures / "sizes.png")
    lines = [f"# {_text(run.name)}", "", f"Clustering report of {run.n_points:,} items.", ""]
    lines += _table(["", ""], [[name, value] for name, value in facts.summary.items()])
    lines += ["", "## Levels", "", f"![Levels]({pictures.name}/levels.png)", ""]
    lines += _table(*facts.level_table)
    lines += ["", "## Cluster sizes", "", f"![Sizes]({pictures.name}/sizes.png)", ""]
    if facts.layout is not None:
        _draw_map(facts, pictures / "map.png")
        lines += ["## Map", "", f"![Map]({pictures.name}/map.png)", ""]
    thumbs = run.images.as_array()
    for number, shown in enumerate(facts.shown):
        lines += [f"## {shown.title}", "", shown.note, ""]
        if thumbs is not None:
            name = f"clusters-{number}.png"
            titles = [f"{title} ({len(rows)} shown)" for title, rows in
                      zip(shown.titles, shown.members, strict=True)]  # fmt: skip
            sheet = draw_contact_sheet(thumbs, shown.members, titles)
            save_figure(sheet, pictures / name)
            lines += [f"![{shown.title}]({pictures.name}/{name})", ""]
        described = zip(shown.titles, shown.facts, shown.members, strict=True)
        rows = [
            [title, fact, ", ".join(run.items.ids_of(members[:4]))]
            for title, fact, members in described
        ]
        lines += [*_table(["Cluster", "Facts", "Some of its items"], rows), ""]
    if facts.corrections:
        rows = [[date, words] for date, words in facts.corrections]
        lines += ["## Corrections", "", facts.corrections_note, ""]
        lines += [*_table(["Date", "Action"], rows), ""]
    lines += _details(facts)
    with write_atomically(output) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="backslashreplace")
    return output


def _details(facts: ReportFacts) -> list[str]:
    lines: list[str] = []
    if facts.settings:
        rows = [[name, str(value)] for name, value in facts.settings.items() if value is not None]
        lines += ["## Settings", "", *_table(["Setting", "Value"], rows), ""]
    if facts.stages:
        rows = [[stage, f"{seconds:.2f}"] for stage, seconds in facts.stages]
        lines += ["## Time by stage", "", *_table(["Stage", "Seconds"], rows), ""]
    if facts.versions:
        rows = [[name, str(value)] for name, value in facts.versions.items()]
        lines += ["## Versions", "", *_table(["", "Version"], rows), ""]
    return lines


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return lines + ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows]


def _text(value: str) -> str:
    """Escape text so that Markdown neither formats it nor treats it as HTML."""
    for sign in "\\`*_{}[]<>#|!":
        value = (
            value.replace(sign, "\\" + sign)
            if sign not in "<>"
            else value.replace(sign, {"<": "&lt;", ">": "&gt;"}[sign])
        )
    return " ".join(value.split())


def _draw_levels(facts: ReportFacts, path: Path) -> None:
    levels = facts.levels[: facts.run.n_levels]
    scores = [one.scores for one in levels if one.scores is not None]
    counts = [one.n_clusters for one in levels]
    save_figure(draw_levels(scores or None, counts, facts.run.hierarchy.early_stop_level), path)


def _draw_map(facts: ReportFacts, path: Path) -> None:
    if facts.layout is None:
        return
    figure = new_figure(6.4, 6.4)
    axes = figure.add_axes((0, 0, 1, 1))
    places = facts.layout.places
    colours = [cluster_colour(cluster) for cluster in facts.colours.tolist()]
    axes.scatter(places[:, 0], -places[:, 1], s=_DOT, c=colours, linewidths=0)
    axes.set_axis_off()
    save_figure(figure, path)
