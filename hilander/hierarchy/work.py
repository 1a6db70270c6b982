"""The stages of the level loop: timed, and if asked stored on disk.

A run that stores its work can be killed at any moment. The same run, started again, reads the
stages that are stored and computes the rest. Its result is equal to the bit. Files are written
atomically, so a stage whose file exists is complete.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hilander.errors import FileFormatError, HiLanderError, OutputError
from hilander.graph.knn_graph import KnnGraph
from hilander.graph.scores import EdgeScores
from hilander.hierarchy.basis import SetBase
from hilander.hierarchy.decoding.parents import Parents
from hilander.io.output_errors import output_errors
from hilander.io.writing import (
    MARKER,
    check_folder_kind,
    claim_folder,
    sweep_temporaries,
    write_atomically,
    write_json,
)
from hilander.knn.search_progress import SearchProgress, StoredSearch

WORK_KIND = "work"
STAGES = ("search", "score", "decode", "pool")
_SEARCH, _SCORE, _DECODE, _ = STAGES
_SEARCHING = "searching"
_FINGERPRINT = "fingerprint.json"

Made = TypeVar("Made")


class Work:
    """Runs the stages of the level loop and records what each took.

    Attributes
    ----------
    done : list of dict
        ``level``, ``stage``, ``seconds`` and ``kept`` (whether it was read from an earlier run) of
        each stage so far.
    preparation : str
        How the embeddings were prepared, in words; empty if unknown.
    folder : Path or None
        Where work is kept; None where it is not.
    base : SetBase or None
        The preparation of the set and the measures of its scorer; None before a run.
    """

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.base: SetBase | None = None
        self.done: list[dict[str, Any]] = []
        self.preparation = ""

    def do(self, stage: str, level: int, make: Callable[..., Made], *inputs: Any) -> Made:
        """Run one stage of one level, or read it where it is stored.

        Parameters
        ----------
        stage : str
            One of `STAGES`.
        level : int
        make : callable
            Computes the result from `inputs`.
        *inputs
        """
        start = time.perf_counter()
        kept = self._recall(stage, level)
        made: Made = make(*inputs) if kept is None else kept
        if kept is None:
            self._keep(stage, level, made)
        seconds = round(time.perf_counter() - start, 4)
        self.done.append(
            {"level": level, "stage": stage, "seconds": seconds, "kept": kept is not None}
        )
        return made

    def seconds(self, stage: str) -> float:
        """Seconds of a stage, all levels together."""
        return float(sum(one["seconds"] for one in self.done if one["stage"] == stage))

    def search_progress(self, level: int) -> SearchProgress | None:
        """Where the search of a level stores its progress; None for nowhere."""
        return None

    def _recall(self, stage: str, level: int) -> Any:
        return None

    def _keep(self, stage: str, level: int, made: Any) -> None:
        pass


class KeptWork(Work):
    """Work that is stored in a folder: graphs, scores and parents of every level.

    The folder has a subfolder for each fingerprint, so files of two runs never mix.

    Parameters
    ----------
    place : Path
        Created if it does not exist.
    fingerprint : dict
        Of input, model and settings. Work of another fingerprint is removed first.

    Attributes
    ----------
    place : Path
    folder : Path
        The subfolder of this run.
    is_continued : bool
        Whether there was work of this fingerprint.
    replaced : bool
        Whether there was work of another fingerprint.

    Raises
    ------
    OutputError
        When the folder cannot be written, or was not written by hilander.
    """

    def __init__(self, place: Path, fingerprint: dict[str, Any]) -> None:
        super().__init__()
        self.place = place
        self.folder: Path = place / _name_run(fingerprint)
        self.replaced = self._remove_others()
        self.is_continued = self.has_levels
        for level in self.folder.glob(".level-*-*.npz"):
            level.unlink()  # incomplete: an earlier run was killed while writing
        claim_folder(place, WORK_KIND)
        with output_errors(self.folder):
            self.folder.mkdir(exist_ok=True)
        write_json(self.folder / _FINGERPRINT, fingerprint)

    @property
    def has_levels(self) -> bool:
        """Whether a stage is stored."""
        return any(self.folder.glob("level-*.npz"))

    def remove(self) -> None:
        """Remove the folder, after the run is complete or before another one."""
        # The marker is removed last: after an interrupted removal the folder is still recognised.
        for item in self.place.iterdir() if self.place.is_dir() else ():
            if item.name != MARKER:
                _remove(item)
        shutil.rmtree(self.place, ignore_errors=True)

    def _remove_others(self) -> bool:
        """Remove the work of other runs; whether there was any."""
        if not self.place.is_dir():
            return False
        sweep_temporaries(self.place / MARKER)
        sweep_temporaries(self.folder / _FINGERPRINT)
        if not any(self.place.iterdir()):
            return False
        try:
            check_folder_kind(self.place, WORK_KIND)
        except FileFormatError as error:
            raise OutputError(
                f"{self.place} is needed to store the work of this run, but is in use ({error}); "
                "move it away or choose another output"
            ) from error
        others = [
            item for item in self.place.iterdir() if item.name not in (MARKER, self.folder.name)
        ]
        for item in others:
            _remove(item)
        return bool(others)

    def search_progress(self, level: int) -> SearchProgress:
        """Stores the lists of a long search from time to time."""
        return StoredSearch(self._path(_SEARCHING, level))

    def _path(self, stage: str, level: int) -> Path:
        return self.folder / f"level-{level}-{stage}.npz"

    def _recall(self, stage: str, level: int) -> Any:
        path = self._path(stage, level)
        if stage not in _READERS or not path.is_file():
            return None
        try:
            return _READERS[stage](path)
        except (HiLanderError, OSError, ValueError, KeyError, MemoryError):
            return None  # damaged: computed again

    def _keep(self, stage: str, level: int, made: Any) -> None:
        if stage in _WRITERS:
            _WRITERS[stage](made, self._path(stage, level))
        if stage == _SEARCH:
            self._path(_SEARCHING, level).unlink(missing_ok=True)


def _name_run(fingerprint: dict[str, Any]) -> str:
    """Name of the folder of a run: a digest of its fingerprint."""
    text = json.dumps(fingerprint, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _remove(item: Path) -> None:
    if item.is_dir() and not item.is_symlink():
        shutil.rmtree(item)
    else:
        item.unlink(missing_ok=True)


def _write_arrays(path: Path, **arrays: Any) -> None:
    with write_atomically(path) as temporary, open(temporary, "wb") as stream:
        np.savez(stream, **arrays)


def _read_arrays(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # zipfile and zlib raise kinds of their own on a damaged file
        raise FileFormatError(f"{path} is damaged ({error})") from error


def _write_scores(scores: EdgeScores, path: Path) -> None:
    _write_arrays(path, linkage=scores.linkage, density=scores.density)


def _read_scores(path: Path) -> EdgeScores:
    arrays = _read_arrays(path)
    return EdgeScores(arrays["linkage"], arrays["density"])


def _write_parents(parents: Parents, path: Path) -> None:
    _write_arrays(path, index=parents.index, linkage=parents.linkage, p_tau=parents.p_tau)


def _read_parents(path: Path) -> Parents:
    arrays = _read_arrays(path)
    return Parents(arrays["index"], arrays["linkage"], float(arrays["p_tau"]))


# Pooling is not stored: it is quick, and its result is as large as the features.
_READERS: dict[str, Callable[[Path], Any]] = {
    _SEARCH: KnnGraph.load,
    _SCORE: _read_scores,
    _DECODE: _read_parents,
}
_WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    _SEARCH: lambda graph, path: graph.save(path),
    _SCORE: _write_scores,
    _DECODE: _write_parents,
}
