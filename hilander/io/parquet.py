"""Read embeddings, ids and labels from Parquet files.

pyarrow is imported inside the functions, so that ``import hilander.io`` stays quick.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import EmbeddingError, FileFormatError
from hilander.io.arrow import is_number_type, is_vector_type, matrix_from_arrow
from hilander.io.hidden_names import is_utf8
from hilander.io.label_files import find_id_column
from hilander.io.wide_tables import fill_rows, find_numbered, show_names

_FEATURE_NAMES = ("features", "embeddings", "embedding", "feature", "vector", "X")
_BATCH_ROWS = 65_536  # rows of a batch; bounds memory
_BATCH_VALUES = 1 << 22  # values of a batch of numbered columns; bounds memory


def read_parquet_vectors(
    path: Path, name: str | None = None, others: Sequence[str | None] = ()
) -> npt.NDArray[Any]:
    """Read the embeddings, batch by batch into one array.

    They are a column of lists or, if there is none, numbered columns (f0, f1, f2, …).

    Parameters
    ----------
    path : Path
    name : str, optional
        The column of lists, or the prefix of numbered columns. By default it is detected.
    others : sequence of str or None
        Columns that are not features, whatever their names.

    Returns
    -------
    features : ndarray of shape (n_rows, n_features)
        In the number type of the column; for numbered columns, in one that holds all of them.
    """
    with _open(path) as file:
        column = _vector_column(path, file.schema_arrow, name)
        if column is None:
            numbered = _numbered_columns(path, file.schema_arrow, name, others)
            return _read_numbered(path, file, numbered)
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
        raise FileFormatError(_no_rows(path))
    return features


def _read_numbered(path: Path, file: Any, names: list[str]) -> npt.NDArray[Any]:
    """The values of columns of numbers, shape (n_rows, n_columns)."""
    if not file.metadata.num_rows:
        raise FileFormatError(_no_rows(path))
    kinds = [file.schema_arrow.field(name).type.to_pandas_dtype() for name in names]
    features = np.empty((file.metadata.num_rows, len(names)), dtype=np.result_type(*kinds))
    start = 0
    step = max(1, min(_BATCH_ROWS, _BATCH_VALUES // len(names)))
    for batch in file.iter_batches(batch_size=step, columns=names):
        rows = features[start : start + batch.num_rows]
        fill_rows(rows, names, [batch.column(name) for name in names], start)
        start += batch.num_rows
    return features


def read_parquet_column(
    path: Path, name: str | None, defaults: Sequence[str], *, may_be_null: bool = False
) -> npt.NDArray[Any] | None:
    """Read a column of ids or labels in its own type.

    Parameters
    ----------
    path : Path
    name : str, optional
        The column; an error if the file does not have it.
    defaults : sequence of str
        Names to try if none is given.
    may_be_null : bool
        Whether null is a value: None, or NaN in a column of numbers.

    Returns
    -------
    values : ndarray of shape (n_rows,), or None
        None if no name is given and the file has none of the defaults.
    """
    with _open(path) as file:
        names = file.schema_arrow.names
        if name is None:
            name = next((default for default in defaults if default in names), None)
            if name is None:
                return None
        if name not in names:
            raise FileFormatError(_no_column(path, name, names))
        column = file.read(columns=[name]).column(0)
        if column.null_count and not may_be_null:
            row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise FileFormatError(
                f"{path} column {name!r} row {row} is null ({column.null_count} such rows), "
                "expected a value in each row; drop or fill them"
            )
        if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
            column = column.cast(column.type.value_type)  # a dictionary type: categories of pandas
        column.validate(full=True)  # text may hold bytes that are not UTF-8
        return np.asarray(column.to_numpy())


def list_id_candidates(path: Path) -> list[str]:
    """Names of the columns of text or whole numbers, which may hold ids."""
    import pyarrow.types as kinds

    with _open(path) as file:
        return [
            field.name
            for field in file.schema_arrow
            if kinds.is_string(field.type)
            or kinds.is_large_string(field.type)
            or (kinds.is_integer(field.type) and not field.name[-1:].isdigit())
        ]


def read_parquet_ids(
    path: Path, name: str | None, ids: npt.NDArray[Any], labels: str | None
) -> tuple[npt.NDArray[Any] | None, str]:
    """The ids of a file of labels, and the name of their column; None if it has none.

    Parameters
    ----------
    path : Path
    name : str, optional
        The column; by default ``id``, or else the only one that holds all `ids`.
    ids : ndarray of shape (n_rows,)
        Ids of the embeddings.
    labels : str, optional
        The column of labels, which is not that of the ids.
    """
    found = read_parquet_column(path, name, ("id",))
    if found is not None:
        return found, name or "id"
    with _open(path) as file:
        flat = [field.name for field in file.schema_arrow if not is_vector_type(field.type)]
        table = file.read(columns=[one for one in flat if one != labels])
    columns = {one: table.column(one).to_pylist() for one in table.column_names}
    fitting = find_id_column(columns, ids)
    return (None, "") if fitting is None else (np.array(columns[fitting]), fitting)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        with contextlib.ExitStack() as stack:
            source: Any = path
            if not is_utf8(path):  # pyarrow maps files of other names only if they are open
                source = stack.enter_context(path.open("rb"))
            yield stack.enter_context(pyarrow.parquet.ParquetFile(source, memory_map=True))
    except EmbeddingError as error:
        raise FileFormatError(f"{path}: {error}") from error
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileFormatError(
            f"{path} is damaged or not a Parquet file ({reason}), expected Parquet; "
            "fetch or write it again"
        ) from error


def _vector_column(path: Path, schema: Any, name: str | None) -> str | None:
    """Name of the column of lists; None if there is none, or none of the given name."""
    vectors = [field.name for field in schema if is_vector_type(field.type)]
    if name is not None:
        return name if name in vectors else None
    preferred = [column for column in _FEATURE_NAMES if column in vectors]
    if len(vectors) > 1 and not preferred:
        raise FileFormatError(
            f"{path} has several columns of vectors ({', '.join(vectors)}), expected one; "
            "name it (features=… in Python, --features-column)"
        )
    return next(iter(preferred or vectors), None)


def _numbered_columns(
    path: Path, schema: Any, name: str | None, others: Sequence[str | None]
) -> list[str]:
    names = ["" if column in others else column for column in schema.names]
    is_number = [is_number_type(field.type) for field in schema]
    found = find_numbered(path, names, is_number, name)
    for at in found:
        if not is_number[at]:
            raise FileFormatError(
                f"{path} column {names[at]!r} holds {schema.field(at).type}, expected numbers as "
                "in the other numbered columns; write it as numbers or rename it"
            )
    if found:
        return [names[at] for at in found]
    if name is None:
        raise FileFormatError(
            f"{path} has no column of lists of numbers (its columns: {show_names(schema.names)}) "
            "nor numbered columns such as f0, f1, …, expected embeddings; write each as a list"
        )
    if name not in schema.names:
        raise FileFormatError(_no_column(path, name, schema.names))
    raise FileFormatError(
        f"{path} column {name!r} holds {schema.field(name).type}, expected lists of "
        "numbers; name the column of embeddings, or the prefix of numbered columns"
    )


def _no_rows(path: Path) -> str:
    return f"{path} has no rows, expected embeddings; check how it was made"


def _no_column(path: Path, name: str, names: Sequence[str]) -> str:
    return f"{path} has no column {name!r}, it has {show_names(names)}; name one of these"
