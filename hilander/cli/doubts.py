"""``hilander doubts``: list the least certain decisions of a run, for a person to check."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hilander.cli.inputs import add_run_folder, whole

if TYPE_CHECKING:
    from hilander.hierarchy.doubts import Doubt
    from hilander.hierarchy.hierarchy import Hierarchy

TOP = 20  # rows of each kind; more than fit on a screen
COLUMNS = ("kind", "a", "b", "cluster_a", "cluster_b", "size_a", "size_b", "level", "linkage")
TITLES = {
    "merge": "doubtful merges, which may be wrong (b was attached to a)",
    "split": "merge candidates, which may be one identity",
}


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "doubts",
        help="list the least certain decisions of a run",
        description="List the least certain decisions of a run, to be checked first: merges of low "
        "linkage, and pairs of final clusters that may be one identity. "
        "Each side is shown by the id of one of its points.",
        allow_abbrev=False,
    )
    add_run_folder(parser)
    parser.add_argument(
        "--top", type=whole, default=TOP, metavar="N", help=f"rows of each kind (default: {TOP})"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON instead of tables")
    form.add_argument("--csv", action="store_true", help="print CSV instead of tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List the doubts and print them."""
    found = list_doubts(args.folder, args.top)
    if args.json:
        print(json.dumps({"merges": found["merge"], "splits": found["split"]}, indent=2))
    elif args.csv:
        writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*found["merge"], *found["split"]])
    else:
        print("\n\n".join(format_doubts(TITLES[kind], rows) for kind, rows in found.items()))
    return 0


def list_doubts(folder: Path, top: int) -> dict[str, list[dict[str, Any]]]:
    """Doubtful decisions of a run folder, as rows of plain values.

    Parameters
    ----------
    folder : Path
    top : int
        Rows of each kind, at most.

    Returns
    -------
    doubts : {"merge": list of dict, "split": list of dict}
        Each dict has the keys `COLUMNS`.
    """
    from hilander.cli.score import read_run_ids
    from hilander.hierarchy.doubts import find_doubtful_merges, find_merge_candidates
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.storage import load_scored_graph

    hierarchy = Hierarchy.load(folder)
    graph, scores = load_scored_graph(folder)
    ids = read_run_ids(folder)
    pairs = find_merge_candidates(hierarchy, graph.neighbours, scores.linkage, top)
    return {
        "merge": describe_doubts(find_doubtful_merges(hierarchy, top), "merge", hierarchy, ids),
        "split": describe_doubts(pairs, "split", hierarchy, ids),
    }


def describe_doubts(
    doubts: Sequence[Doubt], kind: str, hierarchy: Hierarchy, ids: Any
) -> list[dict[str, Any]]:
    """Rows of one kind: ids, final clusters and sizes of both sides.

    For a merge, the sizes are those of the two sides before the merge.
    """
    labels = hierarchy.labels(-1)
    sizes = [np.ones(hierarchy.n_points, np.int64)]  # of each level's nodes
    sizes += [hierarchy.sizes(level) for level in range(hierarchy.n_levels)]
    rows = []
    for doubt in doubts:
        ends = (doubt.a, doubt.b)
        names = ends if ids is None else [_plain(ids[end]) for end in ends]
        of_node = sizes[doubt.level if kind == "merge" else doubt.level + 1]
        clusters, counts = labels[list(ends)].tolist(), of_node[list(doubt.nodes)].tolist()
        values = (kind, *names, *clusters, *counts, doubt.level, round(doubt.linkage, 4))
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    return rows


def format_doubts(title: str, rows: Sequence[dict[str, Any]]) -> str:
    """A table of plain text, with its title."""
    if not rows:
        return f"{title}: none"
    names = COLUMNS[1:]
    cells = [names, *([str(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    return "\n".join([f"{title}:", *lines])


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
