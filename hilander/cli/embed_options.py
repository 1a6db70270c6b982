"""Options of the commands that embed: ``hilander embed`` and ``hilander group``."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hilander.cli.inputs import whole
from hilander.errors import SettingError

if TYPE_CHECKING:
    from hilander.embedders.embedding import Embedded, Source
    from hilander.embedders.protocol import Embedder, EmbedderSettings
    from hilander.embedders.work import EmbeddingWork

_BATCH_SIZE = 32


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add what to embed."""
    parser.add_argument(
        "paths",
        metavar="PATH",
        type=Path,
        nargs="+",
        help="folders of pictures, with all folders below them; pictures; .txt lists of pictures, "
        "one path in each line; or one table with a column of texts: .csv, .tsv, .jsonl or "
        ".parquet",
    )
    parser.add_argument(
        "--text-column", metavar="NAME", help="column of the texts (default: text, or the only one)"
    )
    parser.add_argument(
        "--id-column",
        metavar="NAME",
        help="column of the ids of texts (default: id, or the number of the row); the id of a "
        "picture is its path",
    )


def add_embedder(parser: argparse.ArgumentParser) -> None:
    """Add the embedder and what a user may say about it."""
    group = parser.add_argument_group("embedder")
    group.add_argument(
        "--embedder",
        metavar="NAME",
        help="objects, faces, onnx:FILE, timm:NAME, openclip:NAME/WEIGHTS for pictures; ngrams, "
        "onnx:FILE, sentence-transformers:NAME for texts; or that of another package (default: "
        "objects for pictures, ngrams for texts; ngrams compares letters, not meaning)",
    )
    group.add_argument(
        "--download",
        action="store_true",
        help="let timm, openclip and sentence-transformers fetch weights that are not on this "
        "machine",
    )
    group.add_argument(
        "--pixels",
        type=whole,
        metavar="N",
        help="side of the picture that the network gets (default: the model's)",
    )
    for name, meaning in (("mean", "mean"), ("std", "standard deviation")):
        group.add_argument(
            f"--{name}",
            type=_colour,
            metavar="R,G,B",
            help=f"{meaning} of the colours, on the scale from 0 to 1, that the network was "
            "trained with (default: the model's; an ONNX file may not say)",
        )
    group.add_argument(
        "--model-output",
        metavar="NAME",
        help="output of the ONNX model to use (default: one named as embeddings are, or the first)",
    )
    group.add_argument(
        "--face-score",
        type=float,
        metavar="S",
        help="lowest score of a face; lower finds more faces and more that are none (default: 0.3)",
    )


def add_work(parser: argparse.ArgumentParser) -> None:
    """Add how to embed."""
    parser.add_argument(
        "--workers",
        type=_whole_or_0,
        metavar="N",
        help="processes that read pictures; 0 reads them in the main process (default: the number "
        "of cores)",
    )
    parser.add_argument(
        "--batch-size",
        type=whole,
        default=_BATCH_SIZE,
        metavar="N",
        help=f"pictures, faces or texts that the network gets at a time (default: {_BATCH_SIZE})",
    )


def read_source(args: argparse.Namespace) -> Source:
    """What to embed, from the options."""
    from hilander.embedders.embedding import Source

    return Source(args.paths, args.text_column, args.id_column)


def read_settings(args: argparse.Namespace) -> EmbedderSettings:
    """What the user says about the embedder."""
    from hilander.embedders.protocol import EmbedderSettings

    return EmbedderSettings(
        device=args.device,
        download=args.download,
        pixels=args.pixels,
        mean=args.mean,
        std=args.std,
        output=args.model_output,
        face_score=args.face_score,
    )


def open_embedder(args: argparse.Namespace, source: Source) -> Embedder:
    """Make the embedder that the options name, or the default one."""
    from hilander.embedders.embedding import default_embedder
    from hilander.embedders.registry import make_embedder

    return make_embedder(args.embedder or default_embedder(source), read_settings(args))


def read_work(args: argparse.Namespace, cache: Path) -> EmbeddingWork:
    """How to embed, from the options."""
    from hilander.embedders.work import EmbeddingWork

    workers = (os.cpu_count() or 1) if args.workers is None else args.workers
    return EmbeddingWork(cache, args.batch_size, workers, progress=not args.quiet)


def describe_embedded(embedded: Embedded, embedder: Embedder, skipped: Path) -> str:
    """Lines on what was embedded, with which embedder, and what was not."""
    outcome = embedded.outcome
    kinds = {"picture": "pictures", "face": "pictures", "text": "texts"}
    rate = (
        f", {outcome.n_new / outcome.seconds:,.1f} a second"
        if outcome.n_new and outcome.seconds
        else ""
    )
    n_known = outcome.n_items - len(outcome.skips) - outcome.n_new
    new = f"; {outcome.n_new:,} are new{rate}" if n_known > 0 else rate
    lines = [
        f"{outcome.n_rows:,} embeddings of {outcome.n_items:,} {kinds[embedder.kind]} by "
        f"{embedder.name} ({embedder.dim} numbers each){new}"
    ]
    if embedder.name == "ngrams":
        lines.append(
            "ngrams compares letters, not meaning, and is weak; better: --embedder "
            "sentence-transformers:NAME or onnx:FILE"
        )
    if outcome.skips:
        lines.append(f"{len(outcome.skips):,} have no embedding; the reasons are in {skipped}")
    if embedded.n_ignored:
        lines.append(f"{embedded.n_ignored:,} files are not pictures by their name, or hidden")
    return "\n".join(lines)


def _colour(text: str) -> tuple[float, float, float]:
    """Three numbers."""
    try:
        red, green, blue = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not three numbers, such as 0.485,0.456,0.406"
        ) from None
    return red, green, blue


def _whole_or_0(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 0 or more")
    return number


def check_output(path: Path) -> None:
    """Refuse an output that cannot hold vectors, before anything is embedded."""
    if path.suffix.lower() != ".parquet":
        raise SettingError(f"{path} cannot hold embeddings; give a name that ends in .parquet")
