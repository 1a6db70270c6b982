"""Run methods on a pair, each in its own process under limits, and collect rows."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from tqdm import tqdm

from hilander import __version__
from hilander.comparison.pair import Pair, StoredPair
from hilander.comparison.protocol import SHARED_K
from hilander.comparison.rival import Rival
from hilander.comparison.rows import Row, append_rows, current_commit, describe_machine
from hilander.comparison.runner import Limits, run_limited
from hilander.comparison.worker import REGISTRY, Job
from hilander.errors import SettingError
from hilander.metrics.report import score_clustering


@dataclass(frozen=True)
class Plan:
    """Settings of a comparison.

    Parameters
    ----------
    seeds : int
        Runs of each method whose result depends on the seed.
    limits : Limits
        Of each method.
    jobs : int
        Methods that run at the same time.
    rows : Path, optional
        File to append each row to.
    registry : str
        ``module:name`` of a mapping of names to methods.
    """

    seeds: int = 3
    limits: Limits = field(default_factory=Limits)
    jobs: int = 1
    rows: Path | None = None
    registry: str = REGISTRY

    def __post_init__(self) -> None:
        if self.seeds < 1 or self.jobs < 1:
            raise SettingError(f"seeds={self.seeds} and jobs={self.jobs} must be 1 or more")
        if self.limits.seconds <= 0 or self.limits.memory <= 0:
            raise SettingError("time limit and memory limit must be above 0")


class Progress:
    """A progress bar of the methods, with those that run now, and a line for each that ends.

    Parameters
    ----------
    n_methods : int
    quiet : bool
        Print nothing.
    """

    def __init__(self, n_methods: int, quiet: bool = False) -> None:
        self.quiet, self.lock = quiet, Lock()
        self.running: dict[str, str] = {}
        self.bar = tqdm(
            total=n_methods, desc="methods", unit="", disable=True if quiet else None,
            file=sys.stderr, leave=False,
        )  # fmt: skip

    def note(self, method: str, status: str) -> None:
        """Show the status of a method."""
        with self.lock:
            if self.running.get(method) != status:
                self.running[method] = status
                shown = "; ".join(f"{name}: {text}" for name, text in self.running.items())
                self.bar.set_postfix_str(shown)

    def done(self, method: str, rows: Sequence[Row]) -> None:
        """Print how a method ended."""
        with self.lock:
            self.running.pop(method, None)
            self.bar.update()
            if not self.quiet:
                line = f"{method:20s} {_describe_end(rows)}"
                tqdm.write(line, file=sys.stderr)

    def close(self) -> None:
        """Remove the bar."""
        self.bar.close()


def _describe_end(rows: Sequence[Row]) -> str:
    good = [row for row in rows if row.error is None]
    if not good:
        return rows[0].error or "no result"
    means = [np.mean([getattr(row, name) for row in good]) for name in ("pairwise_f", "bcubed_f")]
    seconds = (good[0].tune_seconds or 0) + sum(
        (row.fit_seconds or 0) + (row.predict_seconds or 0) for row in good
    )
    return f"Fp {means[0]:.3f}  Fb {means[1]:.3f}  {seconds:.0f} s"


def compare_methods(
    pair: Pair, methods: Sequence[Rival], plan: Plan, progress: Progress | None = None
) -> list[Row]:
    """Tune, train and run methods on a pair.

    If a method lacks a library, needs too much memory, raises or exceeds a limit, its row holds the
    error.

    Parameters
    ----------
    pair : Pair
    methods : sequence of Rival
    plan : Plan
    progress : Progress, optional

    Returns
    -------
    rows : list of Row
        One for each seed, in the order of `methods`.
    """
    progress = progress or Progress(len(methods), quiet=True)
    with tempfile.TemporaryDirectory(prefix="hilander-compare-") as temporary:
        folder = Path(temporary)
        progress.note("k-NN graphs", "search")
        stored = StoredPair.write(pair, _make(folder / "data"))
        progress.running.clear()

        def run_one(method: Rival) -> list[Row]:
            rows = _run_method(pair, method, plan, stored, progress)
            if plan.rows is not None:
                with progress.lock:
                    append_rows(plan.rows, rows)
            progress.done(method.name, rows)
            return rows

        try:
            with ThreadPoolExecutor(plan.jobs) as pool:
                ended = list(pool.map(run_one, methods))
        finally:
            progress.close()
    return [row for rows in ended for row in rows]


def _run_method(
    pair: Pair, method: Rival, plan: Plan, stored: StoredPair, progress: Progress
) -> list[Row]:
    blank = _blank_row(pair, method)
    try:
        method.check_installed()
    except SettingError as error:
        return [replace(blank, error=str(error))]
    if refusal := refuse_memory(method, pair, plan.limits):
        return [replace(blank, error=refusal)]
    output = _make(stored.folder.parent / f"run-{_file_name(method.name)}")
    job = Job(method.name, str(stored.folder), str(output), plan.seeds, plan.registry)
    (output / "job.json").write_text(json.dumps(asdict(job)), encoding="utf-8")

    def watch() -> None:
        status = output / "status.txt"
        progress.note(method.name, status.read_text("utf-8") if status.is_file() else "starting")

    command = [sys.executable, "-m", "hilander.comparison.worker", str(output / "job.json")]
    ended = run_limited(command, plan.limits, output / "log.txt", watch=watch)
    n_seeds = plan.seeds if method.varies else 1
    rows = [_result_row(blank, pair, output, seed) for seed in range(n_seeds)]
    missing = replace(
        blank, error=ended.reason or "ended without a result", peak_memory=ended.peak_memory or None
    )
    return [replace(missing, seed=seed) if row is None else row for seed, row in enumerate(rows)]


def refuse_memory(method: Rival, pair: Pair, limits: Limits) -> str | None:
    """Why a method would exceed the memory limit, by its estimate; None if it would not."""
    n_points = max(len(pair.train), len(pair.test))
    wanted = method.memory(n_points, pair.test.shape[1], SHARED_K)
    if wanted <= limits.memory:
        return None
    return (
        f"not started: needs about {wanted / 2**30:.3g} GB for {n_points:,} points, "
        f"{limits.memory / 2**30:.3g} GB allowed"
    )


def _result_row(blank: Row, pair: Pair, output: Path, seed: int) -> Row | None:
    record = output / f"seed-{seed}.json"
    if not record.is_file():
        return None
    scores = score_clustering(pair.test_labels, np.load(output / f"labels-{seed}.npy"))
    values: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    return replace(
        blank,
        seed=seed,
        n_clusters=scores.n_clusters,
        pairwise_f=scores.pairwise.f,
        bcubed_f=scores.bcubed.f,
        nmi=scores.nmi,
        ari=scores.ari,
        **values,
    )


def _blank_row(pair: Pair, method: Rival) -> Row:
    return Row(
        dataset=pair.name,
        dataset_hash=pair.digest,
        method=method.name,
        family=method.family,
        version=version_of(method.package),
        seed=0,
        n=len(pair.test),
        d=pair.test.shape[1],
        machine=describe_machine(),
        commit=current_commit(),
    )


def version_of(package: str) -> str:
    """Name and version of the distribution that a method comes from."""
    if package == "hilander":
        return f"hilander {__version__}"
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return package


def _make(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
