"""``hilander update``: add embeddings to a run and remove items; clusters keep their ids."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander.cli.inputs import (
    AUTO_YES_NO,
    add_device,
    add_run_folder,
    add_wait,
    read_input,
    tell,
)
from hilander.cli.known import add_known_options, describe_conflicts
from hilander.cli.news import read_news
from hilander.errors import SettingError

if TYPE_CHECKING:
    from hilander.collection.update import Update

_KINDS = {"new": "new clusters", "merged": "merged", "split": "split off"}


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "update",
        help="add embeddings to a run, or remove items; clusters keep their ids",
        description="Add embeddings to a run folder, remove items from it, or both. Only what the "
        "update touches is searched, scored and clustered again, and all other clusters stay as "
        "they are. Clusters keep their ids; changes.parquet lists what joined, left, merged and "
        "split, and which link is the reason. What is known of the run holds on, also for new "
        "items: pairs, columns, labels, and the decisions of its review. The folder holds the old "
        "run or the new one, also after a crash.",
        allow_abbrev=False,
    )
    add_run_folder(parser)
    parser.add_argument(
        "embeddings",
        metavar="EMB",
        type=Path,
        nargs="?",
        help="file of new embeddings, as for `hilander cluster`",
    )
    parser.add_argument(
        "--features-column",
        metavar="NAME",
        help="column or array of the embeddings, as for `hilander cluster` (default: found by "
        "name)",
    )
    parser.add_argument(
        "--id-column",
        metavar="NAME",
        help="column or array of the ids in EMB (default: id or ids)",
    )
    parser.add_argument(
        "--remove",
        metavar="IDS",
        type=Path,
        help="file of the ids of items to remove: .csv, .tsv or .txt with one id in each line or a "
        "column id, .npy, or .parquet with a column id. They are removed before EMB is added, so "
        "an item is replaced by giving its id in both",
    )
    parser.add_argument(
        "--rerun",
        choices=list(AUTO_YES_NO),
        default="auto",
        help="cluster the whole set again; ids are kept as well (default: auto, when the set has "
        "grown or shrunk by half since that was done)",
    )
    add_known_options(parser, "RUN")
    add_wait(parser)
    add_device(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Update the run folder and print what changed."""
    from hilander.collection.collection import Collection
    from hilander.collection.item_ids import read_ids
    from hilander.io.item_columns import read_item_columns

    remove = None if args.remove is None else read_ids(args.remove)
    collection = Collection.open(args.folder)
    collection.model.device = args.device
    file = None if args.embeddings is None else read_input(args, labels=None)
    news, lines = read_news(args, collection, file, remove)
    if not args.quiet:
        print(*lines, sep="\n", end="\n" * bool(lines))
    how: dict[str, Any] = {"known": news, "rerun": AUTO_YES_NO[args.rerun], "wait": args.wait}
    if file is not None:
        columns = read_item_columns(file.source).columns
        done = collection.update(
            file.features, file.ids, remove=remove, labels=file.labels, columns=columns, **how
        )
    elif remove is not None:
        done = collection.remove(remove, **how)
    elif news.is_nothing:
        raise SettingError(
            "nothing to do: give a file of embeddings, --remove IDS, or what is newly known"
        )
    else:
        done = collection.learn(**how)
    for line in describe_conflicts(done.conflicts):
        tell(line)
    if not args.quiet:
        print(describe_update(done, len(collection), collection.hierarchy().n_clusters()))
    return 0


def describe_update(done: Update, n_items: int, n_clusters: int) -> str:
    """What an update did, in one or two lines."""
    parts = [f"{done.n_added:,} items added", f"{done.n_removed:,} removed"]
    changes = [
        f"{done.changes[kind]:,} {words}" for kind, words in _KINDS.items() if kind in done.changes
    ]
    text = f"{', '.join(parts)}: {n_items:,} items in {n_clusters:,} clusters"
    text += f" ({', '.join(changes)})" if changes else ""
    seconds = sum(done.seconds.values())
    text += f" in {seconds:.1f} s; {done.n_decoded:,} items were clustered again"
    if done.whole:
        return f"{text}\nall were clustered again: {done.reason}"
    if done.reason:
        return f"{text}\n{done.reason}: consider --rerun yes"
    return text
