"""Schemas of the JSON files that hilander stores, for `read_json`.

A key that a class does not name is allowed, so that files of a later version can be read. Keys with
a default are missing in files of some earlier version.
"""

from __future__ import annotations

from typing import Any

import msgspec

History = list[dict[str, Any]]  # history.json of a model: one record for each epoch


class FileEntry(msgspec.Struct, frozen=True):
    """What a marker says of a file."""

    size: int
    blake2b: str


class Marker(msgspec.Struct, frozen=True):
    """Content of `hilander.json`; version 0.1 listed names alone."""

    hilander: str
    format: int
    files: dict[str, FileEntry] | list[str] = []


class TriedThreshold(msgspec.Struct, frozen=True):
    """A row of the validation table of a model."""

    bcubed_f: float


class TrainingSummary(msgspec.Struct, frozen=True):
    """What training reports of itself."""

    validation: list[TriedThreshold] = []


class ModelDescription(msgspec.Struct, frozen=True):
    """Content of `model.json`."""

    network: dict[str, Any]
    rules: dict[str, Any]
    parameters: dict[str, Any]
    training: TrainingSummary
    n_features: int | None


class RunInput(msgspec.Struct, frozen=True):
    """The embeddings of a run."""

    path: str = ""
    n: int = 0
    has_ids: bool = True


class RunSettings(msgspec.Struct, frozen=True):
    """The settings of a run that other commands read."""

    k: int | None = None
    p_tau: float | None = None
    model: str | None = None


class RunModel(msgspec.Struct, frozen=True):
    """How a run prepared its embeddings."""

    preparation: str = ""


class RunStage(msgspec.Struct, frozen=True):
    """One stage of a run."""

    stage: str
    seconds: float
    p_tau: float | None = None


class RunDetails(msgspec.Struct, frozen=True):
    """Content of `run.json`. Others may write runs too, so all of it may be missing."""

    input: RunInput = RunInput()
    settings: RunSettings = RunSettings()
    n_clusters: list[int] = []
    stages: list[RunStage] = []
    model: RunModel = RunModel()
    versions: dict[str, str] = {}
    remark: str = ""


class ImagesNote(msgspec.Struct, frozen=True):
    """Content of `images.json`."""

    folder: str


class CollectionNotes(msgspec.Struct, frozen=True):
    """Content of `collection.json`."""

    next_cluster: int
    next_row: int
    n_updates: int
    asked: dict[str, Any]
    whiten: bool | str


class SetBaseNotes(msgspec.Struct, frozen=True):
    """Content of `base.json`."""

    rules: dict[str, Any]
    p_tau: float | None
    n_points: int
    measures: dict[str, Any]
    preparation: dict[str, bool]
    p_tau_merge: float | None = None
