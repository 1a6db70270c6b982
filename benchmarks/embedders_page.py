"""The page of the embedders, ``docs/results/embedders.md``, from rows."""

from __future__ import annotations

from typing import Any

from benchmarks.rows import RESULTS, ROOT, put_block

ROWS = RESULTS / "embedders.jsonl"
PAGE = ROOT / "docs" / "results" / "embedders.md"
BEGIN, END = "<!-- embedders: begin -->", "<!-- embedders: end -->"

# A later row with the same values of these replaces an earlier one on the page.
_NAMES = ("embedder", "threads", "n_pictures", "run")


def render(rows: list[dict[str, Any]], page: str) -> str:
    """The page with its tables, from the last row of each kind."""
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        place = (row["kind"], *(row.get(name) for name in _NAMES))
        last.pop(place, None)
        last[place] = row
    parts = [
        _render_throughput([row for row in last.values() if row["kind"] == "throughput"]),
        *(_render_dlib(row) for row in last.values() if row["kind"] == "dlib"),
        _render_memory([row for row in last.values() if row["kind"] == "memory"]),
        _render_files([row for row in last.values() if row["kind"] == "files"]),
        *(_render_distances(row) for row in last.values() if row["kind"] == "distances"),
    ]
    return put_block(page, (BEGIN, END), "\n\n".join(part for part in parts if part))


def _table(header: str, rows: list[str]) -> str:
    columns = header.count("|") - 1
    return "\n".join([header, "|" + "---|" * columns, *rows]) if rows else ""


def _render_throughput(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        bare, one, pipeline = row["bare_per_second"], _one_process(row), row["pipeline_per_second"]
        rates = (bare, row["prepare_per_second"], one, pipeline)
        lines.append(
            f"| `{row['embedder']}` | {row['threads']} | {row['n_pieces']} | "
            f"{' | '.join(f'{rate:.1f}' for rate in rates)} | {pipeline / bare:.0%} | "
            f"{pipeline / one:.0%} | {row['load']:.1f} |"
        )
    return _table(
        "| embedder | threads | pieces | network alone, a second | preparation | one process "
        "| pipeline | of the network | of one process | load |",
        lines,
    )


def _one_process(row: dict[str, Any]) -> float:
    """Pieces a second that are prepared and embedded one after the other."""
    seconds = row["n_photos"] / row["prepare_per_second"] + row["n_pieces"] / row["bare_per_second"]
    return float(row["n_pieces"] / seconds)


def _render_dlib(row: dict[str, Any]) -> str:
    return (
        f"dlib's own network takes {row['dlib_ms']:.0f} ms of processor time for a face, the one "
        f"in torch {row['torch_alone_ms']:.0f} ms alone and {row['torch_batch_ms']:.0f} ms in a "
        f"batch of 32, on one thread. The largest difference of a number is "
        f"{row['largest_difference']:.0e}."
    )


def _render_memory(rows: list[dict[str, Any]]) -> str:
    rows = sorted(rows, key=lambda row: row["n_pictures"])
    lines = [f"| {row['n_pictures']:,} | {row['megabytes']:,.0f} |" for row in rows]
    return _table("| pictures embedded | MB of all processes |", lines)


def _render_files(rows: list[dict[str, Any]]) -> str:
    return _table(
        "| run | files | embedded | seconds to list | seconds in all | load |",
        [
            f"| {row['run']} | {row['n_files']:,} | {row['n_new']:,} | "
            f"{row['listing_seconds']:.1f} | {row['seconds']:.1f} | {row['load']:.1f} |"
            for row in rows
        ],
    )


def _render_distances(row: dict[str, Any]) -> str:
    lines = [f"| {bound} | {share:.1e} |" for bound, share in row["shares"].items()]
    head = f"Of {row['n_pairs']:,} pairs of different people, this share is nearer:"
    return f"{head}\n\n{_table('| distance | share |', lines)}"
