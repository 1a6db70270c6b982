"""Run a command under a time limit and a memory limit, so that one that dies does no harm."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

_LOOK_EVERY = 0.1  # seconds
_LAST_WORDS = 400  # characters of an error output that are worth keeping


@dataclass(frozen=True)
class Limits:
    """What one method may take.

    Parameters
    ----------
    seconds : float
    memory : int
        Bytes of resident memory.
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
        Why it failed; None if it did not.
    seconds : float
    peak_memory : int
        Highest resident memory that was seen.
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
    """Run a command and end it, with all it started, when it passes a limit.

    Parameters
    ----------
    command : sequence of str
    limits : Limits
    log : Path
        Where its output goes.
    environment : mapping, optional
        Variables beside those of this process.
    watch : callable, optional
        Called at every look at the running command.

    Returns
    -------
    ended : Ended
    """
    threads = {name: str(limits.threads) for name in THREAD_VARIABLES}
    start, peak, reason = monotonic(), 0, None
    with open(log, "wb") as stream:
        process = subprocess.Popen(
            command,
            stdout=stream,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **threads, **(environment or {})},
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                peak = max(peak, resident_memory(process.pid))
                if peak > limits.memory:
                    reason = (
                        f"memory limit: {peak / 2**30:.1f} GB used, "
                        f"{limits.memory / 2**30:.1f} GB allowed"
                    )
                elif monotonic() - start > limits.seconds:
                    reason = f"time limit: more than {limits.seconds:.0f} s"
                if reason:
                    break
                if watch:
                    watch()
                sleep(_LOOK_EVERY)
        finally:
            _end(process)
    if reason is None and process.returncode:
        reason = describe_failure(process.returncode, log)
    return Ended(reason, monotonic() - start, peak)


THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def describe_failure(code: int, log: Path) -> str:
    """The last line of a failed command's output, or the signal that ended it."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip()[:_LAST_WORDS] if lines else f"ended with exit code {code}"


def resident_memory(pid: int) -> int:
    """Bytes of memory a process holds now; 0 if that cannot be told."""
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
    """End the command's whole session, first asking, then not."""
    if process.poll() is not None:
        return
    for attempt in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, attempt)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=2)
            return
