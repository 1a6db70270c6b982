"""A trained model on disk: its folder, written and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hilander.embeddings.preparation import PerSetPreparation, Preparation
from hilander.errors import FileFormatError, ModelError, SettingError
from hilander.hierarchy.rules import DEFAULT_MERGE, Rules
from hilander.io.digests import FileList
from hilander.io.schemas import History, ModelDescription
from hilander.io.stored_json import check_schema, read_json
from hilander.io.writing import folder_writer, open_stored_folder, write_json
from hilander.linkage.paper.reference import import_reference_weights
from hilander.linkage.paper.settings import Features
from hilander.linkage.storage import MODEL_KIND, StoredNetwork, read_network, write_network
from hilander.training.methods import find_method
from hilander.training.model import Model
from hilander.training.parameters import NOT_GIVEN, OLD_VALUES

HISTORY_FILE = "history.json"
# Parameters in models of version 0.1, and their present names.
_OLD_PARAMETERS = {"adviser": "prior"}


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """A model and the parameters that it was trained with.

    Parameters
    ----------
    model : Model
    parameters : dict
        Constructor parameters of `HiLander`, without the device.
    """

    model: Model
    parameters: dict[str, Any]


def write_model_folder(stored: ModelFolder, folder: Path, version: str) -> Path:
    """Write a model and its parameters, whole or not at all, and give the folder."""
    model = stored.model
    preparation = model.preparation
    arrays = {name: getattr(preparation, name, None) for name in ("mean", "transform")}
    description = {
        "hilander": version,
        "n_features": model.n_features,
        "is_metric": getattr(preparation, "is_metric", False),
        "whitens_each_set": getattr(preparation, "whitens_each_set", True),
        "rules": asdict(model.rules),
        "parameters": _plain(stored.parameters),
        "training": model.summary,
    }
    present = {name: array for name, array in arrays.items() if array is not None}
    with folder_writer(folder, MODEL_KIND) as inside:
        write_network(StoredNetwork(model.network, present, description), inside)
        write_json(inside / HISTORY_FILE, model.history)
    return folder


def read_model_folder(folder: Path) -> ModelFolder:
    """Read what `write_model_folder` wrote, also by version 0.1.

    Raises
    ------
    ModelError
        When it is damaged or of another version.
    """
    files = open_stored_folder(folder, MODEL_KIND)
    source, stored = files.folder, read_network(files)
    described = stored.description
    try:
        check_schema(described, ModelDescription, source)
        parameters = rename_parameters(described["parameters"])
        if parameters["learning"] is not None:
            method = find_method(parameters["method"])
            parameters["learning"] = method.learning_settings(parameters["learning"])
        n_features = described["n_features"]
        model = Model(
            network=stored.network,
            rules=_read_rules(stored),
            preparation=_read_preparation(stored, parameters),
            history=_read_history(files),
            summary=_read_summary(stored),
            n_features=None if n_features is None else int(n_features),
        )
    except (KeyError, TypeError, AttributeError, FileFormatError) as error:
        raise ModelError(f"{source} is not a model of this version ({error})") from error
    return ModelFolder(model, parameters)


def _read_rules(stored: StoredNetwork) -> Rules:
    """The stored rules. The threshold of merges of earlier versions was one of other scores."""
    rules = Rules.from_dict(stored.description["rules"])
    if stored.merged_by_classifiers:
        return replace(rules, p_tau_merge=DEFAULT_MERGE)
    return rules


def _read_summary(stored: StoredNetwork) -> dict[str, Any]:
    """The stored summary. Scores of tries with merges of another kind are left out."""
    summary: dict[str, Any] = stored.description["training"]
    if stored.merged_by_classifiers and "validation" in summary:
        return summary | {"validation": []}
    return summary


def import_reference(
    path: Path, features: Features, k_reference: int, p_tau: float, *, early_stop: bool
) -> ModelFolder:
    """Weights of the authors' released code as a model of the published method.

    Parameters
    ----------
    path : path of a `.pth` file
    features : {"concat", "identity"}
    k_reference : int
        Neighbours, the node itself counted.
    p_tau : float
    early_stop : bool
    """
    if k_reference < 2:
        raise SettingError(f"k_reference={k_reference} counts the node itself; use 2 or more")
    rules = Rules(k_reference - 1, p_tau, early_stop, as_released=True)
    network = import_reference_weights(path, features)
    shape = network.settings
    parameters = {
        "method": "paper", "k": rules.k, "p_tau": rules.p_tau, "features": features,
        "encoder": shape.encoder, "hidden": shape.hidden, "layers": shape.layers,
        "heads": shape.heads, "centre": False, "whiten": False, "early_stop": rules.early_stop,
    }  # fmt: skip
    summary = {"imported_from": path.name}
    return ModelFolder(Model(network, rules, summary=summary, n_features=shape.dim), parameters)


def rename_parameters(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor parameters with their present names; those of version 0.1 are renamed."""
    parameters = {_OLD_PARAMETERS.get(name, name): value for name, value in stored.items()}
    for name in ("start", "prior"):
        if name in parameters:
            parameters[name] = OLD_VALUES.get(parameters[name], parameters[name])
    return parameters


def _read_preparation(
    stored: StoredNetwork, parameters: Mapping[str, Any]
) -> Preparation | PerSetPreparation:
    described = stored.description
    if described["n_features"] is None:
        return PerSetPreparation(parameters["centre"])
    old_name = described.get("whitens_own", False)  # of version 0.1; absent before that
    return Preparation(
        stored.arrays.get("mean"),
        stored.arrays.get("transform"),
        is_metric=bool(described.get("is_metric", False)),
        whitens_each_set=bool(described.get("whitens_each_set", old_name)),
    )


def _read_history(files: FileList) -> Any:
    history = files.check(HISTORY_FILE)
    return read_json(history, History) if history.is_file() else []


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor parameters as plain values, without the device and deprecated names."""
    learning = parameters["learning"]
    plain = dict(parameters) | {"learning": None if learning is None else asdict(learning)}
    if (old := plain.get("adviser", NOT_GIVEN)) != NOT_GIVEN:
        plain["prior"] = old
    plain |= {name: str(plain[name]) for name in ("start", "prior")}
    return {name: value for name, value in plain.items() if name not in ("device", "adviser")}
