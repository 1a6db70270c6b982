"""The report as one self-contained HTML file."""

from __future__ import annotations

import base64
from html import escape
from typing import Any

import numpy as np

from hilander.explorer.report.colours import cluster_colour
from hilander.explorer.report.facts import ReportFacts, Shown

# Peaks drawn on the map: more make the file large without changing the picture.
_MOST_DOTS = 4000
_STYLE = """
:root{--bg:#fff;--text:#1b2130;--muted:#667085;--line:#e3e6ec;--soft:#f4f6fa;--bar:#6f83ea}
@media(prefers-color-scheme:dark){:root{--bg:#11151d;--text:#e6e9f0;--muted:#98a2b6;
--line:#2a3242;--soft:#1a202c;--bar:#7487ea}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,-apple-system,
"Segoe UI",Roboto,Arial,sans-serif}
main{max-width:980px;margin:0 auto;padding:40px 20px 80px}
h1{font-size:1.9rem;margin:0 0 4px;letter-spacing:-.02em;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:44px 0 6px;letter-spacing:-.01em}
p,.muted{color:var(--muted);margin:2px 0 10px}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(130px,1fr));gap:10px;
margin-top:20px}
.tile{background:var(--soft);border-radius:10px;padding:10px 14px}
.tile b{display:block;font-size:1.35rem;font-variant-numeric:tabular-nums}
.tile span{color:var(--muted);font-size:.85rem}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:6px 10px;border-bottom:1px solid var(--line);text-align:right}
th:first-child,td:first-child{text-align:left;overflow-wrap:anywhere}
th{color:var(--muted);font-weight:500;font-size:.86rem}
.scroll{overflow-x:auto}
.cluster{display:grid;grid-template-columns:150px 1fr;gap:14px;padding:12px 0;
border-bottom:1px solid var(--line)}
.cluster b{overflow-wrap:anywhere}
.cluster small{color:var(--muted);display:block}
.items{display:flex;flex-wrap:wrap;gap:5px}
.items img,.items span{width:52px;height:52px;border-radius:6px;background:var(--soft);
object-fit:contain;font-size:.66rem;overflow:hidden;overflow-wrap:anywhere;padding:0;
display:inline-block;line-height:1.15}
.items span{padding:3px;color:var(--muted)}
svg{width:100%;height:auto;display:block}
svg text{fill:var(--muted);font-size:11px}
@media(max-width:560px){.cluster{grid-template-columns:1fr}}
"""


def render_html(facts: ReportFacts) -> str:
    """Return the page."""
    run = facts.run
    sections = [
        f"<h1>{escape(run.name)}</h1><p>Clustering report of {run.n_points:,} items.</p>",
        _tiles(facts.summary),
        "<h2>Levels</h2>" + _table(*facts.level_table),
        "<h2>Cluster sizes</h2><p>Number of clusters by size, final level.</p>" + _sizes(facts),
        _map(facts),
        *(_clusters(facts, shown) for shown in facts.shown),
        _corrections(facts),
        _details(facts),
    ]
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(run.name)}: clustering report</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(sections)}</main></body></html>\n"
    )


def _tiles(values: dict[str, str]) -> str:
    tiles = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value in values.items()
    )
    return f'<div class="tiles">{tiles}</div>'


def _table(heads: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if any(heads) else ""
    # It can be focused, so that keys scroll it where it is wider than the screen.
    box = '<div class="scroll" tabindex="0" role="group" aria-label="Table">'
    return f"{box}<table>{top}<tbody>{body}</tbody></table></div>"


def _sizes(facts: ReportFacts) -> str:
    width, height = 760, 220
    most = max(one["clusters"] for one in facts.sizes)
    step = (width - 16) / len(facts.sizes)
    bars = []
    for place, one in enumerate(facts.sizes):
        tall = max(2.0, one["clusters"] / most * (height - 60)) if one["clusters"] else 0.0
        left, middle = 8 + place * step, 8 + (place + 0.5) * step
        low, high = one["low"], one["high"]
        name = str(low) if low == high else f"{low:,}–{high:,}"
        bars.append(
            f'<rect x="{left + 2:.1f}" y="{height - 30 - tall:.1f}" width="{step - 4:.1f}" '
            f'height="{tall:.1f}" rx="3" fill="var(--bar)"/>'
            f'<text x="{middle:.1f}" y="{height - 36 - tall:.1f}" text-anchor="middle">'
            f"{one['clusters']:,}</text>"
            f'<text x="{middle:.1f}" y="{height - 14}" text-anchor="middle">{name}</text>'
        )
    text = "Number of clusters by size"
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{text}">'
    return f"{head}{''.join(bars)}</svg>"


def _map(facts: ReportFacts) -> str:
    layout = facts.layout
    if layout is None:
        return ""
    rng = np.random.default_rng(0)
    chosen = np.arange(len(layout.points))
    if len(chosen) > _MOST_DOTS:
        chosen = np.sort(rng.choice(len(chosen), _MOST_DOTS, replace=False))
    places = 380 + 365 * layout.places[chosen]
    dots = "".join(
        f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="{cluster_colour(cluster)}"/>'
        for (x, y), cluster in zip(places.tolist(), facts.colours[chosen].tolist(), strict=True)
    )
    shown = "" if len(chosen) == len(layout.points) else f", {len(chosen):,} of them drawn"
    note = (
        f"{len(layout.points):,} points{shown}: the most typical items of the clusters of level "
        f"{layout.level}, placed by {layout.method}; one colour for each cluster."
    )
    text = "Map of the most typical items"
    picture = f'<svg viewBox="0 0 760 760" role="img" aria-label="{text}">{dots}</svg>'
    return f"<h2>Map</h2><p>{escape(note)}</p>{picture}"


def _clusters(facts: ReportFacts, shown: Shown) -> str:
    rows = []
    for title, members, fact in zip(shown.titles, shown.members, shown.facts, strict=True):
        items = "".join(_item(facts, row) for row in members.tolist())
        rows.append(
            f'<div class="cluster"><div><b>{escape(title)}</b><small>{escape(fact)}</small>'
            f'</div><div class="items">{items}</div></div>'
        )
    return f"<h2>{escape(shown.title)}</h2><p>{escape(shown.note)}</p>{''.join(rows)}"


def _item(facts: ReportFacts, row: int) -> str:
    name = facts.run.items.id_of(row)
    label = facts.run.items.label_of(row)
    title = escape(name if label is None else f"{name} · {label}", quote=True)
    picture = facts.run.images.thumbnail(row)
    if picture is None:
        return f'<span title="{title}">{escape(name)}</span>'
    data = base64.b64encode(picture).decode()
    return f'<img alt="{title}" title="{title}" src="data:image/png;base64,{data}">'


def _corrections(facts: ReportFacts) -> str:
    if not facts.corrections:
        return ""
    table = _table(["Action", "Date"], [[words, date] for date, words in facts.corrections])
    return f"<h2>Corrections</h2><p>{escape(facts.corrections_note)}</p>{table}"


def _details(facts: ReportFacts) -> str:
    parts = []
    if facts.settings:
        rows = [[name, _plain(value)] for name, value in facts.settings.items()]
        parts.append("<h2>Settings</h2>" + _table(["", ""], rows))
    if facts.stages:
        rows = [[stage, f"{seconds:.2f} s"] for stage, seconds in facts.stages]
        rows.append(["total", f"{sum(seconds for _, seconds in facts.stages):.2f} s"])
        parts.append("<h2>Time by stage</h2>" + _table(["", ""], rows))
    if facts.versions:
        rows = [[name, _plain(value)] for name, value in facts.versions.items()]
        parts.append("<h2>Versions</h2>" + _table(["", ""], rows))
    return "".join(parts)


def _plain(value: Any) -> str:
    return "–" if value is None else str(value)
