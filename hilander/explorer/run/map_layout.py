"""Lay the peaks out on a plane, by UMAP or t-SNE.

UMAP is used if umap-learn is installed. Otherwise t-SNE places a sample of landmarks, and every
other peak goes to the weighted mean of its most similar landmarks. This takes seconds for 100,000
peaks.
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

# Peaks on a map: a browser draws this many in less than a frame of 20 ms.
MOST_PLACES = 1_000_000
# Peaks that t-SNE places itself: its time grows faster than linearly, 2,000 take some seconds.
_LANDMARKS = 2_000
# Landmarks that place each of the other peaks: the fewest that span an area.
_NEAREST = 3
# Weight of a landmark is exp(_SHARPNESS * cosine): the most similar one dominates.
_SHARPNESS = 8
# Noise on interpolated places, as a share of the landmarks' standard deviation.
_JITTER = 0.008
# Rows from which principal axes are computed: more do not change the axes visibly.
_FIT_ROWS = 20_000
# Principal components that t-SNE starts from, the usual number before t-SNE.
_TSNE_AXES = 50
# Fewest peaks for t-SNE or UMAP; fewer are placed by principal components.
_FEWEST = 10
# Peaks that are placed in well under a second, so that no subprocess is needed.
_QUICK = 300


@dataclass(frozen=True, eq=False)
class MapLayout:
    """Position of each peak.

    Parameters
    ----------
    level : int
        Level whose peaks are drawn: the finest with at most `MOST_PLACES` clusters.
    points : ndarray of shape (n_places,)
        Row of each peak.
    places : ndarray of shape (n_places, 2), float32, in [-1, 1]
    reach : ndarray of shape (n_places,)
        Highest level at which the point is a peak.
    method : str
        pca, tsne or umap.
    """

    level: int
    points: IntArray
    places: FloatArray
    reach: IntArray
    method: str


def build_map(run: Run, cache: Path | None = None) -> MapLayout | None:
    """Lay the peaks out, or read an earlier layout from the cache.

    Parameters
    ----------
    run : Run
    cache : Path, optional
        Folder where layouts are stored.

    Returns
    -------
    layout : MapLayout, or None if the run has no features of its peaks
    """
    stored = run.peak_features
    if stored is None:
        return None
    level = next(
        (one for one in range(run.n_levels) if run.hierarchy.n_clusters(one) <= MOST_PLACES),
        run.n_levels - 1,
    )
    table = run.nested.tables[level]
    wanted = table.peaks[table.peaks >= 0]
    row_of = np.full(run.n_points, -1, dtype=np.int64)
    row_of[stored[0]] = np.arange(len(stored[0]))
    points = wanted[row_of[wanted] >= 0][:MOST_PLACES]
    if len(points) == 0:
        return None
    features = np.asarray(stored[1][row_of[points]], dtype=np.float32)
    file = None if cache is None else cache / f"map-{_hash(points, features)}.npz"
    method, places = _read(file, len(points)) or place_in_subprocess(features)
    if file is not None and not file.is_file():
        _write(file, method, places)
    reach = np.full(len(points), level, dtype=np.int64)
    for one in range(level + 1, run.n_levels):
        reach[np.isin(points, run.nested.tables[one].peaks)] = one
    return MapLayout(level, points, places, reach, method)


def place_in_subprocess(features: FloatArray) -> tuple[str, FloatArray]:
    """Do the work of `place_features` in a subprocess if there are many peaks.

    In a thread of the server it would slow down every answer. If the subprocess fails, principal
    components place the peaks.
    """
    if len(features) <= _QUICK:
        return place_features(features)
    root = str(Path(__file__).resolve().parents[3])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "features.npy", Path(folder) / "map.npz"
        np.save(source, features)
        done = subprocess.run(
            [sys.executable, "-m", "hilander.explorer.run.map_layout", str(source), str(target)],
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        placed = _read(target, len(features)) if done.returncode == 0 else None
    return placed or ("pca", fit_square(project_on_principal_axes(features, 2)))


def place_features(features: FloatArray, n_landmarks: int = _LANDMARKS) -> tuple[str, FloatArray]:
    """Place features on a plane.

    Parameters
    ----------
    features : ndarray of shape (n, dim)
    n_landmarks : int
        Number of rows that t-SNE places; the others are interpolated.

    Returns
    -------
    method : str
        pca, tsne or umap.
    places : ndarray of shape (n, 2), in [-1, 1]
    """
    flat = project_on_principal_axes(features, 2)
    if len(features) < _FEWEST:
        return "pca", fit_square(flat)
    try:
        import umap
    except ImportError:
        pass
    else:
        return "umap", fit_square(umap.UMAP(random_state=0).fit_transform(features))
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(len(features), min(n_landmarks, len(features)), replace=False))
    landmarks = _run_tsne(project_on_principal_axes(features, _TSNE_AXES)[chosen])
    if len(chosen) == len(features):
        return "tsne", fit_square(landmarks)
    return "tsne", fit_square(_interpolate(features, chosen, landmarks, rng))


def project_on_principal_axes(features: FloatArray, n_axes: int) -> FloatArray:
    """Project on the principal axes, which are computed from at most `_FIT_ROWS` rows."""
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
    """Scale places into [-1, 1]; outliers are clipped to the border."""
    low, high = np.quantile(places, [0.002, 0.998], axis=0)
    span = float(max((high - low).max(), 1e-9))
    square: FloatArray = (2 * (places - (low + high) / 2) / span).astype(np.float32)
    return np.clip(np.nan_to_num(square), -1.0, 1.0)


def _run_tsne(features: FloatArray) -> FloatArray:
    from sklearn.manifold import TSNE

    start = features[:, :2] / max(float(features[:, 0].std()), 1e-9) * 1e-4
    perplexity = float(min(30, max(2, len(features) // 4)))
    spread: FloatArray = TSNE(
        perplexity=perplexity, init=start, max_iter=500, random_state=0, learning_rate="auto"
    ).fit_transform(features)
    return spread


def _interpolate(
    features: FloatArray, chosen: IntArray, landmarks: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Place every peak at the weighted mean of its most similar landmarks."""
    known = features[chosen]
    places = np.empty((len(features), 2), dtype=np.float32)
    for block in row_blocks(len(features), len(chosen)):
        similarity = features[block] @ known.T
        nearest = np.argpartition(-similarity, _NEAREST, axis=1)[:, :_NEAREST]
        cosine = np.take_along_axis(similarity, nearest, axis=1)
        weight = np.exp(_SHARPNESS * (cosine - cosine.max(axis=1, keepdims=True)))
        weight /= weight.sum(axis=1, keepdims=True)
        places[block] = (landmarks[nearest] * weight[:, :, None]).sum(axis=1)
    # Without noise, peaks with the same landmarks would coincide.
    places += rng.normal(0, landmarks.std() * _JITTER, places.shape).astype(np.float32)
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
    except Exception:  # a damaged file is computed again
        file.unlink(missing_ok=True)
        return None
    return (method, places) if places.shape == (n_places, 2) else None


def _write(file: Path, method: str, places: FloatArray) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with write_atomically(file) as temporary:
            np.savez(temporary, method=np.array(method), places=places)
    except (OSError, OutputError):
        pass  # the layout is computed again next time


def _main(source: str, target: str) -> None:
    """Place the features of a file and write the result to another file."""
    os.nice(10)
    method, places = place_features(np.load(source, allow_pickle=False))
    np.savez(target, method=np.array(method), places=places)


if __name__ == "__main__":
    _main(*sys.argv[1:])
