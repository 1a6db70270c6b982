"""``hilander train``: learn to cluster from labelled embeddings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander.cli.inputs import add_device, add_input, add_labels, add_wait, read_input, tell
from hilander.cli.known import add_pairs, add_review, read_training_knowledge
from hilander.cli.old_names import add_old_options
from hilander.cli.train_checkpoint import CheckpointFolder
from hilander.cli.train_options import (
    add_inference_options,
    add_learning_options,
    add_network_options,
    add_preparation_options,
    make_model,
)
from hilander.errors import HiLanderError, LabelError
from hilander.io.files import EmbeddingFile, read_labels
from hilander.io.locks import lock_output
from hilander.io.writing import check_output_folder

if TYPE_CHECKING:
    from hilander.estimator import HiLander


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "train",
        help="train a model on labelled embeddings",
        description="Train a model on labelled embeddings and write a model folder. If the command "
        "is killed or stopped, the same command resumes from MODEL.checkpoint and ends with the "
        "same weights. Options marked (evidence) or (paper) are for that method only.",
        allow_abbrev=False,
    )
    add_input(parser)
    add_labels(
        parser,
        "file with the identity of each embedding: .csv, .tsv, .txt, .npy, .npz, .parquet or .pkl; "
        "matched by id if both files have ids, else by order (default: the labels in EMB)",
    )
    parser.add_argument(
        "-o", "--output", metavar="MODEL", type=Path, required=True, help="model folder to write"
    )
    group = parser.add_argument_group("what people know")
    add_pairs(group)
    add_review(
        group,
        "its answers are training evidence; without labels, the corrected clusters that they "
        "concern are the identities",
    )
    add_inference_options(parser.add_argument_group("clustering"))
    add_preparation_options(parser.add_argument_group("preparation of the embeddings"))
    add_network_options(parser.add_argument_group("network"))
    add_learning_options(parser.add_argument_group("learning"))
    add_old_options(parser)
    add_wait(parser)
    add_device(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train and write the model folder, which is locked meanwhile."""
    model = make_model(args)
    check_output_folder(args.output, "model")
    with lock_output(args.output, wait=args.wait):
        train_and_write(model, args)
    return 0


def train_and_write(model: HiLander, args: argparse.Namespace) -> None:
    """Read the input, train, write the model folder and print what was done."""
    file = read_input(args, labels=None if args.labels else args.labels_column)
    labels, constraints, known = read_training_knowledge(args, file, find_labels(args, file))
    checkpoint = CheckpointFolder(args.output)
    if checkpoint.has_epochs and not args.quiet:
        print(f"resuming from {checkpoint.path}, if it has the same data and settings")
    try:
        if not args.quiet:
            print(*known, sep="\n", end="\n" * bool(known))
        folder = checkpoint.create()
        model.fit(file.features, labels, checkpoint=folder, constraints=constraints)
        model.save(args.output)
    except KeyboardInterrupt as stop:
        message = describe_stop(checkpoint)
        checkpoint.remove_if_unused()
        raise type(stop)(message) from None
    except HiLanderError:
        checkpoint.remove_if_unused()
        raise
    checkpoint.remove()
    if not args.quiet:
        print(describe_training(model))
        print(f"model: {args.output}")


def find_labels(args: argparse.Namespace, file: EmbeddingFile) -> Any:
    """The labels in the file of --labels, or else those in the file of the embeddings."""
    if args.labels is not None:
        n_rows = len(file.features)
        return read_labels(
            args.labels,
            column=args.labels_column,
            n_rows=n_rows,
            ids=file.ids,
            id_column=args.label_id_column,
            tell=None if args.quiet else tell,
        )
    if file.labels is None and not (args.review or args.pairs):
        raise LabelError(
            f"{file.source} holds no labels, expected one for each embedding; name their file "
            "with --labels, or their column with --labels-column"
        )
    return file.labels


def describe_training(model: HiLander) -> str:
    """Lines with the size of the training set, the chosen k and p_tau, and the validation score."""
    from hilander.training.methods import find_method

    training, rules = model.summary_, model.rules_
    held = training["n_validation_identities"]
    text = (
        f"trained on {training['n_points']:,} points of {training['n_identities']:,} identities"
        + (f" ({held:,} held out to choose p_tau)" if held else "")
        + f"; k = {rules.k}, p_tau = {rules.p_tau:g}"
    )
    best = max((row["bcubed_f"] for row in training["validation"]), default=None)
    if best is not None:
        synthetic = find_method(model.method).scores_synthetic_sets
        text += f"\nvalidation, BCubed F on held-out identities: {best:.3f}"
        if synthetic:
            text += (
                " (mean over sets drawn and bootstrapped from them, harder than most data; it chose"
                " p_tau and is not the score to expect: `hilander score` measures that)"
            )
    return text


def describe_stop(checkpoint: CheckpointFolder) -> str:
    """Message after Ctrl-C: whether the same command can resume."""
    if checkpoint.has_epochs:
        return f"stopped; {checkpoint.path} is kept, and the same command resumes from it"
    return "stopped before the end of the first epoch; nothing was written"
