"""Atomic output: files and folders appear under their name when they are complete."""

import contextlib
import errno
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hilander.errors import FileFormatError, HiLanderError, MissingFileError, OutputError

MARKER = "hilander.json"
_FORMAT = 1
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
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Write a file atomically.

    Parameters
    ----------
    path : str or Path
        The file to write. An existing file is replaced when the new one is complete.

    Yields
    ------
    temporary : Path
        A file in the same folder with the same suffix, to write to. It is moved to ``path`` when
        the block ends, and removed when the block fails.

    Raises
    ------
    OutputError
        When the path is a folder, read-only, full or missing. An existing file is not changed.
    """
    target = _resolve(path)
    if target.exists() and not target.is_file():
        raise OutputError(f"{path} is not a regular file, expected a file; choose another name")
    temporary = _sibling(target)
    try:
        with _output_errors(path):
            yield temporary
            _flush(temporary)
            os.replace(temporary, target)
            _flush_folder(target.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def claim_folder(path: str | Path, kind: str) -> Path:
    """Create an output folder, or use one that is empty or of the same kind.

    Parameters
    ----------
    path : str or Path
        The folder. Its parents are created too.
    kind : str
        Its content, such as "model" or "run".

    Returns
    -------
    folder : Path
        It has a marker file now.

    Raises
    ------
    OutputError
        When the path is a file, a folder of another kind, or a folder not written by hilander.
    """
    folder = Path(path)
    with _output_errors(path):
        if not _check_claimable(folder, kind):
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / MARKER, {"hilander": kind, "format": _FORMAT})
    return folder


def check_output_folder(path: str | Path, kind: str) -> Path:
    """Check, before a long computation, that its result can be written to a folder.

    Parameters
    ----------
    path : str or Path
        The folder. Neither it nor its parents need to exist, and none is created.
    kind : str
        Its content, such as "model" or "run".

    Returns
    -------
    folder : Path

    Raises
    ------
    OutputError
        As :func:`claim_folder`, or when the existing parent is not writable.
    """
    folder = _resolve(path)
    with _output_errors(path):
        _check_claimable(folder, kind)
        above = next(parent for parent in folder.parents if parent.exists())
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(above, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return Path(path)


@contextlib.contextmanager
def folder_writer(path: str | Path, kind: str) -> Iterator[Path]:
    """Write a folder atomically.

    All files are written to a hidden folder in the same parent, which replaces the target at the
    end. Files of an earlier writer are replaced. Files that others put into the folder, which its
    marker does not list, are copied. The exchange takes two renames. A crash between them leaves
    the old folder complete, under a hidden name that ends in ``.old``.

    Parameters
    ----------
    path : str or Path
        The folder. Its parents are created too.
    kind : str
        Its content, such as "model" or "run".

    Yields
    ------
    inside : Path
        The folder to write to.

    Raises
    ------
    OutputError
        As :func:`claim_folder`, or when writing fails. An existing folder is not changed then.
    """
    target = _resolve(path)
    with _output_errors(path):
        _check_claimable(target, kind)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _sibling(target)
        temporary.mkdir()
    try:
        with _output_errors(path):
            yield temporary
            files = sorted(item.name for item in temporary.iterdir() if item.name != MARKER)
            marker = {"hilander": kind, "format": _FORMAT, "files": files}
            write_json(temporary / MARKER, marker)
            for item in temporary.rglob("*"):
                if item.is_file():
                    _flush(item)
            # Again: the path may have been taken while the block ran.
            _check_claimable(target, kind)
            _copy_foreign_files(target, temporary)
            _exchange(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sweep_temporaries(path: str | Path) -> None:
    """Remove temporary files that a killed writer of this file or folder left.

    Call it only if nothing else is writing the file or folder.

    Parameters
    ----------
    path : str or Path
        The file or folder that was being written.
    """
    target = _resolve(path)
    name = re.compile(
        re.escape(f".{target.stem[:100]}-") + "[0-9a-f]{12}" + re.escape(target.suffix[:20])
    )
    for item in target.parent.iterdir() if target.parent.is_dir() else ():
        if name.fullmatch(item.name):
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item, ignore_errors=True)
            else:
                item.unlink(missing_ok=True)


def check_folder_kind(path: str | Path, kind: str) -> Path:
    """Check that a folder was written by hilander and has the expected content.

    Parameters
    ----------
    path : str or Path
    kind : str
        The expected content, such as "model" or "run".

    Returns
    -------
    folder : Path

    Raises
    ------
    FileFormatError
        When it is missing, not written by hilander, of another kind, or of a newer format.
    """
    folder = Path(path)
    if not folder.is_dir():
        if not folder.exists():
            raise MissingFileError(
                f"{path} does not exist, expected a {kind} folder; check the path"
            )
        raise FileFormatError(f"{path} is a file, expected a {kind} folder; check the path")
    if not (folder / MARKER).is_file():
        raise FileFormatError(
            f"{path} has no {MARKER}, expected a {kind} folder written by hilander; check the path"
        )
    marker = read_json(folder / MARKER)
    found = marker.get("hilander") if isinstance(marker, dict) else None
    if found != kind:
        raise FileFormatError(
            f"{path} is a {found or 'foreign'} folder, expected a {kind} folder; check the path"
        )
    version = marker.get("format")
    if not isinstance(version, int) or version > _FORMAT:
        raise FileFormatError(
            f"{path} has format {version}, expected at most {_FORMAT}; "
            "it was written by a newer hilander: upgrade"
        )
    return folder


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    content : object

    Raises
    ------
    FileFormatError
        When the file is missing, unreadable or damaged.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingFileError(f"{path} does not exist, expected a JSON file") from error
    except OSError as error:
        reason = error.strerror or error
        raise FileFormatError(f"{path} cannot be read ({reason}), expected a JSON file") from error
    except (ValueError, RecursionError) as error:
        raise FileFormatError(
            f"{path} is damaged ({error}), expected JSON; restore it or write it again"
        ) from error


def write_json(path: str | Path, content: Any) -> None:
    """Write a JSON file atomically.

    Parameters
    ----------
    path : str or Path
    content : object
        Numpy scalars and arrays are written as numbers and lists, NaN and infinity as null.
    """
    text = json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False)
    with write_atomically(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _plain(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, Path):
        return str(content)
    if hasattr(content, "tolist"):
        return _plain(content.tolist())
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


@contextlib.contextmanager
def _output_errors(path: str | Path) -> Iterator[None]:
    """Turn errors of the operating system into errors that say what to do."""
    try:
        yield
    except HiLanderError:
        raise
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        fix = _FIXES.get(error.errno or 0, f"{reason}; write elsewhere")
        message = f"{path} cannot be written, expected a writable path: {fix}"
        raise OutputError(message) from error


def _resolve(path: str | Path) -> Path:
    """Follow links, so that the target of a link is replaced and not the link."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:
        raise OutputError(
            f"{path} cannot be written ({error}), expected a path; choose another"
        ) from error


def _sibling(target: Path) -> Path:
    """A free hidden name in the same folder; renaming is atomic only within one file system."""
    return target.with_name(f".{target.stem[:100]}-{secrets.token_hex(6)}{target.suffix[:20]}")


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_folder(folder: Path) -> None:
    with contextlib.suppress(
        OSError
    ):  # some file systems do not support it; the file itself is on disk
        _flush(folder)


def _check_claimable(folder: Path, kind: str) -> bool:
    """Whether the folder was written by hilander; False if it is missing or empty."""
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise OutputError(f"{folder} is a file, expected a folder; choose another name")
    if not any(folder.iterdir()):
        return False
    try:
        marker = read_json(folder / MARKER)
    except FileFormatError:
        marker = None
    found = marker.get("hilander") if isinstance(marker, dict) else None
    if found is None:
        raise OutputError(
            f"{folder} exists and was not written by hilander; choose another folder or empty it"
        )
    if found != kind:
        raise OutputError(f"{folder} is a {found} folder, expected a {kind} folder; choose another")
    return True


def _copy_foreign_files(old: Path, new: Path) -> None:
    if not old.is_dir() or not (old / MARKER).is_file():
        return
    ours = {MARKER, *read_json(old / MARKER).get("files", ())}
    for item in old.iterdir():
        if item.name in ours or (new / item.name).exists():
            continue
        if item.is_dir() and not item.is_symlink():
            shutil.copytree(item, new / item.name, symlinks=True)
        else:
            shutil.copy2(item, new / item.name, follow_symlinks=False)


def _exchange(new: Path, target: Path) -> None:
    aside = new.with_name(new.name + ".old")
    had_old = target.exists()
    if had_old:
        os.rename(target, aside)
    try:
        os.rename(new, target)
    except OSError:
        if had_old:
            os.rename(aside, target)
        raise
    _flush_folder(target.parent)
    if had_old:
        shutil.rmtree(aside, ignore_errors=True)
