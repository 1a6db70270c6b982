"""Places of the peaks on a plane: principal components, spread out by t-SNE or UMAP.

UMAP is used where umap-learn is installed. Otherwise t-SNE places some landmarks, and the other
peaks settle between the landmarks most like them: a hundred thousand take seconds.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hilander.arrays.rows import FloatArray, IntArray, row_blocks
from hilander.errors import OutputError
from hilander.explorer.run.run_folder import Run
from hilander.io.writing import write_atomically

MOST_PLACES = 100_000
_LANDMARKS = 2_000
_NEAREST = 3
_FIT_ROWS = 20_000
_QUICK = 300


@dataclass(frozen=True, eq=False)
class MapLayout:
    """Where each peak is drawn.

    Parameters
    ----------
    level : int
        The level whose clusters' peaks are drawn: the finest that has not too many.
    points : ndarray of shape (n_places,)
        Row of each peak.
    places : ndarray of shape (n_places, 2), float32, in [-1, 1]
    reach : ndarray of shape (n_places,)
        The highest level that the point is a peak of.
    method : str
        pca, tsne or umap.
    """

    level: int
    points: IntArray
    places: FloatArray
    reach: IntArray
    method: str


def build_map(run: Run, cache: Path | None = None) -> MapLayout | None:
    """Lay the peaks out, or read how it was done before.

    Parameters
    ----------
    run : Run
    cache : Path, optional
        Folder where the places are kept.

    Returns
    -------
    layout : MapLayout, or None if the run kept no features
    """
    kept = run.peak_features
    if kept is None:
        return None
    level = next(
        (one for one in range(run.n_levels) if run.hierarchy.n_clusters(one) <= MOST_PLACES),
        run.n_levels - 1,
    )
    wanted = run.nested.tables[level].peaks
    row_of = np.full(run.n_points, -1, dtype=np.int64)
    row_of[kept[0]] = np.arange(len(kept[0]))
    points = wanted[row_of[wanted] >= 0][:MOST_PLACES]
    if len(points) == 0:
        return None
    features = np.asarray(kept[1][row_of[points]], dtype=np.float32)
    file = None if cache is None else cache / f"map-{_hash(points, features)}.npz"
    method, places = _read(file, len(points)) or place_aside(features)
    if file is not None and not file.is_file():
        _write(file, method, places)
    reach = np.full(len(points), level, dtype=np.int64)
    for one in range(level + 1, run.n_levels):
        reach[np.isin(points, run.nested.tables[one].peaks)] = one
    return MapLayout(level, points, places, reach, method)


def place_aside(features: FloatArray) -> tuple[str, FloatArray]:
    """Do what `place_features` does, in a process of its own where it takes long.

    A server that spreads thousands of peaks in one of its threads answers slowly meanwhile.
    """
    if len(features) <= _QUICK:
        return place_features(features)
    root = str(Path(__file__).resolve().parents[3])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "features.npy", Path(folder) / "map.npz"
        np.save(given, features)
        done = subprocess.run(
            [sys.executable, "-m", "hilander.explorer.run.map_layout", str(given), str(made)],
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        placed = _read(made, len(features)) if done.returncode == 0 else None
    return placed or ("pca", fit_square(project(features, 2)))


def place_features(features: FloatArray) -> tuple[str, FloatArray]:
    """Give places in [-1, 1] and the name of the method.

    Parameters
    ----------
    features : ndarray of shape (n, dim)
    """
    flat = project(features, 2)
    if len(features) < 10:
        return "pca", fit_square(flat)
    try:
        import umap
    except ImportError:
        pass
    else:
        return "umap", fit_square(umap.UMAP(random_state=0).fit_transform(features))
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(len(features), min(_LANDMARKS, len(features)), replace=False))
    landmarks = _spread(project(features, 50)[chosen])
    if len(chosen) == len(features):
        return "tsne", fit_square(landmarks)
    return "tsne", fit_square(_settle(features, chosen, landmarks, rng))


def project(features: FloatArray, n_axes: int) -> FloatArray:
    """Project on the principal axes, found on a sample where there are many rows."""
    rng = np.random.default_rng(0)
    sample = features
    if len(features) > _FIT_ROWS:
        sample = features[np.sort(rng.choice(len(features), _FIT_ROWS, replace=False))]
    mean = sample.mean(axis=0)
    centred = sample - mean
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, np.argsort(-values)[:n_axes]]
    if axes.shape[1] < n_axes:
        axes = np.pad(axes, ((0, 0), (0, n_axes - axes.shape[1])))
    flat: FloatArray = ((features - mean) @ axes).astype(np.float32)
    return flat


def fit_square(places: FloatArray) -> FloatArray:
    """Scale places into [-1, 1], far-off ones held at the rim."""
    low, high = np.quantile(places, [0.002, 0.998], axis=0)
    span = float(max((high - low).max(), 1e-9))
    square: FloatArray = (2 * (places - (low + high) / 2) / span).astype(np.float32)
    return np.clip(np.nan_to_num(square), -1.0, 1.0)


def _spread(features: FloatArray) -> FloatArray:
    from sklearn.manifold import TSNE

    start = features[:, :2] / max(float(features[:, 0].std()), 1e-9) * 1e-4
    perplexity = float(min(30, max(2, len(features) // 4)))
    spread: FloatArray = TSNE(
        perplexity=perplexity, init=start, max_iter=500, random_state=0, learning_rate="auto"
    ).fit_transform(features)
    return spread


def _settle(
    features: FloatArray, chosen: IntArray, landmarks: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Put every peak at the weighted middle of the landmarks it is most like."""
    known = features[chosen]
    places = np.empty((len(features), 2), dtype=np.float32)
    for block in row_blocks(len(features), len(chosen)):
        likeness = features[block] @ known.T
        nearest = np.argpartition(-likeness, _NEAREST, axis=1)[:, :_NEAREST]
        cosine = np.take_along_axis(likeness, nearest, axis=1)
        weight = np.exp(8 * (cosine - cosine.max(axis=1, keepdims=True)))
        weight /= weight.sum(axis=1, keepdims=True)
        places[block] = (landmarks[nearest] * weight[:, :, None]).sum(axis=1)
    # Peaks with the same landmarks would be drawn as one.
    places += rng.normal(0, landmarks.std() * 0.008, places.shape).astype(np.float32)
    places[chosen] = landmarks
    return places


def _hash(points: IntArray, features: FloatArray) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(points).tobytes())
    digest.update(np.ascontiguousarray(features).tobytes())
    return digest.hexdigest()[:24]


def _read(file: Path | None, n_places: int) -> tuple[str, FloatArray] | None:
    if file is None or not file.is_file():
        return None
    try:
        with np.load(file, allow_pickle=False) as arrays:
            method, places = str(arrays["method"]), np.asarray(arrays["places"], dtype=np.float32)
    except Exception:  # a damaged cache is made again
        file.unlink(missing_ok=True)
        return None
    return (method, places) if places.shape == (n_places, 2) else None


def _write(file: Path, method: str, places: FloatArray) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(file) as temporary:
            np.savez(temporary, method=np.array(method), places=places)
    except (OSError, OutputError):
        pass  # it is worked out again next time


def _main(given: str, made: str) -> None:
    """Place the features of one file and write the result to another."""
    os.nice(10)
    method, places = place_features(np.load(given, allow_pickle=False))
    np.savez(made, method=np.array(method), places=places)


if __name__ == "__main__":
    _main(*sys.argv[1:])
