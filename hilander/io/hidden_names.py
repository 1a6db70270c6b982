"""Hidden names beside an output: temporary files and folders, and the lock.

================================ ===================================================
``.NAME-<12 hex digits>.SUFFIX`` a file or folder that is being written
the same, ending in ``.old``     the former folder, where two renames replace it
``.NAME.SUFFIX.lock``            the lock, while a process writes the output
================================ ===================================================
"""

import hashlib
import os
import re
import secrets
from pathlib import Path

# Bytes of a name that a hidden name repeats: file systems allow 255 bytes in all.
_LONGEST = 100
OLD = ".old"


def temporary_sibling(target: Path) -> Path:
    """A free hidden name in the same folder; renaming is atomic only within one file system."""
    stem, suffix = _shorten(target.stem), target.suffix[:20]
    return target.with_name(f".{stem}-{secrets.token_hex(6)}{suffix}")


def is_utf8(path: Path) -> bool:
    """Whether a name can be written as UTF-8. File systems of Unix allow any bytes."""
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def lock_path(target: Path) -> Path:
    """Where the lock of an output is."""
    return target.with_name(f".{_shorten(target.name)}.lock")


def find_temporaries(target: Path) -> list[Path]:
    """Temporary files and folders of an output, in the order of their names."""
    pattern = re.compile(
        re.escape(f".{_shorten(target.stem)}-")
        + "[0-9a-f]{12}"
        + re.escape(target.suffix[:20])
        + f"({re.escape(OLD)})?"
    )
    folder = target.parent
    names = os.listdir(folder) if folder.is_dir() else []
    return [folder / name for name in sorted(names) if pattern.fullmatch(name)]


def _shorten(name: str) -> str:
    """The name, or for a long one its beginning and a digest, so that names stay distinct."""
    raw = os.fsencode(name)
    if len(raw) <= _LONGEST:
        return name
    digest = hashlib.blake2b(raw, digest_size=6).hexdigest()
    return os.fsdecode(raw[: _LONGEST - 20]).encode("utf-8", "ignore").decode() + "~" + digest
