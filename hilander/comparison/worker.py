"""The process of one method: tune, then train and cluster once for each seed.

Run as ``python -m hilander.comparison.worker JOB``, where JOB is a JSON file. The results of each
seed are written to files next to it, so that they survive if a later seed exceeds a limit. This
process does not read the test labels.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from hilander.comparison.pair import StoredPair
from hilander.comparison.protocol import tune_method
from hilander.comparison.rival import Problem, Rival, noise_to_singletons
from hilander.errors import SettingError
from hilander.io.writing import write_atomically, write_json

REGISTRY = "hilander.comparison.methods:METHODS"


@dataclass(frozen=True)
class Job:
    """What one process does.

    Parameters
    ----------
    method : str
        Name in the registry.
    data : str
        Folder of a `StoredPair`.
    output : str
        Folder for results.
    seeds : int
    registry : str
        ``module:name`` of a mapping of names to methods.
    """

    method: str
    data: str
    output: str
    seeds: int
    registry: str = REGISTRY


def find_method(registry: str, name: str) -> Rival:
    """Find a method in a registry named ``module:name``."""
    module, _, attribute = registry.partition(":")
    methods: Mapping[str, Rival] = getattr(importlib.import_module(module), attribute)
    if name not in methods:
        raise SettingError(f"method {name!r} is not in {registry}; use one of {', '.join(methods)}")
    return methods[name]


def run_job(job: Job) -> None:
    """Tune on the training set, then cluster the test set once for each seed."""
    output = Path(job.output)
    method = find_method(job.registry, job.method)
    method.check_installed()
    stored = StoredPair(Path(job.data))
    features, labels, graph = stored.read_train()
    train = Problem(features, graph)

    def report(text: str) -> None:
        (output / "status.txt").write_text(f"tuning, {text}", encoding="utf-8")

    cpu = process_time()
    tuned = tune_method(method, train, labels, report)
    tuning_cpu = process_time() - cpu
    write_json(output / "tuned.json", asdict(tuned))
    test_features, test_graph = stored.read_test()
    for seed in range(job.seeds if method.varies else 1):
        (output / "status.txt").write_text(f"seed {seed}", encoding="utf-8")
        cpu, start = process_time(), perf_counter()
        fitted = None
        if method.needs_labels:
            fitted = method.fit(replace(train, seed=seed), labels, tuned.params)
        fitting = perf_counter() - start
        start = perf_counter()
        problem = Problem(test_features, test_graph, seed)
        found = method.cluster(problem, method.start(problem, fitted, tuned.params), tuned.params)
        predicting = perf_counter() - start
        _write_result(output, seed, noise_to_singletons(found), {
            "params": tuned.params or method.choices(fitted),
            "tune_seconds": tuned.seconds,
            "fit_seconds": fitting,
            "predict_seconds": predicting,
            "cpu_seconds": tuning_cpu + process_time() - cpu,
            "peak_memory": _peak_memory(),
        })  # fmt: skip


def _write_result(output: Path, seed: int, labels: Any, record: dict[str, Any]) -> None:
    with (
        write_atomically(output / f"labels-{seed}.npy") as temporary,
        open(temporary, "wb") as file,
    ):
        np.save(file, labels)
    write_json(output / f"seed-{seed}.json", record)


def _peak_memory() -> int:
    with contextlib.suppress(OSError):
        # Not getrusage: its figure for a child process starts at that of the parent.
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(
        peak if sys.platform == "darwin" else peak * 1024
    )  # bytes on macOS, kilobytes on Linux


def main(path: str) -> int:
    """Run the job in a file. An error is printed as one line, with exit code 1."""
    job = Job(**json.loads(Path(path).read_text(encoding="utf-8")))
    try:
        run_job(job)
    except Exception as error:
        message = " ".join(str(error).split())
        print(f"{type(error).__name__}: {message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
