"""One writer at a time: a lock on an output, which a killed process frees.

The lock is advisory (``flock``) on a hidden file beside the output. The operating system frees it
when its process ends in whatever way, so a file that is left behind locks nothing. The file says
who holds it. On systems without ``flock`` outputs are not locked.
"""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import platform
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from hilander.errors import OutputError
from hilander.io.hidden_names import lock_path
from hilander.io.output_errors import output_errors, resolve_output
from hilander.io.swapping import recover_output

_HAS_LOCKS = importlib.util.find_spec("fcntl") is not None  # not on Windows
# Errors of file systems that have no locks, such as some network mounts.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_held = threading.local()


@contextlib.contextmanager
def lock_output(
    path: str | Path, *, wait: bool = False, make_parents: bool = True
) -> Iterator[None]:
    """Hold the lock of an output file or folder, and tidy up what a killed writer left.

    A thread that holds the lock may take it again.

    Parameters
    ----------
    path : str or Path
        The output. Folders beside it that belong to it, such as ``RUN.work``, have no lock of their
        own: whoever holds the lock of ``RUN`` may write them.
    wait : bool
        Wait until another process frees the lock, and print that it waits. Otherwise raise.
    make_parents : bool
        Create the folders above the output; those that are still empty at the end are removed.

    Raises
    ------
    OutputError
        When another process or thread holds the lock; the message says which one, and since when.
    """
    target = resolve_output(path)
    mine: set[Path] = _held.__dict__.setdefault("outputs", set())
    if target in mine:
        yield
        return
    created = [folder for folder in target.parents if not folder.exists()]
    with output_errors(path):
        if make_parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _acquire(target, path, wait)
    mine.add(target)
    try:
        with output_errors(path):
            recover_output(target)
        yield
    finally:
        mine.discard(target)
        _release(target, descriptor)
        for folder in created:
            with contextlib.suppress(OSError):  # not empty: it holds the output
                folder.rmdir()


def _acquire(target: Path, path: str | Path, wait: bool) -> int | None:
    """Open and lock the lock file; its descriptor, or None where there are no locks."""
    if not _HAS_LOCKS:
        return None
    lock = lock_path(target)
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if not _try_lock(descriptor, path, wait):
                os.close(descriptor)
                return None
            # The former holder may have removed the file that was opened: it locks nothing then.
            if _is_same_file(descriptor, lock):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, _describe_self().encode(), 0)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _try_lock(descriptor: int, path: str | Path, wait: bool) -> bool:
    """Lock an open file; False where the file system has no locks."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _describe_holder(descriptor)
        if not wait:
            raise OutputError(
                f"{path} is being written by {holder}, expected one writer at a time; add --wait "
                "to queue for it, or choose another output"
            ) from None
        print(f"waiting for {path}, which is being written by {holder}", file=sys.stderr)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def _release(target: Path, descriptor: int | None) -> None:
    if descriptor is None:
        return
    # Removed while it is locked: whoever waits for it sees that the file is another one by then.
    with contextlib.suppress(OSError):
        if _is_same_file(descriptor, lock_path(target)):
            os.unlink(lock_path(target))
    os.close(descriptor)


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _describe_self() -> str:
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]) if sys.argv else ""
    since = datetime.now().astimezone().isoformat(" ", "seconds")
    facts = {"pid": os.getpid(), "host": platform.node(), "since": since, "command": command[:300]}
    return json.dumps(facts)


def _describe_holder(descriptor: int) -> str:
    """Words for the process that holds a lock, from the text of the lock file."""
    try:
        facts: Any = json.loads(os.pread(descriptor, 4096, 0))
        words = f"process {int(facts['pid'])} on {facts['host']}"
        command = f" ({facts['command']})" if facts["command"] else ""
        return f"{words}{command} since {facts['since']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "another process, which has just started"
