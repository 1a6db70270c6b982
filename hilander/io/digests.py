"""Size and digest of every file of a stored folder: damaged and mixed files are found when read.

``hilander.json`` of a folder lists them. Folders of version 0.1 list names alone and are read
without a check. So are files that the list does not name: users may add files of their own.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hilander.errors import FileFormatError, MissingFileError

ALGORITHM = "blake2b"
_DIGEST_BYTES = 20
# Whether files are checked when they are read; one setting for the process, as `--no-verify` is.
_is_verifying = True


@contextlib.contextmanager
def skip_verification(skip: bool = True) -> Iterator[None]:
    """Read stored folders without checking digests, until the block ends."""
    global _is_verifying
    former = _is_verifying
    _is_verifying = former and not skip
    try:
        yield
    finally:
        _is_verifying = former


def digest_file(path: Path) -> str:
    """BLAKE2b digest of a file's bytes, read in small pieces."""
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES))
    return digest.hexdigest()


def list_digests(folder: Path, *, without: str) -> dict[str, dict[str, Any]]:
    """Size and digest of each file of a folder and its subfolders, by relative path.

    Parameters
    ----------
    folder : Path
    without : str
        A file that is left out: the one that will hold the list.
    """
    files = sorted(item for item in folder.rglob("*") if item.is_file() and item.name != without)
    return {
        item.relative_to(folder).as_posix(): {
            "size": item.stat().st_size,
            ALGORITHM: digest_file(item),
        }
        for item in files
    }


class FileList:
    """The files of a stored folder, as its marker lists them.

    Parameters
    ----------
    folder : Path
    listed : dict of str to dict, or list of str
        "files" of the marker, read once: a folder that is replaced while it is read does not match.
    """

    def __init__(self, folder: Path, listed: dict[str, dict[str, Any]] | list[str]) -> None:
        self.folder = folder
        self._listed = listed if isinstance(listed, dict) else {}
        self._checked: set[str] = set()

    def check(self, name: str) -> Path:
        """Path of a file, after a check that it is the file that was written.

        Raises
        ------
        FileFormatError
            When its size or digest is another one, or when it is missing.
        """
        path = self.folder / name
        expected = self._listed.get(name)
        if expected is None or not _is_verifying or name in self._checked:
            return path
        try:
            size = path.stat().st_size
            is_same = size == expected["size"] and digest_file(path) == expected[ALGORITHM]
        except FileNotFoundError:
            raise MissingFileError(
                f"{path} does not exist, but the folder lists it; restore the folder or write it "
                "again"
            ) from None
        except OSError as error:
            reason = error.strerror or error
            raise FileFormatError(f"{path} cannot be read ({reason}); check the disk") from error
        if not is_same:
            raise FileFormatError(
                f"{path} is damaged or was changed: it has {size:,} bytes and another digest than "
                f"when it was written with {expected['size']:,} bytes; restore the folder or write "
                "it again (--no-verify reads it as it is; for a file that you changed yourself, "
                "remove its entry from hilander.json)"
            )
        self._checked.add(name)
        return path
