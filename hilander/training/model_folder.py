"""A `HiLander` on disk: its folder, written and read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander.embeddings.preparation import OwnPreparation, Preparation
from hilander.errors import ModelError
from hilander.hierarchy.rules import Rules
from hilander.io.writing import check_folder_kind, folder_writer, read_json, write_json
from hilander.linkage.evidence.training import EvidenceLearning
from hilander.linkage.paper.settings import Features
from hilander.linkage.paper.training import LearningSettings, learning_from_dict
from hilander.linkage.storage import BOX, StoredModel, read_model, write_model

if TYPE_CHECKING:
    from hilander.estimator import HiLander

MODEL_KIND = "model"
HISTORY_FILE = "history.json"


def save_model(model: HiLander, folder: Path) -> None:
    """Write a fitted model, whole or not at all."""
    from hilander import __version__

    preparation = model.preparation_
    arrays = {name: getattr(preparation, name, None) for name in ("mean", "transform")}
    present = {name: array for name, array in arrays.items() if array is not None}
    description = {
        "hilander": __version__,
        "n_features": getattr(model, "n_features_in_", None),
        "normalise": getattr(preparation, "normalise", True),
        "is_metric": getattr(preparation, "is_metric", False),
        "whitens_own": getattr(preparation, "whitens_own", True),
        "rules": asdict(model.rules_),
        "parameters": plain_parameters(model),
        "training": model.summary_,
    }
    stored = StoredModel(model.network_, present, description)
    with folder_writer(folder, MODEL_KIND) as inside:
        write_model(stored, inside)
        write_json(inside / HISTORY_FILE, model.history_)


def load_model(kind: type[HiLander], folder: Path, device: str) -> HiLander:
    """Read what `save_model` wrote, as a model of the given class."""
    source = check_folder_kind(folder, MODEL_KIND)
    stored = read_model(source)
    try:
        parameters = dict(stored.description["parameters"]) | {"device": device}
        if parameters["learning"] is not None:
            parameters["learning"] = _read_learning(parameters)
        model = kind(**parameters)
        model.rules_ = Rules(**stored.description["rules"])
        n_features = stored.description["n_features"]
        normalise = bool(stored.description["normalise"])
        is_metric, whitens_own = (  # which early versions did not have
            bool(stored.description.get(name, False)) for name in ("is_metric", "whitens_own")
        )
        model.summary_ = stored.description["training"]
    except (KeyError, TypeError) as error:
        raise ModelError(f"{source} is not a model of this version ({error})") from error
    if n_features is None:
        model.preparation_ = OwnPreparation(model.centre)
    else:
        model.n_features_in_ = int(n_features)
        mean, transform = stored.arrays.get("mean"), stored.arrays.get("transform")
        model.preparation_ = Preparation(
            mean, normalise, transform, is_metric=is_metric, whitens_own=whitens_own
        )
    model.network_ = stored.network
    history = source / HISTORY_FILE
    model.history_ = read_json(history) if history.is_file() else []
    return model


def load_box(kind: type[HiLander], device: str) -> HiLander:
    """Read the model in the box, as a model of the given class."""
    return load_model(kind, BOX, device)


def import_reference(
    kind: type[HiLander], path: Path, features: Features, rules: Rules, device: str
) -> HiLander:
    """Read weights of the authors' released code, as a model of the given class."""
    from hilander.linkage.paper.reference import import_reference_weights

    network = import_reference_weights(path, features)
    shape = network.settings
    model = kind(
        method="paper", k=rules.k, p_tau=rules.p_tau, features=features,
        encoder=shape.encoder, hidden=shape.hidden, layers=shape.layers, heads=shape.heads,
        centre=False, whiten=False, early_stop=rules.early_stop, device=device,
    )  # fmt: skip
    model.network_, model.n_features_in_ = network, shape.dim
    model.rules_, model.preparation_ = rules, Preparation(None)
    model.history_, model.summary_ = [], {"imported_from": path.name}
    return model


def _read_learning(parameters: dict[str, Any]) -> LearningSettings | EvidenceLearning:
    if parameters["method"] == "paper":
        return learning_from_dict(parameters["learning"])
    return EvidenceLearning(**parameters["learning"])


def plain_parameters(model: HiLander) -> dict[str, Any]:
    """Constructor parameters as plain values; the device is the reader's choice."""
    parameters = model.get_params(deep=False)
    if parameters["learning"] is not None:
        parameters["learning"] = asdict(parameters["learning"])
    parameters |= {name: str(parameters[name]) for name in ("start", "adviser")}
    return {name: value for name, value in parameters.items() if name != "device"}
