"""Small tables: all columns as text, and one column of a file of embeddings."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError, MissingFileError
from hilander.io.parquet import read_parquet_column
from hilander.io.separators import find_separator, read_first_line

TABLE_KINDS = (".csv", ".tsv", ".txt", ".json", ".parquet", ".npy")


def read_table(path: Path) -> list[list[Any]]:
    """The rows of a small table, the names of its columns first if it has them.

    Parameters
    ----------
    path : Path
        ``.csv``, ``.tsv``, ``.txt``, ``.json`` (a list of objects or of lists), ``.parquet`` or a
        two-dimensional ``.npy``.

    Returns
    -------
    rows : list of list
    """
    source = Path(path)
    if not source.is_file():
        raise MissingFileError(f"{source} does not exist, expected a file; check the path")
    suffix = source.suffix.lower()
    if suffix not in TABLE_KINDS:
        raise FileFormatError(
            f"{source} has the suffix {suffix or '(none)'!r}, expected one of "
            f"{', '.join(TABLE_KINDS)}; convert or rename it"
        )
    try:
        return _READERS.get(suffix, _read_text)(source)
    except (ValueError, OSError, KeyError, TypeError, csv.Error) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"{source} cannot be read ({error}), expected a table; check how it was made"
        ) from error


def read_column(path: Path, name: str) -> npt.NDArray[Any]:
    """One column of a file of embeddings, shape (n_rows,), in its own type; nulls are None or NaN.

    Parameters
    ----------
    path : Path
        ``.parquet``, ``.npz``, or ``.csv`` or ``.tsv`` with a header.
    name : str
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        found = read_parquet_column(path, name, (), may_be_null=True)
        return np.asarray(found)
    if suffix == ".npz":
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            if name in arrays.files:
                return np.asarray(arrays[name])
            held = ", ".join(arrays.files)
    elif suffix in (".csv", ".tsv"):
        header, *rows = _read_text(path)
        if name in header:
            at = header.index(name)
            return np.array([row[at] for row in rows])
        held = ", ".join(header[:20])
    else:
        held = "no named columns"
    raise FileFormatError(f"{path} has no column {name!r}, it has {held}; name one of these")


def _read_text(path: Path) -> list[list[Any]]:
    separator = find_separator(path, read_first_line(path))
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, delimiter=separator, skipinitialspace=separator == " ")
        return [[cell.strip() for cell in row] for row in rows if row]


def _read_json(path: Path) -> list[list[Any]]:
    held = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(held, list) or not all(isinstance(row, dict | list) for row in held):
        raise ValueError("not a list of objects or of lists")
    if held and isinstance(held[0], dict):
        names = list(held[0])
        return [names, *([row[name] for name in names] for row in held)]
    return held


def _read_parquet(path: Path) -> list[list[Any]]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        table = file.read()
    columns = [column.to_pylist() for column in table.columns]
    return [list(table.column_names), *map(list, zip(*columns, strict=True))]


def _read_npy(path: Path) -> list[list[Any]]:
    rows: list[list[Any]] = np.atleast_2d(np.load(path, allow_pickle=False)).tolist()
    return rows


_READERS = {".json": _read_json, ".parquet": _read_parquet, ".npy": _read_npy}
