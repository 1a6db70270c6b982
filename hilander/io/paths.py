"""Names of files as text: names that are not UTF-8 keep their bytes as escapes."""

from __future__ import annotations

import os
import re

_ESCAPED = re.compile(r"\\x([89a-f][0-9a-f])")


def encode_name(path: str | os.PathLike[str]) -> str:
    r"""Write a path as text that every file format can hold.

    Parameters
    ----------
    path : path
        As the operating system gives it; bytes that are not UTF-8 are surrogates.

    Returns
    -------
    text : str
        The path itself if it is UTF-8. Other bytes are written as ``\xe9``.
    """
    return os.fspath(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def decode_name(text: str) -> str:
    r"""Give back the path that `encode_name` wrote.

    Parameters
    ----------
    text : str

    Returns
    -------
    path : str
        A name that has ``\xe9`` in letters is taken for that byte: try `text` itself first.
    """
    return _ESCAPED.sub(lambda found: chr(0xDC00 + int(found[1], 16)), text)
