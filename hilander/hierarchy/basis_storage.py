"""The basis of a hierarchy in its run folder: prepared points and the measures of the set.

============== ==================================================================================
`prepared.npy` the prepared points, (n_points, dim), mapped when it is read
`base.npz`     what prepares new points: ``mean`` and ``transform``, where there are such
`base.json`    rules, threshold and measures of the run that clustered the whole set
============== ==================================================================================

The graph of the basis is that of `graph.npz`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.embeddings.preparation import Preparation
from hilander.errors import FileFormatError
from hilander.hierarchy.basis import Basis, SetBase
from hilander.hierarchy.rules import Rules
from hilander.hierarchy.run_extras import GRAPH_FILE
from hilander.io.digests import FileList
from hilander.io.mapped_npz import map_npz
from hilander.io.schemas import SetBaseNotes
from hilander.io.writing import read_json, write_json

PREPARED_FILE = "prepared.npy"
BASE_ARRAYS, BASE_FILE = "base.npz", "base.json"
_FLAGS = ("is_metric", "per_set", "whitens_each_set")


def write_base(folder: Path, features: npt.NDArray[Any], base: SetBase) -> None:
    """Write prepared points and their base into an open run folder."""
    np.save(folder / PREPARED_FILE, features)
    preparation = base.preparation
    arrays = {"mean": preparation.mean, "transform": preparation.transform}
    present: dict[str, Any] = {name: one for name, one in arrays.items() if one is not None}
    np.savez(folder / BASE_ARRAYS, **present)
    described = {
        "rules": asdict(base.rules),
        "p_tau": base.p_tau,
        "p_tau_merge": base.p_tau_merge,
        "n_points": base.n_points,
        "measures": dict(base.measures),
        "preparation": {name: getattr(preparation, name) for name in _FLAGS},
    }
    write_json(folder / BASE_FILE, described)


def read_base(files: FileList) -> SetBase:
    """Read the base of a run folder."""
    path = files.check(BASE_FILE)
    described = read_json(path, SetBaseNotes)
    try:
        with np.load(files.check(BASE_ARRAYS), allow_pickle=False) as arrays:
            maps = {name: arrays[name] for name in arrays.files}
        flags = described["preparation"]
        measures = described["measures"]
        preparation = Preparation(maps.get("mean"), maps.get("transform"), **flags)
        rules = Rules.from_dict(described["rules"])
        p_tau, n_points = described["p_tau"], int(described["n_points"])
        p_tau_merge = described.get("p_tau_merge")
    except Exception as error:  # zipfile and zlib raise kinds of their own on a damaged file
        raise FileFormatError(
            f"{path} is damaged ({error}); run `hilander cluster` again"
        ) from error
    return SetBase(preparation, rules, lambda: measures, p_tau, n_points, p_tau_merge)


def basis_reader(files: FileList) -> Callable[[], Basis] | None:
    """Reads the basis of a run when it is needed; None where the run has none."""
    if not all((files.folder / name).is_file() for name in (PREPARED_FILE, BASE_FILE, GRAPH_FILE)):
        return None
    return lambda: read_basis(files)


def read_basis(files: FileList) -> Basis:
    """Map the points and the graph of a run folder into memory, and read its base.

    The digests of the mapped files are not compared: that would read them whole.
    """
    folder = files.folder
    arrays = map_npz(folder / GRAPH_FILE)
    try:
        features = np.load(folder / PREPARED_FILE, mmap_mode="r", allow_pickle=False)
        graph = (arrays["neighbours"], arrays["affinity"], arrays["linkage"])
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise FileFormatError(
            f"{folder} has a damaged {PREPARED_FILE} or {GRAPH_FILE} ({error}); "
            "run `hilander cluster` again"
        ) from error
    return Basis(features, *graph, read_base(files))
