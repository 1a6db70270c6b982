"""Atomic output: files and folders appear under their name when they are complete."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hilander.errors import FileFormatError, MissingFileError, OutputError
from hilander.io.digests import FileList, list_digests
from hilander.io.hidden_names import temporary_sibling
from hilander.io.locks import lock_output
from hilander.io.output_errors import output_errors, resolve_output
from hilander.io.schemas import Marker
from hilander.io.stored_json import check_schema
from hilander.io.stored_json import read_json as read_json
from hilander.io.swapping import flush, flush_folder, put_in_place, recover_output

MARKER = "hilander.json"
_FORMAT = 1


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
    target = resolve_output(path)
    if target.exists() and not target.is_file():
        raise OutputError(f"{path} is not a regular file, expected a file; choose another name")
    temporary = temporary_sibling(target)
    try:
        with output_errors(path):
            yield temporary
            flush(temporary)
            os.replace(temporary, target)
            flush_folder(target.parent)
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
    with output_errors(path):
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
    folder = resolve_output(path)
    with output_errors(path):
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

    All files are written to a hidden folder in the same parent, which takes the place of the target
    at the end, in one step where the file system has one. Files of an earlier writer are replaced.
    Files that others put into the folder, which its marker does not list, are copied. The output is
    locked meanwhile.

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
        As :func:`claim_folder`, when writing fails, or when another process writes the folder. An
        existing folder is not changed then.
    """
    target = resolve_output(path)
    with output_errors(path):
        _check_claimable(target, kind)
    with lock_output(path):
        temporary = temporary_sibling(target)
        try:
            with output_errors(path):
                temporary.mkdir()
                yield temporary
                _write_marker(temporary, kind)
                for item in temporary.rglob("*"):
                    flush(item) if item.is_file() else flush_folder(item)
                flush_folder(temporary)
                # Again: the path may have been taken while the block ran.
                _check_claimable(target, kind)
                _copy_foreign_files(target, temporary)
                put_in_place(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def sweep_temporaries(path: str | Path) -> None:
    """Remove temporary files that a killed writer of this file or folder left.

    Call it only if nothing else is writing the file or folder; `lock_output` calls it.

    Parameters
    ----------
    path : str or Path
        The file or folder that was being written.
    """
    recover_output(resolve_output(path))


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
    read_marker(folder, kind)
    return folder


def open_stored_folder(path: str | Path, kind: str) -> FileList:
    """Check a folder as :func:`check_folder_kind` does, and give the list of its files.

    Returns
    -------
    files : FileList
        ``files.check(name)`` is the path of a file whose digest is as its writer stored it.
    """
    folder = check_folder_kind(path, kind)
    return FileList(folder, read_marker(folder, kind)["files"])


def list_stored_files(folder: Path) -> FileList:
    """The list of a folder's files, of any kind; empty for a folder without a marker."""
    has_marker = (folder / MARKER).is_file()
    return FileList(folder, read_marker(folder)["files"] if has_marker else [])


def read_marker(folder: Path, kind: str | None = None) -> dict[str, Any]:
    """Read `hilander.json` of a folder.

    Parameters
    ----------
    folder : Path
    kind : str, optional
        The expected content; any by default.

    Returns
    -------
    marker : dict
        ``hilander`` (the kind), ``format`` and ``files``.

    Raises
    ------
    FileFormatError
        As :func:`check_folder_kind`.
    """
    expected = f"a {kind} folder" if kind else "a folder"
    if not (folder / MARKER).is_file():
        raise FileFormatError(
            f"{folder} has no {MARKER}, expected {expected} written by hilander; check the path"
        )
    marker = read_json(folder / MARKER)
    found = marker.get("hilander") if isinstance(marker, dict) else None
    if kind is not None and found != kind:
        raise FileFormatError(
            f"{folder} is a {found or 'foreign'} folder, expected a {kind} folder; check the path"
        )
    version = marker.get("format") if isinstance(marker, dict) else None
    if isinstance(version, int) and version > _FORMAT:
        raise FileFormatError(
            f"{folder} has format {version}, expected at most {_FORMAT}; "
            "it was written by a newer hilander: upgrade"
        )
    check_schema(marker, Marker, folder / MARKER)
    return {"files": [], **marker}


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
        # A name that is not UTF-8 becomes an escape of JSON, which is read as the same name.
        temporary.write_bytes((text + "\n").encode("utf-8", "backslashreplace"))


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
    try:
        read_marker(folder)
    except FileFormatError as error:
        raise OutputError(f"{error}; choose another folder or remove this one") from error
    return True


def _write_marker(folder: Path, kind: str) -> None:
    """List the files of a complete folder, with their digests."""
    files = list_digests(folder, without=MARKER)
    write_json(folder / MARKER, {"hilander": kind, "format": _FORMAT, "files": files})


def _copy_foreign_files(old: Path, new: Path) -> None:
    if not old.is_dir() or not (old / MARKER).is_file():
        return
    ours = {
        MARKER,
        *(Path(name).parts[0] for name in read_marker(old)["files"] if Path(name).parts),
    }
    for item in old.iterdir():
        if item.name in ours or (new / item.name).exists():
            continue
        if item.is_dir() and not item.is_symlink():
            shutil.copytree(item, new / item.name, symlinks=True)
        else:
            shutil.copy2(item, new / item.name, follow_symlinks=False)
