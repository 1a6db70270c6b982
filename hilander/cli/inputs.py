"""What commands that read embeddings share: their options, and reading."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hilander.errors import FileFormatError, SettingError
from hilander.io.files import EmbeddingFile, read_embeddings

# Those of hilander.partition, which --help need not wait for.
DECODERS = ("parents", "contract", "leiden", "infomap")
AUTO_YES_NO: dict[str, Any] = {"auto": "auto", "yes": True, "no": False}


def add_input(parser: argparse.ArgumentParser) -> None:
    """Add the file of embeddings and the options that name its columns."""
    parser.add_argument(
        "embeddings",
        metavar="EMB",
        type=Path,
        help="embeddings: .npy, .npz (features, and labels and ids if it has them), .parquet (a "
        "column of lists, or numbered columns such as f0, f1, …), .csv or .tsv (numbered columns, "
        "or no header and numbers only), or a .pkl of (features, labels)",
    )
    parser.add_argument(
        "--features-column",
        metavar="NAME",
        help="column or array of the embeddings, where EMB has several; of numbered columns what "
        "they begin with, such as emb_ (default: found by name)",
    )
    parser.add_argument(
        "--id-column", metavar="NAME", help="column or array of ids in EMB (default: id, ids)"
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device and --quiet."""
    parser.add_argument(
        "--device",
        default="auto",
        help="cpu, cuda, cuda:1 … (default: auto, a GPU if there is one)",
    )
    add_quiet(parser)


def add_decoder(parser: Any, default: str, more: tuple[str, ...] = ()) -> None:
    """Add --decoder; `default` says what is taken, `more` are choices besides the decoders."""
    parser.add_argument(
        "--decoder",
        choices=(*more, *DECODERS),
        default=more[0] if more else None,
        help="how links become clusters: parents is the paper's, contract verifies merges, leiden "
        "and infomap (extra hilander[infomap]) find communities of the points and verify the "
        "merges of those "
        f"(default: {default})",
    )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add --quiet."""
    parser.add_argument(
        "--quiet", action="store_true", help="no progress bars and no report, errors only"
    )


def read_input(args: argparse.Namespace, labels: str | None = None) -> EmbeddingFile:
    """Read the file of embeddings that the options name.

    Parameters
    ----------
    args : Namespace of `add_input`
    labels : str, optional
        Column of labels.
    """
    file = read_embeddings(
        args.embeddings, features=args.features_column, ids=args.id_column, labels=labels
    )
    if file.ids is not None and file.ids.ndim != 1:
        raise FileFormatError(
            f"{file.source} has ids of shape {file.ids.shape}, expected one column; "
            "name another with --id-column"
        )
    return file


def whole(text: str) -> int:
    """A whole number from 1 on, as an option's type."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 on")
    return number


def number_or_auto(text: str) -> Any:
    """A number, or the word auto, as an option's type."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto") from None


def check_probability(name: str, value: Any) -> None:
    """Refuse what is not a probability, before anything is read."""
    if isinstance(value, float) and not 0 <= value <= 1:
        raise SettingError(f"{name} {value:g} is not a probability; use 0 to 1")


def name_model(text: str) -> Path | None:
    """The folder of a model; None for the word box, unless there is a folder of that name."""
    return None if text == "pretrained" and not Path(text).exists() else Path(text)
