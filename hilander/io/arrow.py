"""Convert Arrow columns of vectors to matrices.

pyarrow is imported inside the functions, so that ``import hilander.io`` stays quick.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import EmbeddingError

Matrix = npt.NDArray[Any]


def is_vector_type(arrow_type: Any) -> bool:
    """Whether an Arrow type holds one vector of numbers in each row.

    Parameters
    ----------
    arrow_type : pyarrow.DataType

    Returns
    -------
    is_vector : bool
        True for (large, fixed-size) lists of floats, integers or booleans, and for fixed-shape
        tensors, which are stored as such lists.
    """
    import pyarrow.types as kinds

    arrow_type = getattr(arrow_type, "storage_type", arrow_type)
    is_list = (
        kinds.is_list(arrow_type)
        or kinds.is_large_list(arrow_type)
        or kinds.is_fixed_size_list(arrow_type)
    )
    return is_list and is_number_type(arrow_type.value_type)


def is_number_type(arrow_type: Any) -> bool:
    """Whether an Arrow type holds floats, integers or booleans."""
    import pyarrow.types as kinds

    checks = (kinds.is_floating, kinds.is_integer, kinds.is_boolean)
    return any(check(arrow_type) for check in checks)


def matrix_from_arrow(column: Any, name: str = "X", first_row: int = 0) -> Matrix:
    """Convert an Arrow column of vectors to a matrix.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
        Lists of one length. A column of plain numbers gives a one-dimensional array.
    name : str
        Name of the column in errors.
    first_row : int
        Number of the first row in errors, for columns that are read in batches.

    Returns
    -------
    matrix : ndarray of shape (n_rows, n_features)
        In the number type of the column.

    Raises
    ------
    EmbeddingError
        For nulls, lists of several lengths, and columns that do not hold numbers.
    """
    chunks = list(column.chunks) if hasattr(column, "chunks") else [column]
    if not is_vector_type(column.type):
        return _plain_numbers(column, name, first_row)
    pieces = []
    start = first_row
    for chunk in chunks:
        if len(chunk):
            pieces.append(_vectors(getattr(chunk, "storage", chunk), name, start))
            start += len(chunk)
    if not pieces:
        return np.empty((0, 0), dtype=np.float32)
    width = pieces[0].shape[1]
    start = first_row
    for piece in pieces:
        if piece.shape[1] != width:
            raise EmbeddingError(_ragged(name, start, piece.shape[1], first_row, width))
        start += len(piece)
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _plain_numbers(column: Any, name: str, first_row: int) -> Matrix:
    if not is_number_type(column.type):
        raise EmbeddingError(
            f"{name} holds Arrow values of type {column.type}, expected lists of numbers; "
            "choose the column of embeddings"
        )
    _refuse_null_rows(column, name, first_row)
    return np.asarray(column)


def _vectors(chunk: Any, name: str, first_row: int) -> Matrix:
    """Values of one chunk, shape (n_rows, n_features), without a copy if Arrow allows it."""
    import pyarrow.compute as compute

    _refuse_null_rows(chunk, name, first_row)
    lengths = np.asarray(compute.list_value_length(chunk))  # (n_rows,)
    width = int(lengths[0])
    odd = np.flatnonzero(lengths != width)
    if len(odd):
        row = int(odd[0])
        raise EmbeddingError(_ragged(name, first_row + row, int(lengths[row]), first_row, width))
    values = chunk.flatten()
    if values.null_count:
        row = int(np.flatnonzero(np.asarray(values.is_null()))[0]) // width
        raise EmbeddingError(
            f"{name} row {first_row + row} holds a null, expected numbers only; "
            "drop or fill that row"
        )
    matrix: Matrix = values.to_numpy(zero_copy_only=False)
    return matrix.reshape(len(chunk), width)


def _refuse_null_rows(column: Any, name: str, first_row: int) -> None:
    if column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise EmbeddingError(
            f"{name} row {first_row + row} is null ({column.null_count} such rows), "
            "expected an embedding in each row; drop or fill them"
        )


def _ragged(name: str, row: int, got: int, first_row: int, width: int) -> str:
    return (
        f"{name} row {row} has {got} values where row {first_row} has {width}, "
        "expected one length; embed all rows with one model"
    )
