"""Errors of the operating system at an output path, as errors that say what to do."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from hilander.errors import HiLanderError, OutputError

_FIXES = {
    errno.ENOSPC: "the disk is full; free some space or write elsewhere",
    errno.EDQUOT: "the disk quota is used up; free some space or write elsewhere",
    errno.EROFS: "the file system is read-only; write elsewhere",
    errno.EACCES: "permission is denied; write elsewhere or ask for access",
    errno.EPERM: "permission is denied; write elsewhere or ask for access",
    errno.ENOENT: "the folder above it does not exist; create it first",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another path",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}


@contextlib.contextmanager
def output_errors(path: str | Path) -> Iterator[None]:
    """Turn errors of the operating system into an OutputError that names `path`."""
    try:
        yield
    except HiLanderError:
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        fix = _FIXES.get(error.errno or 0, f"{reason}; write elsewhere")
        message = f"{path} cannot be written, expected a writable path: {fix}"
        raise OutputError(message) from error


def resolve_output(path: str | Path) -> Path:
    """Follow links, so that the target of a link is replaced and not the link."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise OutputError(
            f"{path} cannot be written ({error}), expected a path; choose another"
        ) from error
