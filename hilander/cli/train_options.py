"""Options of ``hilander train``, and the untrained model that they describe."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hilander.cli.inputs import (
    AUTO_YES_NO,
    METHODS,
    add_decoder,
    none_if_auto,
    number_or_auto,
    whole,
)
from hilander.errors import SettingError

if TYPE_CHECKING:
    from hilander.estimator import HiLander
    from hilander.training.method import Method

# Options that are parameters of the estimator under the same name. None means: not given.
PARAMETERS = ("k", "hidden", "features", "encoder", "layers", "heads", "tune_k", "start", "prior")
# Options that are learning settings of one method or of both. None means: not given.
LEARNING = (
    "epochs", "batch_size", "learning_rate", "optimizer", "balance", "focal_gamma", "as_released"
)  # fmt: skip
# Attributes of the parsed arguments whose option has another name.
OPTION_NAMES = {"as_released": "--released-hierarchy"}


def add_inference_options(group: Any) -> None:
    """Add what the model does when it clusters."""
    group.add_argument(
        "--k",
        type=whole,
        help="neighbours of each point, itself not counted (default: 15 for evidence, 10 for "
        "paper)",
    )
    group.add_argument(
        "--tune-k",
        action="store_true",
        default=None,
        help="choose k on the held-out identities (paper)",
    )
    group.add_argument(
        "--p-tau",
        type=number_or_auto,
        default="auto",
        metavar="P",
        help="lowest probability of a link, 0 to 1 (default: auto, chosen on the held-out "
        "identities)",
    )
    group.add_argument(
        "--val-fraction",
        type=float,
        default=0.2,
        metavar="SHARE",
        help="share of the identities that is held out to choose automatic settings (default: 0.2)",
    )
    add_decoder(group, "auto, leiden for evidence and parents for paper", ("auto",))
    group.add_argument(
        "--early-stop",
        action="store_true",
        help="stop clustering at a level that adds more than 1/k of the edges that the previous "
        "level added",
    )


def add_preparation_options(group: Any) -> None:
    """Add the options of the preparation of embeddings."""
    group.add_argument(
        "--centre",
        choices=list(AUTO_YES_NO),
        default="auto",
        help="subtract the mean of the training embeddings (default: auto, if all embeddings point "
        "in similar directions)",
    )
    group.add_argument(
        "--whiten",
        choices=list(AUTO_YES_NO),
        default="auto",
        help="reduce the weight of directions in which embeddings of one identity differ (default: "
        "auto; evidence whitens, or learns a metric, if that helps on held-out identities; paper "
        "does not whiten)",
    )


def add_network_options(group: Any) -> None:
    """Add what the network looks like."""
    group.add_argument(
        "--method",
        choices=METHODS,
        default="evidence",
        help="evidence: classify links by features of the k-NN graph. paper: the published "
        "Hi-LANDER, a graph network on the embeddings (default: evidence)",
    )
    group.add_argument(
        "--hidden",
        type=whole,
        help="width of the network (default: 32 for evidence, 512 for paper)",
    )
    group.add_argument(
        "--features",
        choices=("identity", "average", "concat", "auto"),
        help="input of the network for each node. identity: embedding of its peak. average: mean "
        "embedding of its points. concat: both. auto: train with each of the three and keep the "
        "best (paper; default: concat)",
    )
    group.add_argument(
        "--encoder",
        choices=("attention", "convolution"),
        help="layer that combines a node with its neighbours (paper; default: attention)",
    )
    group.add_argument("--layers", type=whole, help="encoder layers (paper; default: 1)")
    group.add_argument("--heads", type=whole, help="attention heads (paper; default: 1)")


def add_learning_options(group: Any) -> None:
    """Add how the network is trained."""
    group.add_argument(
        "--start",
        type=none_if_auto,
        metavar="{auto,pretrained,none} or FOLDER",
        help="weights that training starts from. pretrained: those of the pretrained model. none: "
        "random weights. FOLDER: those of a model folder (evidence; default: auto, which is none)",
    )
    group.add_argument(
        "--prior",
        type=none_if_auto,
        metavar="{auto,pretrained,none} or FOLDER",
        help="second model, whose log-odds of a link are averaged with those of the trained one. "
        "Its weight falls from 1 as the training set grows; a model of a weight below 0.25 is not "
        "used (evidence; default: auto, which is pretrained)",
    )
    group.add_argument(
        "--epochs",
        type=whole,
        help="passes over the training data (default: 24 for evidence, 250 for paper)",
    )
    group.add_argument(
        "--batch-size",
        type=whole,
        help="edges in a batch for evidence (default: 1024), nodes in a batch for paper (default: "
        "4096)",
    )
    group.add_argument(
        "--learning-rate",
        type=float,
        metavar="RATE",
        help="highest learning rate; it falls to 0 along a cosine (default: 0.006 for evidence; "
        "for paper 0.1 with sgd, 0.001 with adamw)",
    )
    group.add_argument(
        "--optimizer", choices=("sgd", "adamw"), help="optimizer (paper; default: sgd)"
    )
    group.add_argument(
        "--balance",
        action="store_true",
        default=None,
        help="sample as many edges within identities as between them, in each batch (paper)",
    )
    group.add_argument(
        "--focal-gamma",
        type=float,
        metavar="GAMMA",
        help="exponent of the focal loss (paper; default: 0, plain cross-entropy)",
    )
    group.add_argument(
        "--released-hierarchy",
        dest="as_released",
        action="store_true",
        default=None,
        help="build the training hierarchies as the authors' released code does, from similarity "
        "alone, without the labels (paper)",
    )
    group.add_argument(
        "--seed", type=int, default=0, help="the same seed gives the same weights (default: 0)"
    )


def make_model(args: argparse.Namespace) -> HiLander:
    """The untrained estimator that the options describe."""
    from hilander.estimator import HiLander
    from hilander.training.methods import find_method

    method = find_method(args.method)
    refuse_options_of_other_methods(args, method)
    return HiLander(
        method=args.method,
        p_tau=args.p_tau,
        decoder=args.decoder,
        centre=AUTO_YES_NO[args.centre],
        whiten=AUTO_YES_NO[args.whiten],
        learning=method.learning_from_options(given_options(args, LEARNING)),
        val_fraction=args.val_fraction,
        early_stop=args.early_stop,
        random_state=args.seed,
        device=args.device,
        verbose=not args.quiet,
        **given_options(args, PARAMETERS),
    )


def given_options(args: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    """Those of some options that the user gave."""
    values = {name: getattr(args, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def refuse_options_of_other_methods(args: argparse.Namespace, method: Method) -> None:
    """Refuse an option that was given, but that only another method reads."""
    from hilander.training.methods import METHODS as KNOWN

    given = given_options(args, PARAMETERS + LEARNING)
    for other in KNOWN.values():
        foreign = {*other.only_parameters, *other.learning_options} - {*method.learning_options}
        for name in given:
            if other is not method and name in foreign:
                option = OPTION_NAMES.get(name, "--" + name.replace("_", "-"))
                raise SettingError(
                    f"{option} is for --method {other.name}, got --method {method.name}; leave it "
                    f"out or add --method {other.name}"
                )
