"""A `HiLander` on disk: its folder, written and read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hilander.data import Preparation, check_folder_kind, folder_writer, read_json, write_json
from hilander.errors import ModelError
from hilander.model.learning import learning_from_dict
from hilander.model.weights import StoredModel, read_model, write_model
from hilander.tree import Rules

if TYPE_CHECKING:
    from hilander.estimator import HiLander

MODEL_KIND = "model"
HISTORY_FILE = "history.json"


def save_model(model: HiLander, folder: Path) -> None:
    """Write a fitted model, whole or not at all."""
    from hilander import __version__

    mean = model.preparation_.mean
    description = {
        "hilander": __version__,
        "normalise": model.preparation_.normalise,
        "rules": asdict(model.rules_),
        "parameters": plain_parameters(model),
        "training": model.summary_,
    }
    stored = StoredModel(model.network_, {} if mean is None else {"mean": mean}, description)
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
            parameters["learning"] = learning_from_dict(parameters["learning"])
        model = kind(**parameters)
        model.rules_ = Rules(**stored.description["rules"])
        normalise = bool(stored.description["normalise"])
        model.summary_ = stored.description["training"]
    except (KeyError, TypeError) as error:
        raise ModelError(f"{source} is not a model of this version ({error})") from error
    model.preparation_ = Preparation(stored.arrays.get("mean"), normalise)
    model.network_ = stored.network
    model.n_features_in_ = stored.network.settings.dim
    history = source / HISTORY_FILE
    model.history_ = read_json(history) if history.is_file() else []
    return model


def plain_parameters(model: HiLander) -> dict[str, Any]:
    """Constructor parameters as plain values; the device is the reader's choice."""
    parameters = model.get_params(deep=False)
    if parameters["learning"] is not None:
        parameters["learning"] = asdict(parameters["learning"])
    return {name: value for name, value in parameters.items() if name != "device"}
