"""Replace a folder by another one in one step, and tidy up after writers that were killed."""

import contextlib
import ctypes
import errno
import os
import shutil
import sys
from pathlib import Path

from hilander.io.hidden_names import OLD, find_temporaries

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux: linux/fs.h
_RENAME_SWAP = 2  # macOS: stdio.h
# Errors of kernels and file systems that cannot exchange two names.
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV, errno.EPERM)


def flush(path: Path) -> None:
    """Wait until a file is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the file system can."""
    with contextlib.suppress(OSError):
        flush(folder)


def put_in_place(new: Path, target: Path) -> None:
    """Give a complete folder its name; a folder that has the name is removed.

    The exchange is one step of the file system where it has one (Linux and macOS), so that there is
    always a folder under the name. Elsewhere it takes two renames, and a crash between them leaves
    the former folder under a hidden name, which `recover_output` gives back.

    Parameters
    ----------
    new : Path
        A folder beside the target, with a name of `temporary_sibling`.
    target : Path
    """
    if not os.path.lexists(target):
        os.rename(new, target)
        flush_folder(target.parent)
        return
    former = new
    if not exchange(new, target):
        former = new.with_name(new.name + OLD)
        os.rename(target, former)
        try:
            os.rename(new, target)
        except OSError:
            os.rename(former, target)
            raise
    flush_folder(target.parent)
    shutil.rmtree(former, ignore_errors=True)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False, and nothing done, where that is not possible."""
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(first, second, ctypes.c_uint(_RENAME_SWAP))
        else:
            failed = libc.renameat2(
                _AT_FDCWD, first, _AT_FDCWD, second, ctypes.c_uint(_RENAME_EXCHANGE)
            )
    except (AttributeError, TypeError, OSError):  # a system without the function
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))


def recover_output(target: Path) -> None:
    """Tidy up what killed writers of an output left. Call it with the lock of the output only.

    A folder that was set aside for a new one, which did not come, gets its name back. Temporary
    files and folders are removed.
    """
    left = find_temporaries(target)
    aside = [item for item in left if item.name.endswith(OLD)]
    if aside and not os.path.lexists(target):
        latest = max(aside, key=lambda item: item.stat().st_mtime_ns)
        os.rename(latest, target)
        flush_folder(target.parent)
        left.remove(latest)
    for item in left:
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item, ignore_errors=True)
        else:
            item.unlink(missing_ok=True)
