"""Face-like points in any number for `benchmarks.scale`, made once and kept under build/."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.rows import ROOT, hash_file
from hilander.arrays.rows import row_blocks
from hilander.io.writing import read_json, write_atomically, write_json
from hilander.synthetic.face_like import PRESETS, FaceLikeSettings, make_face_like

FOLDER = ROOT / "build" / "scale"
# The published face set of this size has some 61 images of each of 85,000 people. With so many
# images of one person, a higher spread is needed for other people among the nearest ten.
HUGE = FaceLikeSettings(5_200_000, 85_000, 256, spread=0.62)
HUGE_PART = 650_000  # points made at a time
PURITY_K = 10  # neighbours
_SAMPLED = 2_000  # rows whose exact neighbours are found
_QUANTILES = (5, 25, 50, 75, 95)  # per cent
_TRAIN_SEED, _TEST_SEED = 1, 2


@dataclass(frozen=True)
class PointSet:
    """Points on disk, with a description.

    Parameters
    ----------
    name : str
    features : Path of a .npy of shape (n, d), float32 or float16
    labels : Path of a .npy of shape (n,)
    facts : dict
        ``hash``, ``n``, ``d``, ``n_identities``; ``purity`` of the 10 nearest neighbours of a
        sample by exact search; ``within`` and ``between``, quantiles of cosines.
    """

    name: str
    features: Path
    labels: Path
    facts: dict[str, Any]


def make_points(n: int, *, huge: bool = False, folder: Path = FOLDER) -> PointSet:
    """Make IMDB-like points, or those of the huge set, unless their files exist."""
    name = f"{'ms1m' if huge else 'imdb'}-like-{n}"
    paths = folder / f"{name}.npy", folder / f"{name}-labels.npy", folder / f"{name}.json"
    if not paths[2].is_file():
        folder.mkdir(parents=True, exist_ok=True)
        if huge:
            _write_huge(n, paths[0], paths[1])
        else:
            features, labels = make_face_like(
                "imdb", scale=n / PRESETS["imdb"].n_points, seed=_TEST_SEED
            )
            _save(paths[0], features)
            _save(paths[1], labels)
            del features, labels
        write_json(paths[2], describe_points(*paths[:2]))
    return PointSet(name, paths[0], paths[1], read_json(paths[2]))


def make_training(n: int, dim: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Labelled points of other identities, of the same embedder."""
    if dim == HUGE.dim:
        return make_face_like(HUGE, scale=n / HUGE.n_points, seed=_TRAIN_SEED)
    preset = PRESETS["imdb"]
    return make_face_like(preset, scale=n / preset.n_points, seed=_TRAIN_SEED)


def _write_huge(n: int, features_path: Path, labels_path: Path) -> None:
    """Write the set in parts of different identities, so that memory never holds all of it."""
    labels = np.empty(n, dtype=np.int64)
    with write_atomically(features_path) as temporary:
        out = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float16, shape=(n, HUGE.dim))
        done, seen, part = 0, 0, 0
        while done < n:
            count = min(HUGE_PART, n - done)
            rows, found = make_face_like(HUGE, scale=count / HUGE.n_points, seed=100 + part)
            out[done : done + count] = rows[:count]
            labels[done : done + count] = seen + found[:count]
            seen, done, part = seen + int(found.max()) + 1, done + count, part + 1
        out.flush()
    _save(labels_path, labels)


def _save(path: Path, array: npt.NDArray[Any]) -> None:
    with write_atomically(path) as temporary, open(temporary, "wb") as stream:
        np.save(stream, array)


def describe_points(features_path: Path, labels_path: Path) -> dict[str, Any]:
    """The facts of a set of points, for its rows."""
    features, labels = np.load(features_path, mmap_mode="r"), np.load(labels_path)
    found = find_exact_neighbours(features)[1][:, :PURITY_K]
    rows = sample_rows(len(features))
    within, between = profile_cosines(features, labels)
    return {
        "hash": hash_file(features_path),
        "n": len(features),
        "d": int(features.shape[1]),
        "n_identities": int(labels.max()) + 1,
        "purity": round(float((labels[found] == labels[rows, None]).mean()), 4),
        "within": within,
        "between": between,
    }


def sample_rows(n: int) -> npt.NDArray[np.int64]:
    """The rows on which recall is measured, the same for every method."""
    rng = np.random.default_rng(7)
    return np.sort(rng.choice(n, min(_SAMPLED, n), replace=False))


def find_exact_neighbours(
    features: npt.NDArray[Any], count: int = 40
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Exact neighbours of a sample of rows, by plain matrix products.

    Returns
    -------
    rows : ndarray of shape (n_sample,)
    neighbours : ndarray of shape (n_sample, count), most similar first
    """
    rows = sample_rows(len(features))
    queries = _unit(features[rows])
    best = np.full((len(rows), count), -np.inf, dtype=np.float32)
    names = np.zeros((len(rows), count), dtype=np.int64)
    for block in row_blocks(len(features), 8 * len(rows)):
        cosine = queries @ _unit(features[block]).T
        inside = (rows >= block.start) & (rows < block.stop)
        cosine[np.flatnonzero(inside), rows[inside] - block.start] = -np.inf  # not itself
        values = np.concatenate([best, cosine], axis=1)
        order = np.argpartition(-values, count - 1, axis=1)[:, :count]
        columns = np.broadcast_to(np.arange(block.start, block.stop), cosine.shape)
        names = np.take_along_axis(np.concatenate([names, columns], axis=1), order, axis=1)
        best = np.take_along_axis(values, order, axis=1)
    order = np.argsort(-best, axis=1, kind="stable")
    return rows, np.take_along_axis(names, order, axis=1)


def profile_cosines(
    features: npt.NDArray[Any], labels: npt.NDArray[Any]
) -> tuple[list[float], list[float]]:
    """Quantiles of the cosine of two points of one identity, and of two identities."""
    rng = np.random.default_rng(8)
    left = rng.integers(len(features), size=20_000)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(int(labels.max()) + 2))
    low, high = starts[labels[left]], starts[labels[left] + 1]
    mate = order[rng.integers(low, high)]
    other = rng.integers(len(features), size=len(left))
    chosen = mate != left, labels[other] != labels[left]
    profiles = []
    for right, keep in zip((mate, other), chosen, strict=True):
        cosine = np.einsum("ij,ij->i", _unit(features[left[keep]]), _unit(features[right[keep]]))
        profiles.append([round(float(q), 3) for q in np.percentile(cosine, _QUANTILES)])
    return profiles[0], profiles[1]


def _unit(rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    rows = np.asarray(rows, dtype=np.float32)
    unit: npt.NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
