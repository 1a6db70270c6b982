"""Options that several commands share, and reading the files that they name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hilander.errors import FileFormatError, SettingError
from hilander.io.files import EmbeddingFile, read_embeddings
from hilander.io.label_files import LABEL_COLUMNS
from hilander.io.parquet import list_id_candidates

# The names of `hierarchy.decoding.decode.DECODERS` and `training.methods.METHODS`, repeated so that
# --help does not have to import those modules. A test compares them.
DECODERS = ("parents", "contract", "leiden", "infomap")
METHODS = ("evidence", "paper")
AUTO_YES_NO: dict[str, Any] = {"auto": "auto", "yes": True, "no": False}
PRETRAINED_NAME = "pretrained"


def add_input(parser: argparse.ArgumentParser) -> None:
    """Add the file of embeddings and the options that name its columns."""
    parser.add_argument(
        "embeddings",
        metavar="EMB",
        type=path_or_address,
        help="file of embeddings: .npy; .npz (array features; labels and ids are optional); "
        ".parquet (a column of lists, or numbered columns such as f0, f1, …); .csv or .tsv "
        "(numbered columns, or only numbers without a header); or .pkl of (features, labels)",
    )
    parser.add_argument(
        "--features-column",
        metavar="NAME",
        help="column or array of the embeddings, if EMB has several; for numbered columns, their "
        "common prefix, such as emb_ (default: found by name)",
    )
    parser.add_argument(
        "--id-column",
        metavar="NAME",
        help="column or array of the ids in EMB (default: id or ids)",
    )


def path_or_address(text: str) -> Any:
    """A path, or a URI as it is: a path would lose one of its slashes."""
    return text if "://" in text else Path(text)


def add_labels(parser: argparse.ArgumentParser, help: str, *, required: bool = False) -> None:
    """Add --labels, --labels-column and --label-id-column; `help` describes the first."""
    parser.add_argument("--labels", metavar="LABELS", type=Path, required=required, help=help)
    parser.add_argument(
        "--labels-column",
        metavar="NAME",
        help="column or array of the labels (default: label or labels)",
    )
    parser.add_argument(
        "--label-id-column",
        metavar="NAME",
        help="column or array of the ids in LABELS (default: id, or else the one that holds the "
        "ids of the embeddings)",
    )


def add_run_folder(parser: argparse.ArgumentParser) -> None:
    """Add the run folder that a command reads."""
    parser.add_argument(
        "folder", metavar="RUN", type=Path, help="run folder, as `hilander cluster` writes it"
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device and --quiet."""
    parser.add_argument(
        "--device",
        default="auto",
        help="where the network runs: cpu, cuda, cuda:1 … (default: auto, a GPU if there is one)",
    )
    add_quiet(parser)


def add_decoder(parser: Any, default: str, more: tuple[str, ...] = ()) -> None:
    """Add --decoder.

    Parameters
    ----------
    parser : ArgumentParser or one of its groups
    default : str
        The default, for the help text.
    more : tuple of str
        Choices besides the decoders; the first one is the default.
    """
    parser.add_argument(
        "--decoder",
        choices=(*more, *DECODERS),
        default=more[0] if more else None,
        help="how links become clusters. parents: link each point to a denser neighbour, as in the "
        "paper. contract: merge the most probable links first and verify each merge. leiden, "
        "infomap: find communities of points; infomap needs the extra hilander[infomap]. With all "
        "but parents, the default method then merges clusters by the links of their points "
        f"(default: {default})",
    )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add --quiet."""
    parser.add_argument("--quiet", action="store_true", help="print errors only")


def add_wait(parser: Any) -> None:
    """Add --wait, for a command that locks its output."""
    parser.add_argument(
        "--wait",
        action="store_true",
        help="if another process is writing the output, wait for it (default: an error that names "
        "the process)",
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
    if not getattr(args, "quiet", False):
        describe_missing_ids(file, tell)
    return file


def describe_missing_ids(file: EmbeddingFile, say: Callable[[str], None]) -> None:
    """Say that rows are numbered, for a Parquet file without ids whose columns could be ids."""
    if file.ids is not None or file.source.suffix.lower() != ".parquet":
        return
    others = [one for one in list_id_candidates(file.source) if one not in LABEL_COLUMNS]
    if others:
        say(
            f"{file.source.name} has no column id, so rows are numbered from 0; to use one of "
            f"{', '.join(others[:6])}, name it with --id-column"
        )


def tell(line: str) -> None:
    """Print a line that is not the result of a command, such as how labels were matched."""
    print(f"hilander: {line}", file=sys.stderr)


def find_model(name: str) -> Path:
    """Folder of a model; "pretrained" is the one of this package, unless a folder has that name."""
    from hilander.linkage.storage import PRETRAINED

    return PRETRAINED if name == PRETRAINED_NAME and not Path(name).exists() else Path(name)


def whole(text: str) -> int:
    """Convert an option's text to a whole number, 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of 1 or more")
    return number


def number_or_auto(text: str) -> Any:
    """Convert an option's text to a number, unless it is "auto"."""
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor auto") from None


def none_if_auto(text: str) -> str | None:
    """Convert "auto", the default of an option, to None."""
    return None if text == "auto" else text


def check_probability(name: str, value: Any) -> None:
    """Refuse a number outside 0 to 1, before anything is read."""
    if isinstance(value, float) and not 0 <= value <= 1:
        raise SettingError(f"{name} {value:g} is not a probability; use 0 to 1")
