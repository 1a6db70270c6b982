"""``hilander info``: what a file or folder is."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from hilander.cli.inputs import name_model
from hilander.errors import FileFormatError, MissingFileError
from hilander.io.files import EMBEDDING_SUFFIXES, read_embeddings
from hilander.io.writing import MARKER, check_folder_kind, read_json

# What is shown beside a value, where its name alone does not tell.
MEANINGS = {
    "n_clusters": "by level",
    "largest": "points of the largest final cluster",
    "singletons": "final clusters of one point",
    "k": "neighbours of each point",
    "p_tau": "least probability of a link",
    "p_tau_applied": "by level: suited to the sizes that were found, and to merging clusters",
    "seconds": "all stages",
    "early_stop": "whether it stops where a level adds more than 1/k of the edges of the last",
    "as_released": "whether it decodes to the letter of the authors' code",
    "dim": "width of the embeddings",
    "hidden": "width of the network",
    "members": "small networks whose mean decides",
    "relative_sizes": "whether it sees the sizes of clusters beside those of the whole set",
    "small_set_points": "sets of up to so many points have a network of their own",
    "set_context": "whether it judges merges in the context of the whole set",
    "features": "what a node shows the network: its peak's feature, the mean, or both",
    "encoder": "how a node is mixed with its neighbours",
    "layers": "of the encoder",
    "heads": "of the attention",
    "dropout": "share of the encoder's outputs, in training",
    "epochs": "passes over the training set",
    "looks": "at points and at clusters, each trained for so many epochs",
    "draws": "of the training sets; each taught some of the members",
    "prior": "a model that is asked about each link as well",
    "own_weight": "of what was learned, beside the adviser's",
    "n_validation_identities": "held out to choose what is automatic",
    "validation_bcubed_f": "of the identities held out",
    "input_width": "features that a node shows the network",
}


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "info",
        help="say what a model, a run or a file of embeddings is",
        description="Say in a few lines what a model folder, a run folder, a file of embeddings "
        "or a reference .pth file is.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "path", metavar="PATH", type=Path, help="the file or folder; box is the model in the box"
    )
    parser.add_argument("--json", action="store_true", help="print JSON in place of lines")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Describe and print."""
    facts = describe(find_named(args.path))
    if args.json:
        print(json.dumps(facts, indent=2, default=str))
        return 0
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        meaning = f"  ({MEANINGS[name]})" if name in MEANINGS else ""
        print(f"{name.replace('_', ' '):<{width}}  {_as_text(value)}{meaning}")
    return 0


def find_named(path: Path) -> Path:
    """The path itself, or that of the model in the box, which goes by the name of box."""
    if name_model(str(path)) is not None:
        return path
    from hilander.linkage.storage import PRETRAINED

    return PRETRAINED


def describe(path: Path) -> dict[str, Any]:
    """What is known of a path, as plain values; the key "kind" says what it is."""
    if path.is_dir():
        return _describe_folder(path)
    if not path.exists():
        raise MissingFileError(
            f"{path} does not exist, expected a file or folder, or box for the model in the box; "
            "check the path"
        )
    suffix = path.suffix.lower()
    if suffix == ".pth":
        return _describe_weights(path)
    if suffix in EMBEDDING_SUFFIXES:
        return _describe_embeddings(path)
    known = ", ".join((*EMBEDDING_SUFFIXES, ".pth"))
    raise FileFormatError(
        f"{path} has the suffix {path.suffix or '(none)'!r}, expected a model or run folder or one "
        f"of {known}"
    )


def _describe_folder(path: Path) -> dict[str, Any]:
    if not (path / MARKER).is_file():
        raise FileFormatError(
            f"{path} has no {MARKER}, expected a folder written by hilander; check the path"
        )
    marker = read_json(path / MARKER)
    kind = marker.get("hilander") if isinstance(marker, dict) else None
    if kind == "model":
        return _describe_model(check_folder_kind(path, "model"))
    if kind == "run":
        return _describe_run(check_folder_kind(path, "run"))
    return {
        "kind": f"{kind} folder of hilander",
        "path": str(path),
        "holds": sorted(item.name for item in path.iterdir() if item.name != MARKER),
    }


def _describe_model(path: Path) -> dict[str, Any]:
    from hilander.estimator import HiLander

    model = HiLander.load(path)
    network, summary = model.network_.settings, model.summary_
    told_else = {"dim", "prior", "own_weight"}
    facts = {
        "kind": "model",
        "path": str(path),
        "method": model.method,
        "dim": getattr(model, "n_features_in_", "any"),
        **{name: value for name, value in network.to_dict().items() if name not in told_else},
        "n_weights": sum(weight.numel() for weight in model.network_.parameters()),
        "embeddings_are": model.preparation_.describe(),
        "k": model.rules_.k,
        "p_tau": model.rules_.p_tau,
        "early_stop": model.rules_.early_stop,
        "as_released": model.rules_.as_released,
        **_count_epochs(model.history_),
    }
    for name in (
        "name",
        "draws",
        "trained_on",
        "n_points",
        "n_identities",
        "n_validation_identities",
        "prior",
        "own_weight",
        "imported_from",
    ):
        if name in summary:
            facts[name] = summary[name]
    tried = [row["bcubed_f"] for row in summary.get("validation", ())]
    if tried:
        facts["validation_bcubed_f"] = max(tried)
    return facts


def _count_epochs(history: list[dict[str, Any]]) -> dict[str, int]:
    """Epochs; of a network of several looks those of one look, and how many looks there are."""
    # Version 0.1 wrote "look" for "classifier".
    by_classifier = Counter(
        (record.get("draw"), record.get("classifier", record.get("look"))) for record in history
    )
    epochs, classifiers = (
        max(by_classifier.values(), default=0),
        {look for _, look in by_classifier},
    )
    return {"epochs": epochs} | ({"looks": len(classifiers)} if len(classifiers) > 1 else {})


def _describe_run(path: Path) -> dict[str, Any]:
    from hilander.hierarchy.hierarchy import Hierarchy

    hierarchy = Hierarchy.load(path)
    sizes = hierarchy.sizes(-1)
    facts = {
        "kind": "run",
        "path": str(path),
        "n_points": hierarchy.n_points,
        "n_levels": hierarchy.n_levels,
        "n_clusters": [level.n_clusters for level in hierarchy.levels],
        "largest": int(sizes.max()),
        "singletons": int((sizes == 1).sum()),
    }
    if (path / "run.json").is_file():
        told = read_json(path / "run.json")
        facts["input"] = told["input"]["path"]
        facts["model"] = told["settings"]["model"]
        if prepared := told.get("model", {}).get("preparation"):
            facts["embeddings_are"] = prepared
        facts["k"], facts["p_tau"] = told["settings"]["k"], told["settings"]["p_tau"]
        applied = [one["p_tau"] for one in told["stages"] if "p_tau" in one]
        if applied:
            # The last step that was tried is no level if it merged nothing.
            facts["p_tau_applied"] = applied[: hierarchy.n_levels]
        facts["seconds"] = round(sum(stage["seconds"] for stage in told["stages"]), 2)
    return facts


def _describe_embeddings(path: Path) -> dict[str, Any]:
    file = read_embeddings(path)
    facts: dict[str, Any] = {
        "kind": "embeddings",
        "path": str(path),
        "n": len(file.features),
        "dim": int(file.features.shape[1]),
        "dtype": str(file.features.dtype),
        "ids": file.ids is not None,
    }
    if file.labels is not None:
        facts["n_identities"] = len(np.unique(file.labels.astype(str)))
    return facts


def _describe_weights(path: Path) -> dict[str, Any]:
    from hilander.linkage.paper.reference import read_reference_settings

    settings = read_reference_settings(path)
    return {
        "kind": "weights of the reference implementation",
        "path": str(path),
        "encoder": settings.encoder,
        "input_width": settings.input_width,
        "hidden": settings.hidden,
        "layers": settings.layers,
        "heads": settings.heads,
    }


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_as_text(item) for item in value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
