"""Results as rows, one for each run, in a file of JSON lines to which rows are appended."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError


@dataclass(frozen=True)
class Row:
    """Result of one run of one method, or its error.

    Parameters
    ----------
    dataset, dataset_hash : str
        Name of the pair of training and test set, and a digest of its arrays.
    method, family, version : str
    seed : int
    n, d : int
        Points and width of the test set.
    params : dict
        As tuned on the training set.
    n_clusters : int or None
    pairwise_f, bcubed_f, nmi, ari : float or None
    tune_seconds, fit_seconds, predict_seconds : float or None
    cpu_seconds : float or None
        Of the whole run, with tuning.
    peak_memory : int or None
        Bytes.
    machine, commit : str
    error : str or None
        Why there is no result.
    """

    dataset: str
    dataset_hash: str
    method: str
    family: str
    version: str
    seed: int
    n: int
    d: int
    params: dict[str, Any] = field(default_factory=dict)
    n_clusters: int | None = None
    pairwise_f: float | None = None
    bcubed_f: float | None = None
    nmi: float | None = None
    ari: float | None = None
    tune_seconds: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    cpu_seconds: float | None = None
    peak_memory: int | None = None
    machine: str = ""
    commit: str = ""
    error: str | None = None


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Append rows to a file, one JSON object on each line, in one write."""
    text = "".join(json.dumps(asdict(row), sort_keys=False) + "\n" for row in rows)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(text)


def read_rows(path: Path) -> list[Row]:
    """Read rows that `append_rows` wrote."""
    known = {each.name for each in fields(Row)}
    rows = []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read ({error}); give a file of rows") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            rows.append(Row(**{name: value for name, value in values.items() if name in known}))
        except (ValueError, TypeError, AttributeError) as error:
            raise FileFormatError(f"{path} line {number} is not a row ({error})") from error
    return rows


def latest_rows(rows: Iterable[Row]) -> list[Row]:
    """The last row of each data set, method and seed, in the order of their first rows.

    A row with an error holds for all seeds of its method, so it replaces older results. A result
    replaces older errors.
    """
    kept: dict[tuple[str, str, str, int], Row] = {}
    for row in rows:
        pair = (row.dataset, row.dataset_hash, row.method)
        for key in [key for key in kept if key[:3] == pair]:
            if (kept[key].error is None) != (row.error is None):
                del kept[key]
        kept[(*pair, row.seed)] = row
    return list(kept.values())


def digest_arrays(*arrays: npt.NDArray[Any]) -> str:
    """A short digest of the types, shapes and values of arrays."""
    digest = hashlib.blake2b(digest_size=8)
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


@cache
def describe_machine() -> str:
    """Processor, cores, memory and system, without the name of the machine."""
    cores = os.cpu_count() or 1
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        memory = float("nan")
    return f"{_processor()}, {cores} cores, {memory:.0f} GB, {platform.system()}"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.machine()


@cache
def current_commit() -> str:
    """Commit of the running source, with + if files were changed; "" outside a repository."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / ".git").exists():
        return ""
    try:
        commit = _git(folder, "rev-parse", "--short=10", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    return done.stdout.strip()
