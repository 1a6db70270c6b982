"""``hilander embed``: pictures or texts to a file of embeddings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hilander.cli.embed_options import (
    add_embedder,
    add_source,
    add_work,
    check_output,
    describe_embedded,
    open_embedder,
    read_source,
    read_work,
)
from hilander.cli.inputs import add_device

_SKIPPED_FILE = "skipped.csv"


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "embed",
        help="turn pictures or texts into embeddings",
        description="Embed a folder of pictures or a table of texts, and write a Parquet file with "
        "id, path or text, embedding, embedder and embedder_version; for faces also the photo, the "
        "place in the picture and the score. What cannot be embedded is listed in skipped.csv with "
        "its reason. Embeddings are kept by content in OUTPUT.cache: the same command embeds only "
        "what is new, also after a kill.",
        allow_abbrev=False,
    )
    add_source(parser)
    parser.add_argument(
        "-o", "--output", metavar="EMB", type=Path, required=True, help="Parquet file to write"
    )
    parser.add_argument(
        "--skipped",
        metavar="FILE",
        type=Path,
        help=f"CSV file of what has no embedding (default: {_SKIPPED_FILE} next to EMB)",
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        type=Path,
        help="folder where embeddings are kept by content; it can be shared by several runs "
        "(default: EMB.cache)",
    )
    add_embedder(parser)
    add_work(parser)
    add_device(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Embed and write the file."""
    from hilander.embedders.embedding import Destination, embed

    check_output(args.output)
    destination = Destination(args.output, args.skipped or args.output.with_name(_SKIPPED_FILE))
    source = read_source(args)
    embedder = open_embedder(args, source)
    cache = args.cache or args.output.with_name(f"{args.output.name}.cache")
    embedded = embed(source, destination, embedder, read_work(args, cache))
    if not args.quiet:
        print(describe_embedded(embedded, embedder, destination.skipped))
        print(f"embeddings: {args.output}")
    return 0
