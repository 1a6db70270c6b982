"""The process of one measurement of scale: ``python -m benchmarks.scale_worker JOB``.

JOB is a JSON file that names a method, the points and a model. The results are files in the same
folder: ``result.json``, ``labels.npy`` and, for our methods, ``neighbours.npy`` of sampled rows.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.scale_data import make_training, sample_rows
from hilander.hierarchy.levels import LevelStep
from hilander.hierarchy.work import Work

_SAMPLE_SECONDS = 0.05  # between two readings of the memory
_FIRST_POINTS = 2_000  # points of the first run, in which a method compiles itself
_COMPILED = ("fast_hdbscan",)


class Watch:
    """Records the wall seconds and the highest resident memory of every stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.memory: dict[str, int] = {}
        self._stage = "start"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Record a block as part of a stage."""
        before, self._stage = self._stage, name
        start = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - start
            self.seconds[name] = round(self.seconds.get(name, 0.0) + took, 3)
            self._record()
            self._stage = before

    def close(self) -> None:
        """Stop recording."""
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self._record()

    def _record(self) -> None:
        held = resident()
        self.memory[self._stage] = max(self.memory.get(self._stage, 0), held)


class WatchedWork(Work):
    """The work of the level loop, with every stage recorded."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    def do(self, stage: str, level: int, make: Callable[..., Any], *inputs: Any) -> Any:
        """Run and record a stage of a level."""
        with self.watch.stage(stage):
            return super().do(stage, level, make, *inputs)


def resident() -> int:
    """Bytes of memory that this process holds."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return peak_memory()


def peak_memory() -> int:
    """Most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cpu_seconds() -> float:
    """CPU seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def run_ours(job: dict[str, Any], watch: Watch, folder: Path) -> dict[str, Any]:
    """Cluster end to end: file in, all levels, run folder out."""
    from hilander import Hierarchy, HiLander

    model = HiLander.load(job["model"], device="cpu")
    points = np.load(job["features"], mmap_mode="r")
    work = WatchedWork(watch)
    with watch.stage("prepare"):
        steps = model.walk(points, k=job.get("k"), memory=job.get("memory"), work=work)
    first: dict[str, Any] = {}
    with watch.stage("other"):
        hierarchy = Hierarchy.of_steps(keep_first(steps, first))
    with watch.stage("write"), tempfile.TemporaryDirectory(dir=folder) as output:
        hierarchy.save(Path(output) / "run")
    # The time of these four stages is recorded by themselves.
    inner = sum(watch.seconds.get(stage, 0.0) for stage in ("search", "score", "decode", "pool"))
    watch.seconds["other"] = round(max(0.0, watch.seconds["other"] - inner), 3)
    np.save(folder / "labels.npy", hierarchy.labels(-1))
    np.save(folder / "neighbours.npy", first.pop("neighbours"))
    whitened = "whitened" in work.preparation
    return {"n_levels": hierarchy.n_levels, "whitened": whitened, **first}


def keep_first(steps: Iterable[LevelStep], first: dict[str, Any]) -> Iterator[LevelStep]:
    """Yield the steps; keep of the first its search report and its sampled neighbours."""
    for step in steps:
        if not first:
            graph = step.graph
            first["neighbours"] = graph.neighbours[sample_rows(graph.n_nodes)]
            first["k"] = graph.k
            if graph.search is not None:
                first["search_method"] = graph.search.method
                first["recall_reported"] = graph.search.recall
        yield step


def run_rival(job: dict[str, Any], watch: Watch, folder: Path) -> dict[str, Any]:
    """Cluster by a rival with its own search and defaults; k-means gets the true number."""
    with watch.stage("prepare"):
        features = np.ascontiguousarray(np.load(job["features"]), dtype=np.float32)
    labels, params = cluster_by_rival(job, features, watch)
    np.save(folder / "labels.npy", labels)
    return {"k": None, "params": params}


def measure_compilation(job: dict[str, Any]) -> float:
    """Seconds of a first run on a few points, for rivals that compile themselves in it.

    EVoC stores its compiled code on disk; a first run on a few points did not make it faster.
    """
    if job["method"] not in _COMPILED:
        return 0.0
    start, watch = time.perf_counter(), Watch()
    try:
        small_set = np.ascontiguousarray(np.load(job["features"])[:_FIRST_POINTS], dtype=np.float32)
        cluster_by_rival(job | {"n_identities": 20}, small_set, watch)
    finally:
        watch.close()
    return round(time.perf_counter() - start, 3)


def cluster_by_rival(
    job: dict[str, Any], features: npt.NDArray[Any], watch: Watch
) -> tuple[npt.NDArray[Any], dict[str, Any]]:
    """Cluster labels, each noise point as its own cluster, and the parameters."""
    from hilander.comparison.rival import Problem, noise_to_singletons
    from hilander.comparison.rivals.registry import RIVALS
    from hilander.graph.knn_graph import KnnGraph
    from hilander.knn.search import build_knn_graph

    method = RIVALS[job["method"]]
    n_identities = job["n_identities"]
    if method.name == "FINCH":
        with watch.stage("search"):
            graph = build_knn_graph(features, 1)
    else:
        # These methods search by themselves and ignore this graph.
        ring = (np.arange(len(features)) + 1)[:, None] % len(features)
        graph = KnnGraph(ring, np.zeros(ring.shape, dtype=np.float32))
    problem = Problem(features, graph)
    params = {
        "k-means": {"mean_size": len(features) / n_identities},
        "fast_hdbscan": {"min_cluster_size": 5, "min_samples": 2},
        "EVoC": {"noise_level": 0.3, "base_min_cluster_size": 5},
        "FINCH": {},
    }[method.name]
    with watch.stage("cluster"):
        state = method.start(problem, None, params)
        if isinstance(state, list):
            labels = nearest_partition(state, n_identities)
        else:
            labels = method.cluster(problem, state, params)
        labels = noise_to_singletons(labels)
    return labels, params


def nearest_partition(levels: list[npt.NDArray[Any]], n_clusters: int) -> npt.NDArray[Any]:
    """The level whose number of clusters is nearest to the true number."""
    return min(levels, key=lambda labels: abs(int(labels.max()) + 1 - n_clusters))


def run_training(job: dict[str, Any], watch: Watch, folder: Path) -> dict[str, Any]:
    """Train on labelled points and score the model on points of other identities."""
    from benchmarks.scale import make_estimator
    from hilander.metrics.report import score_clustering
    from hilander.synthetic.face_like import PRESETS, make_face_like

    features, labels = make_training(job["n"], 128)
    model = make_estimator(job["method"])
    with watch.stage("train"):
        model.fit(features, labels)
    preset = PRESETS["imdb"]
    others, truth = make_face_like(preset, scale=20_000 / preset.n_points, seed=2)
    with watch.stage("validate"):
        scores = score_clustering(truth, model.predict(others)).to_dict()
    kept = {name: scores[name] for name in ("pairwise_f", "bcubed_f", "nmi")}
    return {"k": model.rules_.k, "n_identities": int(labels.max()) + 1, **kept}


KINDS = {"ours": run_ours, "rival": run_rival, "train": run_training}


def measure(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a job and return its costs and results."""
    compiling = measure_compilation(job)
    watch = Watch()
    start, cpu = time.perf_counter(), cpu_seconds()
    try:
        facts = KINDS[job["kind"]](job, watch, folder)
    finally:
        watch.close()
    return {
        "seconds": round(time.perf_counter() - start, 3),
        "cpu_seconds": round(cpu_seconds() - cpu, 3),
        "peak_memory": peak_memory(),
        "compile_seconds": compiling,
        "stages": watch.seconds,
        "stage_memory": {stage: held for stage, held in watch.memory.items() if stage != "start"},
        **facts,
    }


def import_libraries(job: dict[str, Any]) -> None:
    """Import what a job of ours imports later, so that imports are not measured."""
    from hilander import HiLander
    from hilander.hierarchy.decoding.decode import check_decoder

    if job["kind"] == "ours":
        check_decoder(HiLander.load(job["model"], device="cpu").rules_.decoder)


def main(path: str) -> int:
    """Run a job and write its result. On failure, print one line on standard error."""
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    folder = Path(path).parent
    import hilander.estimator
    import hilander.training.inference
    import hilander.training.methods  # noqa: F401  imports are not measured

    try:
        import_libraries(job)
        result = measure(job, folder)
    except Exception as error:
        print(f"{type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
