"""Run a command in its own process, under a time limit and a memory limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import IO

_POLL_SECONDS = 0.1  # between two checks of the limits; memory that is held for less is missed
_ERROR_LENGTH = 400  # characters of an error that are kept, so that a table stays readable
_TERMINATE_SECONDS = 2  # that a process has to end by itself, before it is killed
# Variables that set the number of threads of the numeric libraries.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


@dataclass(frozen=True)
class Limits:
    """Limits of one method.

    Parameters
    ----------
    seconds : float
    memory : int
        Resident memory, in bytes.
    threads : int
        Threads of the numeric libraries.
    """

    seconds: float = 900.0
    memory: int = 8 * 2**30
    threads: int = 1


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Parameters
    ----------
    reason : str or None
        Why it failed; None for success.
    seconds : float
    peak_memory : int
        Highest resident memory that was measured, in bytes.
    """

    reason: str | None
    seconds: float
    peak_memory: int


def run_limited(
    command: Sequence[str],
    limits: Limits,
    log: Path,
    *,
    environment: Mapping[str, str] | None = None,
    watch: Callable[[], None] | None = None,
) -> Ended:
    """Run a command. If it exceeds a limit, end it and all processes that it started.

    Parameters
    ----------
    command : sequence of str
    limits : Limits
    log : Path
        File for its output.
    environment : mapping, optional
        Variables in addition to those of this process.
    watch : callable, optional
        Called at each check of the limits.

    Returns
    -------
    ended : Ended
    """
    start, peak, reason = monotonic(), 0, None
    with open(log, "wb") as stream:
        process = _start(command, limits, stream, environment or {})
        try:
            while process.poll() is None:
                peak = max(peak, resident_memory(process.pid))
                reason = describe_excess(limits, peak, monotonic() - start)
                if reason:
                    break
                if watch:
                    watch()
                sleep(_POLL_SECONDS)
        finally:
            _end(process)
    if reason is None and process.returncode:
        reason = describe_failure(process.returncode, log)
    return Ended(reason, monotonic() - start, peak)


def _start(
    command: Sequence[str], limits: Limits, log: IO[bytes], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own."""
    threads = {name: str(limits.threads) for name in THREAD_VARIABLES}
    return subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **threads, **environment},
        start_new_session=True,
    )


def describe_excess(limits: Limits, memory: int, seconds: float) -> str | None:
    """The limit that is exceeded; None if there is none."""
    if memory > limits.memory:
        return f"memory limit: {memory / 2**30:.1f} GB used, {limits.memory / 2**30:.1f} GB allowed"
    if seconds > limits.seconds:
        return f"time limit: more than {limits.seconds:.0f} s"
    return None


def describe_failure(code: int, log: Path) -> str:
    """The last line of a failed command's output, or the signal that ended it."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip()[:_ERROR_LENGTH] if lines else f"ended with exit code {code}"


def resident_memory(pid: int) -> int:
    """Resident memory of a process in bytes; 0 if the system does not report it."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        pass
    try:
        shown = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, timeout=5
        )
        return int(shown.stdout.strip() or 0) * 1024
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command's session: terminate it, and kill it if it does not end."""
    if process.poll() is not None:
        return
    for attempt in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, attempt)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_TERMINATE_SECONDS)
            return
