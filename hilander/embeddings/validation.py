"""Validate embeddings of any origin: one matrix, float32 and C-contiguous, or as stored."""

from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import FloatArray, drop_pages, row_blocks
from hilander.embeddings.labels import is_missing
from hilander.errors import EmbeddingError, EmbeddingTypeError
from hilander.io.arrow import matrix_from_arrow
from hilander.io.label_files import ID_COLUMNS, LABEL_COLUMNS

_NUMBER_KINDS = "fiub"  # kinds of numpy dtypes: floats, integers, booleans
_MOST_SHOWN = 5  # column names in an error


def as_embeddings(
    X: Any,
    *,
    dim: int | None = None,
    min_rows: int = 1,
    name: str = "X",
    as_stored: bool = False,
) -> FloatArray:
    """Check embeddings and convert them to the form that every stage expects.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        A numpy array or memmap of any number type, order or endianness; a list of lists; a torch
        tensor on any device; a pandas DataFrame of numbers or Series of lists; an Arrow column of
        lists.
    dim : int, optional
        Number of features that the model was trained on.
    min_rows : int
        Smallest number of rows that is accepted.
    name : str
        Name of the input in errors.
    as_stored : bool
        Check an array or memmap block by block and return it unchanged, in its own number type.
        :meth:`hilander.embeddings.preparation.Preparation.apply` converts it block by block, so
        that large data are never copied as a whole.

    Returns
    -------
    embeddings : ndarray of shape (n_samples, n_features), float32, C-contiguous
        All values finite. The input itself, not a copy, if it has this form already, or with
        `as_stored`. Rows are not normalised: see
        :func:`hilander.embeddings.preparation.learn_preparation`.

    Raises
    ------
    EmbeddingError
        When the input is empty, not two-dimensional, not of numbers, not finite in float32, or
        of another shape than `dim` and `min_rows` require.
    """
    array = _as_array(X, name)
    _check_kind(array, name)
    _check_shape(array, dim, min_rows, name)
    return _check_finite(array, name) if as_stored else _as_finite_float32(array, name)


def has_names(X: Any) -> bool:
    """Whether X is a data frame whose column names are all strings."""
    names = getattr(X, "columns", ())
    return len(names) > 0 and all(isinstance(name, str) for name in names)


def _as_array(X: Any, name: str) -> npt.NDArray[Any]:
    """Unwrap containers of other libraries, recognised by their attributes, without imports."""
    origin = type(X).__module__.partition(".")[0]
    if origin == "scipy" and hasattr(X, "toarray"):
        raise EmbeddingError(
            f"{name} is a sparse matrix, expected a dense array: Sparse data is not supported; "
            "reduce it first (for example with TruncatedSVD) or call .toarray()"
        )
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        row = int(np.argwhere(np.ma.getmaskarray(X))[0][0])
        raise EmbeddingError(
            f"{name} row {row} has masked values, expected numbers only; drop or fill that row"
        )
    if X is None or isinstance(X, str | bytes | dict | set):
        raise EmbeddingError(
            f"{name} is a {type(X).__name__}, expected an array of shape (n_samples, n_features); "
            "pass the embeddings themselves"
        )
    if origin == "pyarrow":
        if not hasattr(X, "type"):
            raise EmbeddingError(
                f"{name} is a pyarrow {type(X).__name__}, expected one column of lists; "
                f"pass {name}['column']"
            )
        return matrix_from_arrow(X, name)
    if hasattr(X, "detach") and hasattr(X, "cpu"):
        return _from_tensor(X, name)
    if hasattr(X, "dtypes") and hasattr(X, "to_numpy"):
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            _check_columns(X, name)
        X = X.to_numpy()
    if isinstance(X, list | tuple) and any(hasattr(row, "detach") for row in X):
        X = [_from_tensor(row, name) if hasattr(row, "detach") else row for row in X]
    try:
        array = np.asarray(X)
    except (ValueError, TypeError) as error:
        raise _not_a_matrix(X, name) from error
    return _from_objects(array, name) if array.dtype == object else array


def _check_columns(frame: Any, name: str) -> None:
    """Refuse a data frame with columns that are not features, and name them."""
    lists, not_numbers = [], {}
    for at, column in enumerate(frame.columns):
        if getattr(frame.dtypes.iloc[at], "kind", "O") in _NUMBER_KINDS:
            continue
        value = next((one for one in frame.iloc[:, at] if not is_missing(one)), 0)
        if np.ndim(value) == 1:
            lists.append(column)
        elif not hasattr(value, "__float__") and not isinstance(value, complex):
            not_numbers[column] = value
    others = [column for column in frame.columns if column not in lists]
    if len(lists) > 1 or (lists and others):
        beside = f" beside {_show(others)}" if others else ""
        raise EmbeddingError(
            f"{name} has lists in the column {_show(lists)}{beside}, expected one column of lists "
            f"and no other; pass {name}[{lists[0]!r}]"
        )
    for column, value in not_numbers.items():
        held = f"text ({value!r:.40})" if isinstance(value, str | bytes) else type(value).__name__
        raise EmbeddingError(
            f"{name} column {column!r} holds {held}, expected numbers; pass only the feature "
            f"columns: {name}.drop(columns=[{', '.join(map(repr, not_numbers))}])"
        )
    if named := [column for column in frame.columns if column in ID_COLUMNS + LABEL_COLUMNS]:
        raise EmbeddingError(
            f"{name} has a column {named[0]!r} among its features, expected features only; "
            f"leave it out: {name}.drop(columns=[{', '.join(map(repr, named))}])"
        )


def _show(columns: list[Any]) -> str:
    shown = ", ".join(map(repr, columns[:_MOST_SHOWN]))
    return shown + (f", … ({len(columns)} in all)" if len(columns) > _MOST_SHOWN else "")


def _from_tensor(tensor: Any, name: str) -> npt.NDArray[Any]:
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()  # numpy has no bfloat16; float32 holds every value of it
    try:
        return np.asarray(tensor.resolve_conj().numpy())
    except (RuntimeError, TypeError, AttributeError) as error:
        raise EmbeddingError(
            f"{name} is a tensor that numpy cannot hold ({error}), expected a dense tensor of "
            "floats; call .to_dense() or .float() on it"
        ) from error


def _from_objects(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Convert an object array to numbers: its items are rows (lists) or Python numbers."""
    if array.ndim == 2 and array.shape[1] == 1 and array.size and np.ndim(array[0, 0]) == 1:
        array = array[:, 0]  # a data frame with one column of lists
    if array.ndim == 1 and array.size and np.ndim(array[0]) == 1:
        try:
            rows = np.stack([np.asarray(row) for row in array])
        except (ValueError, TypeError) as error:
            raise _not_a_matrix(list(array), name) from error
        if rows.dtype != object:
            return rows
        array = rows
    for value in array.flat:
        if isinstance(value, complex | np.complexfloating):
            raise EmbeddingError(_complex_message(name))
        if isinstance(value, str | bytes):
            raise EmbeddingError(
                f"{name} holds text ({value!r:.40}), expected numbers; pass only the "
                "feature columns"
            )
    try:
        return array.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise EmbeddingTypeError(
            f"{name} holds objects that are not numbers ({error}), expected numbers; "
            "pass only the feature columns and drop missing values"
        ) from error


def _not_a_matrix(X: Any, name: str) -> EmbeddingError:
    """The error for input that is no matrix; names the first row of another length, if any."""
    try:
        lengths = [np.size(row) for row in X]
    except (ValueError, TypeError):
        lengths = []
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            return EmbeddingError(
                f"{name} row {row} has {length} values where row 0 has {lengths[0]}, expected "
                "one length; embed all rows with one model"
            )
    return EmbeddingError(
        f"{name} ({type(X).__name__}) cannot be read as an array, expected shape "
        "(n_samples, n_features); convert it with numpy.asarray"
    )


def _complex_message(name: str) -> str:
    return (
        f"Complex data not supported: {name} holds complex numbers, expected real ones; "
        "pass the real part or the magnitude"
    )


def _check_kind(array: npt.NDArray[Any], name: str) -> None:
    if array.dtype.kind == "c":
        raise EmbeddingError(_complex_message(name))
    if array.dtype.kind not in _NUMBER_KINDS:
        raise EmbeddingError(
            f"{name} has dtype {array.dtype}, expected numbers; pass only the feature columns, "
            "as floats"
        )


def _check_shape(array: npt.NDArray[Any], dim: int | None, min_rows: int, name: str) -> None:
    if array.ndim != 2:
        got = "scalar" if array.ndim == 0 else f"{array.ndim}D"
        flat = f"{name}.reshape(-1, 1) if it has one feature or {name}.reshape(1, -1) if it is one"
        fix = f"{name}.reshape(len({name}), -1)" if array.ndim > 2 else f"{flat} sample"
        raise EmbeddingError(
            f"Expected 2D array, got {got} array of shape {array.shape} as {name}; Reshape your "
            f"data with {fix}"
        )
    n_rows, n_features = array.shape
    if n_features == 0:
        raise EmbeddingError(
            f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is "
            f"required. Check how {name} was made"
        )
    if n_rows < max(1, min_rows):
        raise EmbeddingError(
            f"Found array with {n_rows} sample(s) (shape={array.shape}) while a minimum of "
            f"{max(1, min_rows)} is required. Pass more rows as {name}"
        )
    if dim is not None and n_features != dim:
        raise EmbeddingError(
            f"{name}: got {n_features} features, the model was trained on {dim}; use the embedder "
            "that made the training set"
        )


def _as_finite_float32(array: npt.NDArray[Any], name: str) -> FloatArray:
    ready = array.dtype == np.float32 and array.dtype.isnative and array.flags.c_contiguous
    if ready:
        result: FloatArray = np.asarray(array)
    else:
        result = np.empty(array.shape, dtype=np.float32)
    for rows in row_blocks(*array.shape):
        if not ready:
            with np.errstate(over="ignore", invalid="ignore"):
                result[rows] = array[rows]
        _refuse_not_finite(result[rows], array, rows, name)
    return result


def _check_finite(array: npt.NDArray[Any], name: str) -> FloatArray:
    """The array itself, if every value is finite in float32."""
    for rows in row_blocks(*array.shape):
        block = array[rows]
        if array.dtype.itemsize > 4:
            with np.errstate(over="ignore", invalid="ignore"):
                block = block.astype(np.float32)
        _refuse_not_finite(block, array, rows, name)
        drop_pages(array)
    return array


def _refuse_not_finite(
    block: npt.NDArray[Any], array: npt.NDArray[Any], rows: slice, name: str
) -> None:
    finite = np.isfinite(block)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        row = int(row) + rows.start
        raise EmbeddingError(
            _not_finite_message(array[row, column], row, _count_not_finite_rows(array), name)
        )


def _count_not_finite_rows(array: npt.NDArray[Any]) -> int:
    """Number of rows with a value that is not finite in float32."""
    count = 0
    for rows in row_blocks(*array.shape):
        with np.errstate(over="ignore", invalid="ignore"):
            block = array[rows].astype(np.float32)
        count += int((~np.isfinite(block)).any(axis=1).sum())
        drop_pages(array)
    return count


def _not_finite_message(value: Any, row: int, n_rows: int, name: str) -> str:
    if not (np.isnan(value) or np.isinf(value)):
        others = f" ({n_rows:,} rows hold such values, NaN or infinity)" if n_rows > 1 else ""
        return (
            f"{name} row {row} holds {value:.3g}{others}, a value too large for dtype('float32') "
            "that would become infinity; scale the embeddings down"
        )
    held = "NaN" if np.isnan(value) else "infinity (inf)"
    others = f" ({n_rows:,} rows hold NaN or infinity)" if n_rows > 1 else ""
    fix = "drop those rows or embed them" if n_rows > 1 else "drop that row or embed it"
    return f"{name} row {row} holds {held}{others}, expected neither NaN nor infinity; {fix} again"
