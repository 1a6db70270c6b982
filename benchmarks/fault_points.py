"""Faults at chosen moments: a process that is killed, or a disk that is full, at the n-th step.

A step is a call that changes the file system below a folder: a file opened for writing, a folder
made, a file or folder renamed, exchanged, removed or flushed. A campaign counts the steps of a
command once, then runs the command again and again with a fault at one of them. One process imports
everything and forks a child for each run, so a trial takes as long as the command itself.

    python -m benchmarks.fault_points JOB    # JOB is the JSON of `Job`; prints a row for each trial
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

KINDS = ("kill", "torn", "full")
_MARKED = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
COUNTS = "collection.json"  # file of a run that counts its updates
_PATCHED = ("replace", "rename", "fsync", "mkdir", "rmdir", "unlink")


@dataclass(frozen=True)
class Job:
    """One campaign on one command.

    Parameters
    ----------
    command : list of str
        Arguments of ``hilander``.
    folder : str
        Where it writes. It is emptied before each trial, except for what `before` holds.
    output : str
        Name of the output in the folder.
    before : str
        A folder whose content the folder has at the start of each trial, such as an earlier run.
    kind : {"kill", "torn", "full"}
        Killed; killed with half of the file that is being flushed lost; or the disk is full.
    steps : list of int, optional
        Steps at which the fault comes; by default all of them.
    most : int
        If there are more steps than that, so many of them are drawn.
    seed : int
    once : bool
        The command is refused where it was done, because its items or its output are there.
    """

    command: list[str]
    folder: str
    output: str
    before: str
    kind: str = "kill"
    steps: list[int] | None = None
    most: int = 10**9
    seed: int = 0
    once: bool = False


class Steps:
    """Counts the steps of this process below a folder, and acts at one of them.

    Parameters
    ----------
    folder : Path
    act : callable (name, path), optional
        Called at step `at`.
    at : int
    """

    def __init__(
        self, folder: Path, act: Callable[[str, str], None] | None = None, at: int = 0
    ) -> None:
        self.names: list[str] = []
        self._folder, self._act, self._at = str(folder.resolve()), act, at

    def watch(self) -> None:
        """Watch the process from now on. It cannot be undone: call it in a child."""
        from hilander.io import swapping

        for name in _PATCHED:
            setattr(os, name, self._wrap(name, getattr(os, name)))
        swapping.exchange = self._wrap("exchange", swapping.exchange)
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _MARKED:
            self._step("open", arguments[0])

    def _wrap(self, name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def step(path: Any, *rest: Any, **options: Any) -> Any:
            inside = options.get("dir_fd")
            self._step(name, path if inside is None else Path(f"/proc/self/fd/{inside}") / path)
            return do(path, *rest, **options)

        return step

    def _step(self, name: str, path: Any) -> None:
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        text = ""
        if isinstance(path, str | bytes | Path):
            place, last = os.path.split(os.path.abspath(os.fsdecode(path)))
            text = os.path.join(os.path.realpath(place), last)
        if not text.startswith(self._folder):
            return
        self.names.append(name)
        if self._act is not None and len(self.names) == self._at:
            self._act(name, text)


def kill(_: str, __: str) -> None:
    """End this process as a loss of power would, as far as it is concerned."""
    os.kill(os.getpid(), signal.SIGKILL)


def tear(name: str, path: str) -> None:
    """End this process, and lose half of the file that it is flushing."""
    if name == "fsync" and os.path.isfile(path):
        os.truncate(path, os.path.getsize(path) // 2)
    kill(name, path)


def fill(name: str, path: str) -> None:
    """Fail as on a full disk; removing is still possible."""
    if name not in ("unlink", "rmdir"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


ACTS: dict[str, Callable[[str, str], None]] = {"kill": kill, "torn": tear, "full": fill}


def run_job(job: Job) -> list[dict[str, Any]]:
    """Run the trials of a job in children of this process; a row for each."""
    import numpy as np

    from hilander.hierarchy import budget

    budget.LONG_RUN = 0  # small runs keep their work, as large ones do
    names = count_steps(job)
    reference = describe(Path(job.folder) / job.output)
    listing = sorted(os.listdir(job.folder))
    steps = job.steps or list(range(1, len(names) + 1))
    if len(steps) > job.most:
        rng = np.random.default_rng(job.seed)
        steps = sorted(rng.choice(steps, job.most, replace=False).tolist())
    return [try_step(job, step, names[step - 1], reference, listing) for step in steps]


def count_steps(job: Job) -> list[str]:
    """Run the command once without a fault; the names of its steps."""
    reset(job)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        steps = Steps(Path(job.folder))
        steps.watch()
        code = run_command(job.command)
        os.write(write, json.dumps([code, steps.names]).encode())
        os._exit(0)
    os.close(write)
    text = b""
    while part := os.read(read, 1 << 16):
        text += part
    os.close(read)
    os.waitpid(child, 0)
    code, names = json.loads(text)
    if code != 0:
        raise RuntimeError(f"{job.command} ends with {code} without a fault")
    return list(names)


def try_step(
    job: Job, step: int, name: str, reference: dict[str, str], listing: list[str]
) -> dict[str, Any]:
    """One trial: the fault, then the same command without one."""
    reset(job)
    output = Path(job.folder) / job.output
    former = describe(output)
    code, said = fork_command(job.command, Steps(Path(job.folder), ACTS[job.kind], step))
    left = describe(output)
    beside = sorted(os.listdir(job.folder))
    again, _ = fork_command(job.command, None)
    result, is_done, intact = describe(output), left == reference, left in (former, reference)
    if is_done:  # the same command is another run then, which counts updates on, or is refused
        again = 0 if job.once else again
        result, reference = (
            {part: digest for part, digest in one.items() if part != COUNTS}
            for one in (result, reference)
        )
    return {
        "kind": job.kind, "step": step, "name": name, "code": code, "said": said,
        # What stands under the name after the fault: the former output, the new one, or another.
        "intact": intact,
        "left": beside,
        "again": again,
        "equal": result == reference,
        "debris": sorted(set(os.listdir(job.folder)) - set(listing)),
    }  # fmt: skip


def fork_command(command: list[str], steps: Steps | None) -> tuple[int, str]:
    """Exit code and errors of a command that is run in a child."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.dup2(write, 2)
        if steps is not None:
            steps.watch()
        os._exit(run_command(command))
    os.close(write)
    said = b""
    while part := os.read(read, 1 << 16):
        said += part
    os.close(read)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, said.decode(errors="replace")


def run_command(command: list[str]) -> int:
    """Run a command of hilander in this process; 99 for an exception that it does not handle."""
    from hilander.cli.main import main

    try:
        return main(command)
    except BaseException as error:
        print(f"Traceback: {error!r}", file=sys.stderr)
        return 99


def reset(job: Job) -> None:
    """Give the folder the content that it has before each trial."""
    shutil.rmtree(job.folder, ignore_errors=True)
    shutil.copytree(job.before, job.folder)


def describe(output: Path) -> dict[str, str]:
    """Digests of an output's files, without those that hold times; empty if there is none."""
    if output.is_file():
        return {".": _digest(output)}
    return {
        path.relative_to(output).as_posix(): _digest(path)
        for path in sorted(output.rglob("*"))
        if path.is_file() and path.name not in ("run.json", "hilander.json", "history.json")
    }


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()


def start_job(job: Job) -> list[dict[str, Any]]:
    """Run a job in a process of its own, with one thread; its rows."""
    root = str(Path(__file__).resolve().parents[1])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.fault_points", json.dumps(asdict(job))],
        capture_output=True, text=True, env=environment, cwd=root, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    rows: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return rows


if __name__ == "__main__":
    import hilander.cli.kept_work
    import hilander.estimator
    import hilander.training.inference  # noqa: F401

    print(json.dumps(run_job(Job(**json.loads(sys.argv[1])))))
