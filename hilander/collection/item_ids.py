"""Ids of items, read from a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError, MissingFileError
from hilander.io.parquet import read_parquet_column

_COLUMNS = ("id", "ids")
_SUFFIXES = (".csv", ".tsv", ".txt", ".npy", ".parquet")


def read_ids(path: str | Path) -> npt.NDArray[Any]:
    """Read ids: the column ``id``, or the only column.

    Parameters
    ----------
    path : path
        ``.csv``, ``.tsv``, ``.txt``, ``.npy`` or ``.parquet``.

    Returns
    -------
    ids : ndarray of shape (n_ids,), ints or text
        Text of a text file stays text; the collection converts it.
    """
    source = Path(path)
    if not source.is_file():
        raise MissingFileError(f"{path} does not exist, expected a file of ids; check the path")
    suffix = source.suffix.lower()
    if suffix == ".parquet":
        ids = read_parquet_column(source, None, _COLUMNS)
        if ids is None:
            raise FileFormatError(f"{path} has no column id, expected one; name it so")
        return ids.astype(str) if ids.dtype.kind == "O" else ids
    if suffix == ".npy":
        return _read_npy(source)
    if suffix not in _SUFFIXES:
        raise FileFormatError(
            f"{path} has the suffix {suffix or '(none)'!r}, expected one of {', '.join(_SUFFIXES)}"
        )
    return _read_text(source, "\t" if suffix == ".tsv" else ",")


def _read_npy(source: Path) -> npt.NDArray[Any]:
    try:
        ids: npt.NDArray[Any] = np.load(source, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise FileFormatError(f"{source} cannot be read ({error}), expected an array") from error
    if ids.ndim != 1:
        raise FileFormatError(f"{source} has an array of shape {ids.shape}, expected (n_ids,)")
    return ids


def _read_text(source: Path, separator: str) -> npt.NDArray[Any]:
    try:
        with source.open(encoding="utf-8-sig", newline="") as stream:
            rows = [row for row in csv.reader(stream, delimiter=separator) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{source} is not a text file ({error})") from error
    if not rows:
        raise FileFormatError(f"{source} is empty, expected ids")
    named = [at for at, name in enumerate(rows[0]) if name.strip().lower() in _COLUMNS]
    if not named and len(rows[0]) > 1:
        raise FileFormatError(
            f"{source} has {len(rows[0])} columns and none is named id; name the column of ids"
        )
    place = named[0] if named else 0
    return np.array([row[place].strip() for row in rows[bool(named) :] if len(row) > place])
