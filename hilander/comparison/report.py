"""The report of a comparison: a Markdown file with a picture, and a self-contained HTML file."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hilander.comparison.protocol import BUDGET
from hilander.comparison.rows import Row
from hilander.comparison.tables import Summary, format_markdown, summarise_rows, tabulate
from hilander.errors import SettingError
from hilander.io.writing import write_atomically
from hilander.metrics.canvas import BLUE, FAINT, GREEN, INK, ORANGE, PAPER, dress_axes, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE = "comparison.png"
_LEAST_SECONDS = 1e-2  # shortest time on the logarithmic axis, which has no place for 0
_COLOURS = {"paper": BLUE, "today": ORANGE, "ours": GREEN, "floor": INK}
_NAMES = {
    "paper": "in the paper's tables",
    "today": "newer methods",
    "ours": "this library",
    "floor": "baseline: a cosine threshold",
}


def draw_comparison(summaries: Sequence[Summary]) -> Figure:
    """Draw BCubed and pairwise F by method, and BCubed F against time.

    Parameters
    ----------
    summaries : sequence of Summary
        At least one with a result.

    Returns
    -------
    figure : matplotlib.figure.Figure
    """
    done = [one for one in summaries if one.n_runs]
    if not done:
        raise SettingError("no method has a result, expected at least one to draw; see the errors")
    height = 1.6 + 0.33 * len(done)
    figure = new_figure(11, height)
    left, right = figure.subplots(1, 2)
    _draw_bars(left, done)
    _draw_times(right, done)
    # The height of labels and legend does not depend on the number of methods.
    top, bottom = 1 - 0.4 / height, 0.6 / height
    figure.subplots_adjust(left=0.16, right=0.97, top=top, bottom=bottom, wspace=0.25)
    return figure


def _draw_bars(axes: Any, done: Sequence[Summary]) -> None:
    place = np.arange(len(done))[::-1]
    colours = [_COLOURS[one.family] for one in done]
    means = [one.mean("bcubed_f") for one in done]
    spread = [one.scores["bcubed_f"].deviation for one in done]
    axes.barh(place, means, 0.62, xerr=spread, color=colours, error_kw={"ecolor": INK})
    pair_means = [one.mean("pairwise_f") for one in done]
    axes.plot(pair_means, place, "D", color=PAPER, markeredgecolor=INK, markersize=5)
    axes.set_yticks(place, [one.method for one in done])
    axes.set_xlim(0, 1)
    dress_axes(axes, "", "BCubed F (bars), pairwise F (diamonds)")
    axes.grid(visible=False)
    axes.grid(axis="x", color=FAINT, linewidth=0.7)


def _draw_times(axes: Any, done: Sequence[Summary]) -> None:
    for family, name in _NAMES.items():
        some = [one for one in done if one.family == family]
        if some:
            seconds = [max(one.seconds, _LEAST_SECONDS) for one in some]
            scores = [one.mean("bcubed_f") for one in some]
            axes.plot(seconds, scores, "o", color=_COLOURS[family], label=name)
    for one in done:
        at = (max(one.seconds, _LEAST_SECONDS), one.mean("bcubed_f"))
        axes.annotate(
            one.method, at, xytext=(4, 3), textcoords="offset points", fontsize=7, color=INK
        )
    axes.set_xscale("log")
    dress_axes(axes, "BCubed F", "seconds to fit and predict, without tuning")
    above = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2}
    axes.legend(frameon=False, labelcolor=INK, fontsize=8, ncols=len(_NAMES), **above)


def write_comparison_report(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write ``report.md`` with its picture, and ``report.html``, which needs no other file.

    Parameters
    ----------
    rows : sequence of Row
        Of one data set.
    folder : Path
        An existing folder.

    Returns
    -------
    written : list of Path
    """
    summaries = summarise_rows(rows)
    picture = _picture_bytes(summaries)
    title = f"Comparison on {rows[0].dataset}"
    facts = describe_rows(rows)
    image = f"![methods by score and time]({PICTURE})\n\n" if picture else ""
    text = f"# {title}\n\n{facts}\n\n{image}{format_markdown(summaries)}\n"
    written = [_write(folder / "report.md", text.encode())]
    if picture:
        written.append(_write(folder / PICTURE, picture))
    page = _html_page(title, facts, summaries, picture)
    return [*written, _write(folder / "report.html", page.encode())]


def describe_rows(rows: Sequence[Row]) -> str:
    """Data, machine, commit and protocol of the rows, in two sentences."""
    first = rows[0]
    return (
        f"{first.n:,} test points of {first.d} features (data {first.dataset_hash}); "
        f"{first.machine}; commit {first.commit or 'unknown'}. "
        f"Each method was tuned on the training set, with at most {BUDGET} settings; "
        "scores are means over seeds ± standard deviation."
    )


def _picture_bytes(summaries: Sequence[Summary]) -> bytes:
    try:
        figure = draw_comparison(summaries)
    except SettingError:  # no result, or no matplotlib: the report has only its table
        return b""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", facecolor=PAPER)
    return stream.getvalue()


def _html_page(title: str, facts: str, summaries: Sequence[Summary], picture: bytes) -> str:
    table = tabulate(summaries)
    width = len(table[0])
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table[0])
    body = []
    for row in table[1:]:
        cells = [f"<td>{html.escape(cell)}</td>" for cell in row]
        if len(row) < width:
            error = html.escape(row[1])
            cells = [cells[0], f'<td class="error" colspan="{width - 1}">{error}</td>']
        body.append(f"<tr>{''.join(cells)}</tr>")
    encoded = base64.b64encode(picture).decode()
    image = f'<img alt="methods by score and time" src="data:image/png;base64,{encoded}">'
    return (
        "<!doctype html>\n"
        f'<html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>{_STYLE}</style>\n"
        f"<h1>{html.escape(title)}</h1>\n<p>{html.escape(facts)}</p>\n"
        f"{image if picture else ''}\n"
        f'<div class="scroll" tabindex="0" role="group" aria-label="Methods">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>\n</html>\n"
    )


_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;"
    "color:#222;background:#fff}table{border-collapse:collapse;width:100%;font-size:14px}"
    "th,td{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}"
    "th:first-child,td:first-child,td:last-child,th:last-child,.error{text-align:left}"
    "td:last-child,.error{white-space:normal;color:#555}img{max-width:100%}.scroll{overflow-x:auto}"
)


def _write(path: Path, content: bytes) -> Path:
    with write_atomically(path) as temporary:
        Path(temporary).write_bytes(content)
    return path
