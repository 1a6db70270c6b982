"""``hilander convert``: import released weights, or convert a file of embeddings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hilander.cli.inputs import add_wait, check_probability, whole
from hilander.errors import OutputError
from hilander.io.files import EmbeddingFile, read_embeddings, write_table
from hilander.io.locks import lock_output
from hilander.io.writing import check_output_folder, write_atomically

TARGETS = (".npz", ".npy", ".parquet")


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "convert",
        help="import weights of the released code, or convert a file of embeddings",
        description="Convert weights of the authors' released code (.pth) to a model folder, or a "
        "file of embeddings (.pkl of the paper, .npz, .npy, .parquet, .csv, .tsv) to another "
        "format. Ids and labels are converted too, except to .npy, which holds one array.",
        allow_abbrev=False,
    )
    parser.add_argument("source", metavar="SRC", type=Path, help=".pth file, or file of embeddings")
    parser.add_argument(
        "target",
        metavar="DST",
        type=Path,
        help="model folder, or file ending in .npz, .npy or .parquet",
    )
    group = parser.add_argument_group(
        "released weights", "settings that the released code used; a .pth file does not hold them"
    )
    group.add_argument(
        "--k-reference",
        type=whole,
        default=10,
        metavar="K",
        help="knn_k of the released code, which counts the node itself (default: 10)",
    )
    group.add_argument(
        "--p-tau",
        type=float,
        default=0.5,
        metavar="P",
        help="tau of the released code (default: 0.5)",
    )
    group.add_argument(
        "--features",
        choices=("concat", "identity"),
        default="concat",
        help="concat if the released code ran with --use_cluster_feat, else identity (default: "
        "concat)",
    )
    group.add_argument(
        "--early-stop",
        action="store_true",
        help="stop early, as --early_stop of the released code",
    )
    add_wait(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Convert and print what was written; the output is locked meanwhile."""
    is_weights = args.source.suffix.lower() == ".pth"
    (check_weights_output if is_weights else check_target)(args)
    with lock_output(args.target, wait=args.wait, make_parents=is_weights):
        if is_weights:
            convert_weights(args)
        else:
            convert_embeddings(args.source, args.target)
    print(f"{args.source} -> {args.target}")
    return 0


def check_weights_output(args: argparse.Namespace) -> None:
    """Refuse settings that mean nothing and a folder that cannot be written."""
    check_probability("--p-tau", args.p_tau)
    check_output_folder(args.target, "model")


def check_target(args: argparse.Namespace) -> None:
    """Refuse a file whose suffix is none of the formats."""
    if args.target.suffix.lower() not in TARGETS:
        raise OutputError(
            f"{args.target} has the suffix {args.target.suffix or '(none)'!r}, expected one of "
            f"{', '.join(TARGETS)}; choose one"
        )


def convert_weights(args: argparse.Namespace) -> None:
    """Write a model folder from released weights."""
    from hilander.estimator import HiLander

    HiLander.from_reference(
        args.source,
        k_reference=args.k_reference,
        p_tau=args.p_tau,
        features=args.features,
        early_stop=args.early_stop,
    ).save(args.target)


def convert_embeddings(source: Path, target: Path) -> None:
    """Write embeddings, with their ids and labels, in the format of the target's suffix."""
    suffix = target.suffix.lower()
    if target.exists():
        raise OutputError(
            f"{target} exists already, expected a new file; remove it or choose another name"
        )
    file = read_embeddings(source)
    columns = _columns(file)
    if suffix == ".parquet":
        write_table(target, columns)
        return
    with write_atomically(target) as temporary, open(temporary, "wb") as stream:
        if suffix == ".npy":
            np.save(stream, columns["features"], allow_pickle=False)
        else:
            np.savez(stream, **{name: _plain(values) for name, values in columns.items()})
    if suffix == ".npy" and len(columns) > 1:
        others = " and ".join(name for name in columns if name != "features")
        print(f"hilander: .npy holds one array; {others} left out", file=sys.stderr)


def _columns(file: EmbeddingFile) -> dict[str, Any]:
    columns = {"id": file.ids, "features": file.features, "labels": file.labels}
    return {
        name: values.reshape(len(values), -1)[:, 0] if name != "features" else values
        for name, values in columns.items()
        if values is not None
    }


def _plain(values: Any) -> Any:
    """Convert text from objects, as Arrow gives it, because .npz would pickle objects."""
    return values.astype(str) if values.dtype == object else values
