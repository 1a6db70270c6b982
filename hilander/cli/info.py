"""``hilander info``: describe a model, a run or a file."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from hilander.cli.inputs import find_model
from hilander.errors import FileFormatError, MissingFileError
from hilander.io.files import EMBEDDING_SUFFIXES, read_embeddings
from hilander.io.schemas import RunDetails
from hilander.io.stored_json import read_json
from hilander.io.writing import MARKER, check_folder_kind, list_stored_files, read_marker

# Explanations that are printed after a value.
MEANINGS = {
    "n_clusters": "by level",
    "largest": "points of the largest final cluster",
    "singletons": "final clusters of one point",
    "k": "neighbours of each point",
    "p_tau": "lowest probability of a link",
    "p_tau_merge": "lowest probability of a merge of two clusters",
    "p_tau_applied": "by level: of points, then of merges of clusters",
    "seconds": "all stages",
    "early_stop": "stop at a level that adds more than 1/k of the edges of the previous level",
    "as_released": "decode exactly as the authors' released code",
    "dim": "width of the embeddings",
    "hidden": "width of the network",
    "members": "small networks whose outputs are averaged",
    "learned_merges": "merges of clusters are judged by a trained classifier too",
    "small_set_points": "sets of up to this many points have a network of their own",
    "features": "input for each node: embedding of its peak, mean of its points, or both",
    "encoder": "layer that combines a node with its neighbours",
    "layers": "of the encoder",
    "heads": "of the attention",
    "dropout": "share of the encoder's outputs that is dropped in training",
    "epochs": "passes over the training set",
    "classifiers": "edge classifiers; each was trained for that many epochs",
    "prior": "second model whose log-odds of a link are averaged with the trained one's",
    "own_weight": "weight of the trained model in that average",
    "n_validation_identities": "held out to choose automatic settings",
    "validation_bcubed_f": "BCubed F on the held-out identities",
    "input_width": "input features of each node",
}
# Facts in the summary of a training run that are shown, in this order.
SUMMARY_FACTS = (
    "name", "trained_on", "n_points", "n_identities", "n_validation_identities", "prior",
    "own_weight", "imported_from",
)  # fmt: skip


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "info",
        help="describe a model, a run or a file of embeddings",
        description="Describe a model folder, a run folder, a file of embeddings, or a .pth file "
        "of the authors' released code.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "path", metavar="PATH", help="file or folder; pretrained is the pretrained model"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Describe and print."""
    facts = describe(find_model(args.path))
    if args.json:
        print(json.dumps(facts, indent=2, default=str))
        return 0
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        meaning = f"  ({MEANINGS[name]})" if name in MEANINGS else ""
        print(f"{name.replace('_', ' '):<{width}}  {_as_text(value)}{meaning}")
    return 0


def describe(path: Path) -> dict[str, Any]:
    """Facts about a file or folder, as plain values; "kind" names its type."""
    if path.is_dir():
        return _describe_folder(path)
    if not path.exists():
        raise MissingFileError(
            f"{path} does not exist, expected a file or folder, or the word pretrained; check the "
            "path"
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
    kind = read_marker(path)["hilander"]
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

    estimator = HiLander.load(path)
    model = estimator.model_
    settings, summary = model.network.settings.to_dict(), model.summary
    shown_elsewhere = {"dim", "prior", "own_weight"}
    facts = {
        "kind": "model",
        "path": str(path),
        "method": estimator.method,
        "dim": "any" if model.n_features is None else model.n_features,
        **{name: value for name, value in settings.items() if name not in shown_elsewhere},
        "n_weights": sum(weight.numel() for weight in model.network.parameters()),
        "embeddings_are": model.preparation.describe(),
        "k": model.rules.k,
        "p_tau": model.rules.p_tau,
        "p_tau_merge": "of each set" if model.rules.adapt_merges else model.rules.p_tau_merge,
        "early_stop": model.rules.early_stop,
        "as_released": model.rules.as_released,
        **_count_epochs(model.history),
        **{name: summary[name] for name in SUMMARY_FACTS if name in summary},
    }
    tried = [row["bcubed_f"] for row in summary.get("validation", ())]
    return facts | ({"validation_bcubed_f": max(tried)} if tried else {})


def _count_epochs(history: list[dict[str, Any]]) -> dict[str, int]:
    """Epochs of each edge classifier, and their number if there are several."""
    # Version 0.1 called a classifier a look. In pretrained models of earlier versions several draws
    # of the training sets trained each of them.
    trained = [
        (record.get("classifier", record.get("look")), record.get("draw")) for record in history
    ]
    # Classifiers of clusters are no longer used.
    used = [(name, draw) for name, draw in trained if "-clusters-" not in (name or "")]
    epochs = max(Counter(used).values(), default=0)
    n_classifiers = len({name for name, _ in used})
    return {"epochs": epochs} | ({"classifiers": n_classifiers} if n_classifiers > 1 else {})


def _describe_run(path: Path) -> dict[str, Any]:
    from hilander.hierarchy.hierarchy import Hierarchy
    from hilander.hierarchy.run_extras import DETAILS_FILE

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
    if (path / DETAILS_FILE).is_file():
        details = read_json(list_stored_files(path).check(DETAILS_FILE), RunDetails)
        facts |= _read_details(details, hierarchy.n_levels)
    return facts


def _read_details(details: dict[str, Any], n_levels: int) -> dict[str, Any]:
    """Facts in run.json."""
    settings, stages = details.get("settings", {}), details.get("stages", [])
    facts = {"input": details.get("input", {}).get("path"), "model": settings.get("model")}
    if prepared := details.get("model", {}).get("preparation"):
        facts["embeddings_are"] = prepared
    facts |= {name: settings.get(name) for name in ("k", "p_tau")}
    applied = [stage["p_tau"] for stage in stages if stage.get("p_tau") is not None]
    if applied:
        # The last stage is no level if it merged nothing.
        facts["p_tau_applied"] = applied[:n_levels]
    facts["seconds"] = round(sum(stage["seconds"] for stage in stages), 2)
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
        "kind": "weights of the released code",
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
