"""``hilander train``: learn to cluster from labelled embeddings."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander.cli.inputs import (
    AUTO_YES_NO,
    add_decoder,
    add_device,
    add_input,
    number_or_auto,
    read_input,
    whole,
)
from hilander.errors import HiLanderError, LabelError, SettingError
from hilander.io.files import EmbeddingFile, read_labels
from hilander.io.writing import check_output_folder, claim_folder

if TYPE_CHECKING:
    from hilander.estimator import HiLander
    from hilander.linkage.evidence.training import EvidenceLearning
    from hilander.linkage.paper.training import LearningSettings

CHECKPOINT_KIND = "checkpoint"
EXIT_STOPPED = 130
# What each optimizer is used to; AdamW at the rate of SGD never settles.
LEARNING_RATES = {"sgd": 0.1, "adamw": 0.001}
# Options that mean something to the paper's model only, with the values it has by default.
PAPER_ONLY: dict[str, Any] = {
    "features": "concat",
    "encoder": "attention",
    "layers": 1,
    "heads": 1,
    "tune_k": False,
    "optimizer": "sgd",
    "balance": False,
    "focal_gamma": 0.0,
    "released_hierarchy": False,
}


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "train",
        help="learn to cluster from labelled embeddings",
        description="Learn from labelled embeddings how to cluster, and write a model folder. A "
        "run that was killed or stopped goes on from MODEL.checkpoint when the same command is "
        "given again, and ends with the same weights.",
        allow_abbrev=False,
    )
    add_input(parser)
    parser.add_argument(
        "--labels",
        metavar="LABELS",
        type=Path,
        help="identity of each embedding: .csv, .tsv, .txt, .npy, .npz, .parquet or .pkl; matched "
        "by id where both files have ids (default: the labels in EMB)",
    )
    parser.add_argument(
        "--labels-column", metavar="NAME", help="column or array of labels (default: label, labels)"
    )
    parser.add_argument(
        "-o", "--output", metavar="MODEL", type=Path, required=True, help="model folder to write"
    )
    _add_choices(parser.add_argument_group("what is chosen"))
    _add_network(parser.add_argument_group("the network"))
    _add_learning(parser.add_argument_group("learning"))
    add_device(parser)
    parser.set_defaults(run=run)


def _add_choices(group: Any) -> None:
    group.add_argument(
        "--val-fraction",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="share of the identities held out to choose p_tau and what else is asked for "
        "(default: 0.2)",
    )
    group.add_argument(
        "--k",
        type=whole,
        help="neighbours, the point itself not counted (default: 10 for paper, 15 for evidence)",
    )
    group.add_argument(
        "--tune-k",
        action="store_true",
        default=None,
        help="choose k on the held-out identities too (paper)",
    )
    group.add_argument(
        "--p-tau",
        type=number_or_auto,
        default="auto",
        metavar="P",
        help="least probability of a link, 0 to 1 (default: auto, chosen on the held-out "
        "identities)",
    )
    add_decoder(group, "auto, leiden for evidence, parents for paper", ("auto",))
    group.add_argument(
        "--centre",
        choices=list(AUTO_YES_NO),
        default="auto",
        help="subtract the training mean before taking cosines (default: auto, when the embeddings "
        "sit in a narrow cone)",
    )
    group.add_argument(
        "--whiten",
        choices=list(AUTO_YES_NO),
        default="auto",
        help="weigh down directions in which one identity differs (default: auto, for evidence "
        "where it helps identities it was not learnt on, or a learned metric where that helps "
        "more)",
    )
    group.add_argument(
        "--early-stop",
        action="store_true",
        help="stop clustering at a level that adds more than 1/k of the edges of the one before",
    )


def _add_network(group: Any) -> None:
    group.add_argument(
        "--method",
        choices=("evidence", "paper"),
        default="evidence",
        help="evidence judges links by what can be seen of them; paper is the published model, a "
        "graph network on raw embeddings (default: evidence)",
    )
    group.add_argument(
        "--features",
        choices=("identity", "average", "concat", "auto"),
        help="what a node shows the network: its peak's feature, the mean of its points, or both; "
        "auto trains all three and chooses (paper; default: concat)",
    )
    group.add_argument(
        "--encoder",
        choices=("attention", "convolution"),
        help="how a node is mixed with its neighbours (paper; default: attention)",
    )
    group.add_argument(
        "--hidden", type=whole, help="width (default: 512 for paper, 32 for evidence)"
    )
    group.add_argument("--layers", type=whole, help="encoder layers (paper; default: 1)")
    group.add_argument("--heads", type=whole, help="attention heads (paper; default: 1)")


def _add_learning(group: Any) -> None:
    group.add_argument(
        "--epochs", type=whole, help="passes (default: 250 for paper; fewer for evidence)"
    )
    group.add_argument(
        "--start",
        default="auto",
        metavar="{auto,pretrained,none} or FOLDER",
        help="what training begins with: box is the model in the box, nothing chance weights, "
        "FOLDER a model of yours (evidence; default: auto, which is nothing)",
    )
    group.add_argument(
        "--prior",
        default="auto",
        metavar="{auto,pretrained,none} or FOLDER",
        help="a model that is asked besides the one that is trained, the less the more there is "
        "to learn from, and not below a weight of a quarter (evidence; default: auto, which is "
        "box)",
    )
    group.add_argument(
        "--optimizer",
        choices=tuple(LEARNING_RATES),
        help="how weights are changed (paper; default: sgd)",
    )
    group.add_argument(
        "--learning-rate",
        type=float,
        metavar="RATE",
        help="highest rate, falls to 0 along a cosine (default: 0.006 for evidence; for paper 0.1 "
        "with sgd, 0.001 with adamw)",
    )
    group.add_argument(
        "--batch-size",
        type=whole,
        help="nodes (default: 4096 for paper) or edges for each member (1024 for evidence)",
    )
    group.add_argument(
        "--balance",
        action="store_true",
        default=None,
        help="as many edges within identities as between them, drawn anew in each batch (paper)",
    )
    group.add_argument(
        "--focal-gamma",
        type=float,
        metavar="GAMMA",
        help="exponent of the focal loss (paper; default: 0, plain cross-entropy)",
    )
    group.add_argument(
        "--released-hierarchy",
        action="store_true",
        default=None,
        help="build the training hierarchies as the authors' released code does, by similarity "
        "without a look at the labels (paper)",
    )
    group.add_argument("--seed", type=int, default=0, help="same seed, same weights (default: 0)")


def run(args: argparse.Namespace) -> int:
    """Train and write the model folder."""
    model = make_model(args)
    file = read_input(args, labels=None if args.labels else args.labels_column)
    labels = find_labels(args, file)
    check_output_folder(args.output, "model")
    checkpoint = checkpoint_folder(args.output)
    _announce_checkpoint(args, checkpoint)
    made = [folder for folder in (checkpoint, *checkpoint.parents) if not folder.exists()]
    try:
        claim_folder(checkpoint, CHECKPOINT_KIND)
        model.fit(file.features, labels, checkpoint=checkpoint)
        model.save(args.output)
    except KeyboardInterrupt:
        print(f"hilander: {_describe_stop(checkpoint, made)}", file=sys.stderr)
        return EXIT_STOPPED
    except HiLanderError:
        _drop_if_unused(checkpoint, made)
        raise
    shutil.rmtree(checkpoint, ignore_errors=True)
    if not args.quiet:
        report(model, args.output)
    return 0


def make_model(args: argparse.Namespace) -> HiLander:
    """The untrained estimator that the options describe."""
    from hilander.estimator import HiLander

    settle_paper_options(args)
    return HiLander(
        method=args.method,
        k="auto" if args.k is None else args.k,
        p_tau=args.p_tau,
        decoder=args.decoder,
        features=args.features,
        encoder=args.encoder,
        hidden=args.hidden,
        layers=args.layers,
        heads=args.heads,
        centre=AUTO_YES_NO[args.centre],
        whiten=AUTO_YES_NO[args.whiten],
        learning=make_learning(args),
        start=args.start,
        prior=args.prior,
        val_fraction=args.val_fraction,
        tune_k=args.tune_k,
        early_stop=args.early_stop,
        random_state=args.seed,
        device=args.device,
        verbose=not args.quiet,
    )


def settle_paper_options(args: argparse.Namespace) -> None:
    """Give the options of the paper's model their defaults, or refuse those of the other model."""
    for name, default in PAPER_ONLY.items():
        if getattr(args, name) is None:
            setattr(args, name, default)
        elif args.method != "paper":
            option = "--" + name.replace("_", "-")
            raise SettingError(
                f"{option} is for --method paper, got --method {args.method}; leave it out or "
                "add --method paper"
            )
    for name in ("start", "prior"):
        if args.method == "paper" and (asked := getattr(args, name)) != "auto":
            raise SettingError(
                f"--{name} {asked} is for --method evidence, got --method paper; leave it out"
            )


def make_learning(args: argparse.Namespace) -> EvidenceLearning | LearningSettings:
    """How the options say that the network is trained; what is not given is left as it is."""
    given = {"epochs": args.epochs, "batch_size": args.batch_size}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if args.learning_rate is not None:
        chosen["learning_rate"] = args.learning_rate
    if args.method == "evidence":
        from hilander.linkage.evidence.training import EvidenceLearning

        return EvidenceLearning(**chosen)
    from hilander.linkage.paper.losses import LossSettings
    from hilander.linkage.paper.training import LearningSettings

    return LearningSettings(
        optimizer=args.optimizer,
        loss=LossSettings(args.balance, args.focal_gamma),
        as_released=args.released_hierarchy,
        **{"learning_rate": LEARNING_RATES[args.optimizer], **chosen},
    )


def find_labels(args: argparse.Namespace, file: EmbeddingFile) -> Any:
    """The labels of the file that is named, or of the embeddings' own file."""
    if args.labels is not None:
        n_rows = len(file.features)
        return read_labels(args.labels, column=args.labels_column, n_rows=n_rows, ids=file.ids)
    if file.labels is None:
        raise LabelError(
            f"{file.source} holds no labels, expected one for each embedding; name their file "
            "with --labels, or their column with --labels-column"
        )
    return file.labels


def checkpoint_folder(output: Path) -> Path:
    """Where a run that has not ended keeps its state: beside the model."""
    target = Path(output).resolve()
    return target.with_name(target.name + ".checkpoint")


def report(model: HiLander, output: Path) -> None:
    """Say what was learned."""
    training = model.summary_
    held = training["n_validation_identities"]
    print(
        f"learned from {training['n_points']:,} points of {training['n_identities']:,} identities"
        + (f" ({held:,} held out to choose p_tau)" if held else "")
        + f"; k = {model.rules_.k}, p_tau = {model.rules_.p_tau:g}"
    )
    best = max((row["bcubed_f"] for row in training["validation"]), default=None)
    if best is not None:
        sets = "sets made of " if model.method == "evidence" else ""
        print(f"BCubed F on {sets}the held-out identities: {best:.3f}")
    print(f"model: {output}")


def _announce_checkpoint(args: argparse.Namespace, checkpoint: Path) -> None:
    if not args.quiet and _epochs_kept(checkpoint):
        print(f"going on from {checkpoint}, if it is of the same data and settings")


def _describe_stop(checkpoint: Path, made: list[Path]) -> str:
    if _epochs_kept(checkpoint):
        return f"stopped; {checkpoint} is kept, and the same command goes on from it"
    _drop_if_unused(checkpoint, made)
    return "stopped before the end of the first epoch; nothing was written"


def _epochs_kept(checkpoint: Path) -> bool:
    # A hidden one was being written when the run was killed.
    return any(not path.name.startswith(".") for path in checkpoint.glob("*.safetensors"))


def _drop_if_unused(checkpoint: Path, made: list[Path]) -> None:
    """Leave nothing behind of a run that never got to the end of an epoch."""
    if _epochs_kept(checkpoint) or checkpoint not in made:
        return
    shutil.rmtree(checkpoint, ignore_errors=True)
    for folder in made:
        with contextlib.suppress(OSError):  # gone, or others have put something there
            folder.rmdir()
