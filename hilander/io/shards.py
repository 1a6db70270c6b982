"""Embeddings in a folder of shards: .parquet or .npy files, on any file system that Arrow opens.

Shards are listed and their headers are read here; rows are read piece by piece, by whoever needs
them. The rows of a set are numbered through all shards, in the order of their names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import EmbeddingError, FileFormatError, HiLanderError, MissingFileError
from hilander.io.arrow import matrix_from_arrow

KINDS = (".parquet", ".npy")
_FEATURE_NAMES = ("features", "embeddings", "embedding", "feature", "vector", "X")
_ID_NAMES = ("id", "ids")
PIECE_BYTES = 1 << 25  # of a piece: a block of rows that one task reads


@dataclass(frozen=True)
class Shard:
    """One file of embeddings.

    Parameters
    ----------
    place : str
        Address of the folder, a path or a URI.
    name : str
        Of the file in the folder.
    n_rows, dim : int
    dtype : str
        Number type of the values.
    column, id_column : str
        Columns of a Parquet file; empty for none.
    groups : tuple of int
        Rows of each row group of a Parquet file.
    size : int
        Bytes of the file.
    """

    place: str
    name: str
    n_rows: int
    dim: int
    dtype: str
    column: str = ""
    id_column: str = ""
    groups: tuple[int, ...] = ()
    size: int = 0

    @property
    def path(self) -> str:
        """Address of the file."""
        return f"{self.place.rstrip('/')}/{self.name}"

    def pieces(self) -> list[tuple[int, int]]:
        """Rows at which the pieces begin and end: whole row groups, or parts of a large one."""
        most = max(1, PIECE_BYTES // max(1, self.dim * np.dtype(self.dtype).itemsize))
        found: list[tuple[int, int]] = []
        start = end = 0
        for rows in self.groups or (self.n_rows,):
            if end > start and end - start + rows > most:
                found.append((start, end))
                start = end
            end += rows
            while end - start > most:
                found.append((start, start + most))
                start += most
        if end > start:
            found.append((start, end))
        return found

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Rows of the file as stored, shape (stop - start, dim)."""
        with _opened(self.path) as stream:
            if self.name.endswith(".npy"):
                return _read_npy_rows(stream, self, start, stop)
            parts = [
                matrix_from_arrow(one, f"column {self.column!r}", start)
                for one in _read_column(stream, self, self.column, start, stop)
            ]
        rows = np.concatenate(parts)
        if rows.shape[1] != self.dim:
            raise EmbeddingError(
                f"rows from {start} have {rows.shape[1]} values where row 0 has {self.dim}"
            )
        return rows

    def read_ids(self, start: int, stop: int) -> Any:
        """Ids of rows as an Arrow array; None for a file without ids."""
        if not self.id_column:
            return None
        import pyarrow

        with _opened(self.path) as stream:
            return pyarrow.concat_arrays(
                list(_read_column(stream, self, self.id_column, start, stop))
            )


def list_shards(place: str, features: str | None = None, ids: str | None = None) -> list[Shard]:
    """The shards of a folder, in the order of their names, with what their headers say.

    Parameters
    ----------
    place : str
        A path, or a URI such as s3://bucket/folder that pyarrow.fs or fsspec opens.
    features, ids : str, optional
        Columns of Parquet files; by default they are found by name.

    Raises
    ------
    FileFormatError
        A shard is not readable, or of another dimension than the first; the error names it.
    """
    system, folder = open_system(place)
    from pyarrow import fs

    whole = system.get_file_info(folder)
    if whole.type == fs.FileType.NotFound:
        raise MissingFileError(f"{place} does not exist; give a folder of .parquet or .npy shards")
    is_file = whole.type == fs.FileType.File
    found = [whole] if is_file else [
        one for one in system.get_file_info(fs.FileSelector(folder))
        if one.type == fs.FileType.File and not one.base_name.startswith((".", "_"))
    ]  # fmt: skip
    kinds = {PurePosixPath(one.base_name).suffix.lower() for one in found}
    if not kinds or not kinds <= set(KINDS) or len(kinds) > 1:
        raise FileFormatError(
            f"{place} has files of the kinds {sorted(kinds) or 'none'}, expected shards of one "
            "kind, .parquet or .npy, and no other files"
        )
    place = place.rstrip("/")
    if is_file:
        place = place[: -len(whole.base_name) - 1] or "."
    shards: list[Shard] = []
    for info in sorted(found, key=lambda one: str(one.base_name)):
        with (
            reading(f"{place.rstrip('/')}/{info.base_name}"),
            system.open_input_file(info.path) as stream,
        ):
            shard = _read_header(stream, place, info, features, ids)
            if shards and shard.dim != shards[0].dim:
                raise FileFormatError(
                    f"it has {shard.dim} features where {shards[0].name} has {shards[0].dim}"
                )
            if shards and bool(shard.id_column) != bool(shards[0].id_column):
                raise FileFormatError(f"only one of {shards[0].name} and it has ids")
        shards.append(shard)
    shards = [one for one in shards if one.n_rows]
    if not shards:
        raise FileFormatError(f"the shards of {place} have no rows, expected embeddings")
    return shards


def open_system(place: str) -> tuple[Any, str]:
    """The Arrow file system of an address, and the path in it."""
    from pyarrow import ArrowException, fs

    if "://" not in place:
        import os

        return fs.LocalFileSystem(), os.path.abspath(place)
    try:
        system, path = fs.FileSystem.from_uri(place)
        return system, path
    except (ArrowException, OSError) as error:
        try:
            import fsspec

            other, path = fsspec.core.url_to_fs(place)
            return fs.PyFileSystem(fs.FSSpecHandler(other)), str(path)
        except (ImportError, ValueError):
            reason = str(error).splitlines()[0]
            raise FileFormatError(
                f"{place} cannot be opened ({reason}); check the address"
            ) from error


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Errors of a shard name it."""
    from pyarrow import ArrowException

    try:
        yield
    except HiLanderError as error:
        if str(error).startswith(path):
            raise
        raise FileFormatError(f"{path}: {error}") from error
    except (ArrowException, OSError, ValueError, EOFError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileFormatError(
            f"{path} cannot be read ({reason}); fetch or write it again, or move it away"
        ) from error


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
    with reading(path):
        system, inside = open_system(path)
        with system.open_input_file(inside) as stream:
            yield stream


def _read_header(
    stream: Any, place: str, info: Any, features: str | None, ids: str | None
) -> Shard:
    if info.base_name.lower().endswith(".npy"):
        shape, dtype, offset = _read_npy_header(stream)
        if len(shape) != 2 or dtype.kind not in "fiu":
            raise FileFormatError(f"it has {dtype} of shape {shape}, expected numbers (n, dim)")
        wanted = offset + shape[0] * shape[1] * dtype.itemsize
        if info.size < wanted:
            raise FileFormatError(f"it has {info.size:,} bytes where its header needs {wanted:,}")
        return Shard(place, info.base_name, shape[0], shape[1], dtype.str, size=info.size)
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(stream)
    names, groups = file.schema_arrow.names, file.metadata.num_row_groups
    column = _choose(names, features, _FEATURE_NAMES)
    if column is None:
        raise FileFormatError(f"it has the columns {names}, none of them {_FEATURE_NAMES}")
    rows = tuple(file.metadata.row_group(at).num_rows for at in range(groups))
    first = next(file.iter_batches(batch_size=1, columns=[column]), None)
    held = np.zeros((0, 0)) if first is None else matrix_from_arrow(first.column(0), column)
    return Shard(
        place, info.base_name, sum(rows), held.shape[1], held.dtype.str, column,
        _choose(names, ids, _ID_NAMES) or "", rows, info.size,
    )  # fmt: skip


def _choose(names: list[str], wanted: str | None, usual: tuple[str, ...]) -> str | None:
    if wanted is None:
        return next((one for one in usual if one in names), None)
    if wanted not in names:
        raise FileFormatError(f"it has no column {wanted!r}, it has {names}")
    return wanted


def _read_npy_header(stream: Any) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):
        read = np.lib.format.read_array_header_2_0
    shape, by_column, dtype = read(stream)
    if by_column:
        raise FileFormatError("it is stored by columns; write it with numpy.ascontiguousarray")
    return shape, dtype, int(stream.tell())


def _read_npy_rows(stream: Any, shard: Shard, start: int, stop: int) -> npt.NDArray[Any]:
    _, dtype, offset = _read_npy_header(stream)
    width = shard.dim * dtype.itemsize
    held = stream.read_at((stop - start) * width, offset + start * width)
    return np.frombuffer(held, dtype).reshape(-1, shard.dim)


def _read_column(stream: Any, shard: Shard, column: str, start: int, stop: int) -> Iterator[Any]:
    """Arrow arrays of consecutive rows of a column."""
    from pyarrow.parquet import ParquetFile

    ends = np.cumsum(shard.groups)
    chosen = np.flatnonzero((ends > start) & (ends - shard.groups < stop)).tolist()
    at = int(ends[chosen[0]] - shard.groups[chosen[0]])
    for batch in ParquetFile(stream).iter_batches(row_groups=chosen, columns=[column]):
        low, high = max(start - at, 0), min(stop - at, len(batch))
        at += len(batch)
        if high > low:
            one = batch.column(0)
            if one.null_count:
                raise FileFormatError(f"column {column!r} has empty values; drop or fill them")
            yield one.slice(low, high - low)
        if at >= stop:
            return
