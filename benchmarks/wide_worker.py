"""Methods of the wide suite, and the process of one method on one source.

Run as ``python -m benchmarks.wide_worker JOB``, where JOB is a JSON file. The method is tuned once,
fitted once for each seed, and clusters every test set of the source. The result of each set is
written as soon as it exists. This process does not read test labels.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np

from benchmarks.pretrained import LABEL_FREE, cluster_by_rival
from benchmarks.wide_sets import Points, StoredSource
from hilander.arrays.rows import IntArray
from hilander.comparison.methods import METHODS as COMPARED
from hilander.comparison.protocol import tune_method
from hilander.comparison.rival import Problem, Rival, noise_to_singletons
from hilander.errors import SettingError
from hilander.estimator import HiLander
from hilander.io.writing import write_json

Kind = Literal["fitted", "pretrained", "tuned", "untuned"]
FITTED, PRETRAINED = "hilander (default)", "pretrained"
TUNED = ("cosine threshold", "HAC", "FINCH", "fast_hdbscan", "EVoC", "Leiden", "Infomap")


@dataclass(frozen=True)
class Method:
    """A method of the suite.

    Parameters
    ----------
    name : str
    kind : {"fitted", "pretrained", "tuned", "untuned"}
        Learned from the training set; learned from other sets; a rival tuned on the training set;
        a rival at its defaults.
    rival : Rival or None
        Its entry in the comparison; None for the pretrained model.
    """

    name: str
    kind: Kind
    rival: Rival | None = None

    @property
    def varies(self) -> bool:
        """Whether the result depends on the seed."""
        return self.rival is None or self.rival.varies


METHODS: dict[str, Method] = {
    one.name: one
    for one in (
        Method(FITTED, "fitted", COMPARED[FITTED]),
        Method(PRETRAINED, "pretrained"),
        *(Method(name, "tuned", COMPARED[name]) for name in TUNED),
        *(Method(f"{name} (untuned)", "untuned", COMPARED[name]) for name in LABEL_FREE),
    )
}


@dataclass(frozen=True)
class Job:
    """What one process does.

    Parameters
    ----------
    method : str
        A name of `METHODS`.
    source : str
        Folder of a `StoredSource`.
    output : str
        Folder for results.
    seeds : tuple of int
    sets : dict of str to int
        Draws of each test set to cluster.
    models : dict of str to str
        Folder of the pretrained model of each seed.
    """

    method: str
    source: str
    output: str
    seeds: tuple[int, ...]
    sets: Mapping[str, int]
    models: Mapping[str, str]


@dataclass(frozen=True)
class Run:
    """A method that is ready to cluster, with one seed.

    Parameters
    ----------
    seed : int
    cluster : callable (points) -> labels of shape (n_points,), -1 for noise
    record : dict
        Settings, and seconds of tuning and fitting.
    """

    seed: int
    cluster: Callable[[Points], IntArray]
    record: dict[str, Any]


def run_job(job: Job) -> None:
    """Cluster every test set once for each seed, and write labels and records."""
    stored = StoredSource(Path(job.source))
    for run in start_runs(METHODS[job.method], job, stored):
        for name, n_draws in job.sets.items():
            found, record = cluster_draws(run.cluster, stored, name, n_draws)
            labels, result = result_files(Path(job.output), name, run.seed)
            np.savez(labels, **{str(number): one for number, one in found.items()})
            write_json(result, run.record | record)


def start_runs(method: Method, job: Job, stored: StoredSource) -> Iterator[Run]:
    """Make a method ready, once for each seed."""
    if method.kind == "pretrained":
        for seed in job.seeds:
            model = HiLander.load(job.models[str(seed)])
            yield Run(seed, lambda points, model=model: model.predict(points.raw), {})
    elif method.kind == "untuned" and method.rival:
        for seed in job.seeds:
            yield Run(seed, partial(_cluster_untuned, method.rival.name, seed), {})
    elif method.rival:
        yield from _tune_and_fit(method.rival, job, stored)
    else:
        raise SettingError(f"method {method.name!r} of kind {method.kind!r} needs a rival")


def _cluster_untuned(name: str, seed: int, points: Points) -> IntArray:
    labels: IntArray = cluster_by_rival(name, points.raw, seed)
    return labels


def _tune_and_fit(rival: Rival, job: Job, stored: StoredSource) -> Iterator[Run]:
    features, labels, graph = stored.read_train()
    train = Problem(features, graph)
    tuned = tune_method(rival, train, labels)
    for seed in job.seeds:
        start = perf_counter()
        fitted = None
        if rival.needs_labels:
            fitted = rival.fit(replace(train, seed=seed), labels, tuned.params)
        record = {
            "params": tuned.params or rival.choices(fitted),
            "tune_seconds": round(tuned.seconds, 2),
            "fit_seconds": round(perf_counter() - start, 2),
        }
        yield Run(seed, partial(_cluster_prepared, rival, tuned.params, fitted, seed), record)


def _cluster_prepared(
    rival: Rival, params: dict[str, Any], fitted: Any, seed: int, points: Points
) -> IntArray:
    problem = Problem(points.prepared, points.graph, seed)
    return rival.cluster(problem, rival.start(problem, fitted, params), params)


def cluster_draws(
    cluster: Callable[[Points], IntArray], stored: StoredSource, name: str, n_draws: int
) -> tuple[dict[int, IntArray], dict[str, Any]]:
    """Cluster the draws of a test set.

    Returns
    -------
    found : dict of int to ndarray
        Cluster of each point, by the number of the draw. A draw that the method refused (by a
        ValueError) is missing.
    record : dict
        Seconds, and the error if the method failed or refused every draw; else None.
    """
    found, error, start = {}, None, perf_counter()
    for number in range(n_draws):
        try:
            labels = cluster(stored.read_points(name, number))
            found[number] = noise_to_singletons(np.asarray(labels))
        except ValueError as refusal:
            error = _describe(refusal)
        except Exception as failure:
            found, error = {}, _describe(failure)
            break
    seconds = round(perf_counter() - start, 3)
    return found, {"seconds": seconds, "error": None if found else error}


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def result_files(output: Path, name: str, seed: int) -> tuple[Path, Path]:
    """Files of the labels and of the record of one test set and seed."""
    stem = f"{name.replace('/', '-')}-{seed}"
    return output / f"labels-{stem}.npz", output / f"record-{stem}.json"


def main(path: str) -> int:
    """Run the job in a file. An error is printed as one line, with exit code 1."""
    try:
        run_job(Job(**json.loads(Path(path).read_text(encoding="utf-8"))))
    except Exception as error:
        print(_describe(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
