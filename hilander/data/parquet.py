"""Parquet files of embeddings, ids and labels.

pyarrow is imported inside the functions, so that ``import hilander.data`` stays quick.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.data.arrow import is_vector_type, matrix_from_arrow
from hilander.errors import EmbeddingError, FileFormatError

_FEATURE_NAMES = ("features", "embeddings", "embedding", "feature", "vector", "X")
_BATCH_ROWS = 65_536


def read_parquet_vectors(path: Path, name: str | None = None) -> npt.NDArray[Any]:
    """Read the column of embeddings, batch by batch into one array.

    Parameters
    ----------
    path : Path
    name : str, optional
        The column; found by its type when not given.

    Returns
    -------
    features : ndarray of shape (n_rows, n_features)
        In the column's own number type.
    """
    with _open(path) as file:
        column = _vector_column(path, file.schema_arrow, name)
        features: npt.NDArray[Any] | None = None
        start = 0
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[column]):
            if not batch.num_rows:
                continue
            rows = matrix_from_arrow(batch.column(0), f"column {column!r}", start)
            if features is None:
                features = np.empty((file.metadata.num_rows, rows.shape[1]), dtype=rows.dtype)
            if rows.shape[1] != features.shape[1]:
                raise EmbeddingError(
                    f"column {column!r} row {start} has {rows.shape[1]} values where row 0 has "
                    f"{features.shape[1]}, expected one length; embed all rows with one model"
                )
            features[start : start + len(rows)] = rows
            start += len(rows)
    if features is None:
        raise FileFormatError(f"{path} has no rows, expected embeddings; check how it was made")
    return features


def read_parquet_column(
    path: Path, name: str | None, usual: Sequence[str]
) -> npt.NDArray[Any] | None:
    """Read a column of ids or labels, in its own type.

    Parameters
    ----------
    path : Path
    name : str, optional
        The column, which must then be there.
    usual : sequence of str
        Names to try when none is given.

    Returns
    -------
    values : ndarray of shape (n_rows,), or None
        None when no name is given and no usual one is there.
    """
    with _open(path) as file:
        names = file.schema_arrow.names
        if name is None:
            name = next((usual_name for usual_name in usual if usual_name in names), None)
            if name is None:
                return None
        if name not in names:
            raise FileFormatError(_no_column(path, name, names))
        column = file.read(columns=[name]).column(0)
        if column.null_count:
            row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise FileFormatError(
                f"{path} column {name!r} row {row} is null ({column.null_count} such rows), "
                "expected a value in each row; drop or fill them"
            )
        if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
            column = column.cast(column.type.value_type)  # a dictionary: categories of pandas
        return np.asarray(column.to_numpy())


@contextlib.contextmanager
def _open(path: Path) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path, memory_map=True) as file:
            yield file
    except EmbeddingError as error:
        raise FileFormatError(f"{path}: {error}") from error
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileFormatError(
            f"{path} is damaged or is no Parquet file ({reason}), expected Parquet; "
            "fetch or write it again"
        ) from error


def _vector_column(path: Path, schema: Any, name: str | None) -> str:
    if name is not None:
        if name not in schema.names:
            raise FileFormatError(_no_column(path, name, schema.names))
        if not is_vector_type(schema.field(name).type):
            raise FileFormatError(
                f"{path} column {name!r} holds {schema.field(name).type}, expected lists of "
                "numbers; name the column of embeddings"
            )
        return name
    vectors = [field.name for field in schema if is_vector_type(field.type)]
    preferred = [column for column in _FEATURE_NAMES if column in vectors]
    if len(vectors) == 1 or preferred:
        return (preferred or vectors)[0]
    if vectors:
        raise FileFormatError(
            f"{path} has several columns of vectors ({', '.join(vectors)}), expected one; "
            "name it (features=… in Python, --features-column)"
        )
    raise FileFormatError(
        f"{path} has no column of lists of numbers (its columns: {', '.join(schema.names)}), "
        "expected one of embeddings; write each embedding as a list"
    )


def _no_column(path: Path, name: str, names: Sequence[str]) -> str:
    return f"{path} has no column {name!r}, it has {', '.join(names)}; name one of these"
