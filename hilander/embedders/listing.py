"""Find the pictures that the user names: folders, single files, lists of files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hilander.embedders.decoding import SUFFIXES
from hilander.embedders.skipping import Skip
from hilander.errors import FileFormatError, MissingFileError
from hilander.io.paths import encode_name
from hilander.io.writing import MARKER

LIST_SUFFIXES = (".txt", ".lst", ".list")
# What this program writes beside a run: its thumbnails are not pictures of the user.
_OWN_SUFFIXES = (".explorer", ".embeddings", ".work")


@dataclass
class Listing:
    """Picture files, in order of their names.

    Attributes
    ----------
    root : str
        Folder that the names are relative to.
    names : list of str
        Paths relative to `root`, as the operating system gives them.
    skips : list of Skip
        Files and folders that cannot be read.
    n_ignored : int
        Files whose names are not those of pictures, and hidden files.
    """

    root: str
    names: list[str] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    n_ignored: int = 0


def list_pictures(paths: Sequence[Path]) -> Listing:
    """List the pictures of folders, files and lists of files.

    Folders are read with all folders below them. Links are followed; a folder that is reached twice
    is read once, so loops end. Hidden files and folders are left out.

    Parameters
    ----------
    paths : sequence of Path
        Folders, picture files, and text files with one path in each line (or, for names with
        newlines, separated by NUL), relative to the folder of the list.

    Returns
    -------
    listing : Listing

    Raises
    ------
    MissingFileError
        When a path does not exist.
    """
    found: dict[str, None] = {}  # absolute paths, without repetitions
    listing = Listing("")
    folders = []
    for path in paths:
        if not path.exists():
            raise MissingFileError(f"{path} does not exist, expected pictures; check the path")
        if path.is_dir():
            folder = os.path.abspath(path)
            folders.append(folder)
            found.update(dict.fromkeys(_walk(folder, listing)))
        elif path.suffix.lower() in LIST_SUFFIXES:
            found.update(dict.fromkeys(_read_list(path)))
        else:
            found[os.path.abspath(path)] = None
    listing.root = _choose_root(folders, found)
    inside = os.path.join(listing.root, "")
    listing.names = sorted(path.removeprefix(inside) for path in found)
    return listing


def _choose_root(folders: list[str], files: Iterable[str]) -> str:
    """The folder that was named, or else the one that all files are in."""
    parents = {*folders, *(os.path.dirname(path) for path in files)}
    return os.path.commonpath(sorted(parents)) if parents else os.getcwd()


def _walk(folder: str, listing: Listing) -> Iterator[str]:
    """Picture files of a folder and of those below it."""
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            facts = os.stat(current)
            if (facts.st_dev, facts.st_ino) in seen:
                continue
            seen.add((facts.st_dev, facts.st_ino))
            with os.scandir(current) as entries:
                found = list(entries)
        except OSError as error:
            reason = f"is a folder that cannot be read: {error.strerror or error}"
            listing.skips.append(Skip(encode_name(current), reason))
            continue
        if current != folder and any(entry.name == MARKER for entry in found):
            continue  # a run, a model or a demo
        for entry in found:
            if entry.name.startswith("."):
                listing.n_ignored += 1
            elif _is_folder(entry):
                if not entry.name.endswith(_OWN_SUFFIXES):
                    waiting.append(entry.path)
            elif os.path.splitext(entry.name)[1].lower() not in SUFFIXES:
                listing.n_ignored += 1
            else:
                yield entry.path


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself: reading it says so
        return False


def _read_list(path: Path) -> Iterator[str]:
    """Absolute paths of a list of files."""
    try:
        content = os.fsdecode(path.read_bytes())
    except OSError as error:
        raise FileFormatError(
            f"{path} cannot be read ({error}), expected a list of files"
        ) from error
    lines = content.split("\0") if "\0" in content else content.splitlines()
    base = os.path.dirname(os.path.abspath(path))
    for line in lines:
        if line.strip():
            yield os.path.normpath(os.path.join(base, line))


def stat_file(path: str) -> tuple[int, int, int] | None:
    """Size, time of change and number of a regular file; None if it is none or missing."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(facts.st_mode):
        return None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino
