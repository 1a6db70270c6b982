"""Read embeddings, ids and labels from files, and write tables."""

import csv
import difflib
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError, LabelError, MissingFileError, OutputError
from hilander.io.label_files import (
    ID_COLUMNS,
    LABEL_COLUMNS,
    find_id_column,
    join_by_id,
    read_text_labels,
)
from hilander.io.numpy_files import load_npy, load_npz
from hilander.io.parquet import read_parquet_column, read_parquet_ids, read_parquet_vectors
from hilander.io.pickles import read_pickle_arrays
from hilander.io.wide_tables import read_text_table
from hilander.io.writing import write_atomically

AnyArray = npt.NDArray[Any]

EMBEDDING_SUFFIXES = (".npy", ".npz", ".parquet", ".csv", ".tsv", ".pkl", ".pickle")
LABEL_SUFFIXES = (".npy", ".npz", ".parquet", ".pkl", ".pickle", ".csv", ".tsv", ".txt")
TABLE_SUFFIXES = (".parquet", ".csv")
_FEATURE_KEYS = ("features", "embeddings", "X")
_LABEL_KEYS = ("labels", "label", "y")
_TABLE_LABELS = (*LABEL_COLUMNS, "cluster")  # the explorer exports corrected labels as cluster


@dataclass(frozen=True, eq=False)
class EmbeddingFile:
    """The content of a file of embeddings.

    Attributes
    ----------
    features : ndarray of shape (n_samples, n_features)
        In the number type of the file; a memmap for ``.npy``. Only the shape is checked here;
        :func:`hilander.embeddings.validation.as_embeddings` validates the values.
    ids : ndarray of shape (n_samples,), or None
    labels : ndarray of shape (n_samples,), or None
    source : Path
    """

    features: AnyArray
    ids: AnyArray | None
    labels: AnyArray | None
    source: Path

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.features.dtype.kind not in "fiub":
            raise FileFormatError(
                f"{self.source} holds an array of shape {self.features.shape} and dtype "
                f"{self.features.dtype} as features, expected numbers of shape "
                "(n_samples, n_features); name the array of embeddings"
            )
        for name, column in (("ids", self.ids), ("labels", self.labels)):
            if column is not None and column.shape[:1] != self.features.shape[:1]:
                raise FileFormatError(
                    f"{self.source} has {name} of shape {column.shape} for "
                    f"{len(self.features)} embeddings, expected one for each; check how it was made"
                )


def read_embeddings(
    path: str | Path,
    *,
    features: str | None = None,
    ids: str | None = None,
    labels: str | None = None,
) -> EmbeddingFile:
    """Read embeddings, and ids and labels if the file has them.

    Parameters
    ----------
    path : str or Path
        ``.npy`` (one array, mapped and not loaded), ``.npz`` (arrays ``features``,
        ``embeddings`` or ``X``, else the only two-dimensional one), ``.parquet`` (a column of
        lists, or numbered columns such as f0, f1, f2, …), ``.csv`` or ``.tsv`` (numbered columns,
        or no header and all columns numbers), or ``.pkl`` of ``(features, labels)``, read without
        executing anything in it.
    features, ids, labels : str, optional
        Names of the arrays or columns, if they are not the default ones. For numbered columns, the
        prefix of their names.

    Returns
    -------
    file : EmbeddingFile

    Raises
    ------
    FileFormatError
        When the file is missing, damaged or of another format, or lacks a named array or column.

    Warns
    -----
    UserWarning
        When an id occurs more than once.
    """
    file = _read_embeddings(_existing(path, EMBEDDING_SUFFIXES), features, ids, labels)
    _warn_of_repeated_ids(file)
    return file


def _read_embeddings(
    source: Path, features: str | None, ids: str | None, labels: str | None
) -> EmbeddingFile:
    suffix = source.suffix.lower()
    named = [name for name in (features, ids, labels) if name is not None]
    if suffix == ".parquet":
        return EmbeddingFile(
            read_parquet_vectors(source, features, (ids, labels)),
            read_parquet_column(source, ids, ("id",)),
            read_parquet_column(source, labels, LABEL_COLUMNS, may_be_null=True),
            source,
        )
    if suffix in (".csv", ".tsv"):
        return EmbeddingFile(*read_text_table(source, features, ids, labels), source)
    if suffix == ".npz":
        arrays = load_npz(source)
        return EmbeddingFile(
            _pick_features(source, arrays, features),
            _pick(source, arrays, ids, ID_COLUMNS),
            _pick(source, arrays, labels, _LABEL_KEYS),
            source,
        )
    if named:
        raise FileFormatError(
            f"{source} has no named columns, got the name {named[0]!r}; leave it out, or use "
            ".npz, .parquet or .csv"
        )
    if suffix == ".npy":
        return EmbeddingFile(load_npy(source), None, None, source)
    found, found_labels = read_pickle_arrays(source)
    return EmbeddingFile(found, None, found_labels, source)


def _warn_of_repeated_ids(file: EmbeddingFile) -> None:
    if file.ids is None or file.ids.ndim != 1:
        return
    ids = file.ids.tolist()
    n_distinct = len(set(ids))
    if n_distinct == len(ids):
        return
    example, count = Counter(ids).most_common(1)[0]
    warnings.warn(
        f"{file.source} repeats ids: {len(ids) - n_distinct:,} of {len(ids):,} rows have the id "
        f"of an earlier row ({example!r} occurs {count:,} times), expected a different id for each "
        "embedding. All rows are kept, but matching by id is ambiguous; give each row its own id, "
        "or name another column (ids=… in Python, --id-column).",
        stacklevel=3,
    )


def read_labels(
    path: str | Path,
    *,
    column: str | None = None,
    n_rows: int | None = None,
    ids: AnyArray | None = None,
    id_column: str | None = None,
    may_miss: bool = False,
    tell: Callable[[str], None] | None = None,
) -> AnyArray:
    """Read one label for each embedding.

    Parameters
    ----------
    path : str or Path
        ``.npy``, ``.npz``, ``.parquet``, ``.pkl`` of ``(features, labels)``, ``.csv`` and ``.tsv``
        with or without a header, or ``.txt`` with one label in each line.
    column : str, optional
        Name of the array or column, if it is not the default one.
    n_rows : int, optional
        Number of embeddings.
    ids : ndarray of shape (n_rows,), optional
        Ids of the embeddings. If the file has them too, in the column ``id`` or another one that
        holds all of them, labels are matched by id, else by order.
    id_column : str, optional
        Name of the array or column of ids in the file.
    may_miss : bool
        Whether an id may have no label; it gets None.
    tell : callable, optional
        Is given one line that says how labels were matched.

    Returns
    -------
    labels : ndarray of shape (n_rows,)
        As in the file; see :func:`hilander.embeddings.labels.encode_labels`.

    Raises
    ------
    FileFormatError
        When the file is missing, damaged, of another format, or without the column.
    LabelError
        When the number of labels is not that of the embeddings, or an id has no label.
    """
    source = _existing(path, LABEL_SUFFIXES)
    n_rows = len(ids) if ids is not None and n_rows is None else n_rows
    if id_column is not None and ids is None:
        raise LabelError(
            f"{source}: ids were named ({id_column!r}), but the embeddings have none to match them "
            "with; name theirs with --id-column"
        )
    labels, own_ids, name = _labels_and_ids(source, column, n_rows, ids, id_column)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise FileFormatError(
            f"{source} holds labels of shape {labels.shape}, expected one column; "
            "name the array of labels"
        )
    tell = tell or (lambda _: None)
    if ids is not None and own_ids is not None:
        tell(f"labels matched by id{f' (column {name} of {source.name})' if name else ''}")
        return join_by_id(source, labels, own_ids, ids, may_miss=may_miss)
    if n_rows is not None and len(labels) != n_rows:
        raise LabelError(
            f"{source}: got {len(labels)} labels for {n_rows} embeddings, expected one each; "
            "check that both files belong together"
        )
    whose = source.name if ids is not None else "the input"
    tell(f"labels matched by row order: {whose} has no ids")
    if n_rows is not None and own_ids is not None and not _are_row_numbers(own_ids):
        warnings.warn(
            f"{source} has ids, but the embeddings have none: labels are matched by order. If the "
            "order differs, give the embeddings the same ids.",
            stacklevel=2,
        )
    return labels


def _are_row_numbers(ids: AnyArray) -> bool:
    """Whether ids are the row numbers from 0, so that matching by order is the same."""
    return np.array_equal(ids.astype(str), np.arange(len(ids)).astype(str))


def write_table(path: str | Path, columns: Mapping[str, AnyArray]) -> None:
    """Write columns as a Parquet or CSV file, atomically.

    Parameters
    ----------
    path : str or Path
        Ends in ``.parquet`` or ``.csv``.
    columns : mapping of str to ndarray of shape (n_rows,)
        Parquet takes arrays of shape (n_rows, n_features) too, as fixed-size lists.

    Raises
    ------
    OutputError
        When the path cannot be written, or the format cannot hold the columns.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise OutputError(f"{target} {_unknown(suffix, TABLE_SUFFIXES)}")
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    widest = 2 if suffix == ".parquet" else 1
    lengths = {len(values) if values.ndim else -1 for values in arrays.values()}
    if len(lengths) != 1 or any(not 1 <= values.ndim <= widest for values in arrays.values()):
        shapes = ", ".join(f"{name} {values.shape}" for name, values in arrays.items())
        raise OutputError(
            f"{target} cannot hold columns of shapes {shapes or '(none)'}, expected one length "
            f"and {widest} dimension(s) at most; use Parquet for vectors"
        )
    with write_atomically(target) as temporary:
        if suffix == ".parquet":
            _write_parquet(temporary, arrays)
        else:
            with temporary.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, lineterminator="\n")
                writer.writerow(arrays)
                writer.writerows(zip(*(values.tolist() for values in arrays.values()), strict=True))


def _write_parquet(path: Path, arrays: Mapping[str, AnyArray]) -> None:
    import pyarrow
    import pyarrow.parquet

    columns = {}
    for name, values in arrays.items():
        flat = pyarrow.array(np.ascontiguousarray(values).reshape(-1))
        if values.ndim == 2:
            flat = pyarrow.FixedSizeListArray.from_arrays(flat, values.shape[1])
        columns[name] = flat
    with path.open("wb") as stream:  # opened here: pyarrow takes names in UTF-8 only
        pyarrow.parquet.write_table(pyarrow.table(columns), stream)


def _labels_and_ids(
    source: Path,
    column: str | None,
    n_rows: int | None,
    ids: AnyArray | None,
    id_column: str | None,
) -> tuple[AnyArray, AnyArray | None, str]:
    """Labels, their ids if there are any, and the name of the column of these."""
    suffix = source.suffix.lower()
    if suffix in (".csv", ".tsv", ".txt"):
        return read_text_labels(source, column, n_rows, ids=ids, id_column=id_column)
    own_ids, name = None, ""
    if suffix == ".parquet":
        labels = read_parquet_column(source, column, _TABLE_LABELS, may_be_null=True)
        if ids is not None:
            own_ids, name = read_parquet_ids(source, id_column, ids, column)
    elif suffix == ".npz":
        arrays = load_npz(source)
        labels = _pick(source, arrays, column, _LABEL_KEYS)
        own_ids, name = _pick(source, arrays, id_column, ID_COLUMNS), id_column or ""
        if own_ids is None and ids is not None and labels is not None:
            others = {key: one.tolist() for key, one in arrays.items() if one.shape == labels.shape}
            name = find_id_column(others, ids) or ""
            own_ids = arrays[name] if name else None
    elif suffix == ".npy":
        labels = load_npy(source)
    else:
        labels = read_pickle_arrays(source)[1]
    if labels is None:
        raise FileFormatError(
            f"{source} has no labels, expected a column or array named label or labels; "
            "name it (column=… in Python, --labels-column)"
        )
    return np.asarray(labels), own_ids, name


def _existing(path: str | Path, suffixes: Sequence[str]) -> Path:
    source = Path(path)
    if source.is_dir():
        raise FileFormatError(f"{source} is a folder, expected a file; name a file inside it")
    if not source.exists():
        raise MissingFileError(f"{source} does not exist, expected a file; check the path")
    if not source.is_file():  # reading a pipe would wait for a writer
        raise FileFormatError(
            f"{source} is a pipe or a device, expected a file; write its content to a file first"
        )
    if source.suffix.lower() not in suffixes:
        raise FileFormatError(f"{source} {_unknown(source.suffix, suffixes)}")
    return source


def _unknown(suffix: str, suffixes: Sequence[str]) -> str:
    close = difflib.get_close_matches(suffix.lower(), suffixes, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return (
        f"has the suffix {suffix or '(none)'!r}, expected one of {', '.join(suffixes)}; "
        f"{hint}convert or rename it"
    )


def _pick(
    source: Path, arrays: Mapping[str, AnyArray], name: str | None, defaults: Sequence[str]
) -> AnyArray | None:
    if name is None:
        return next((arrays[key] for key in defaults if key in arrays), None)
    if name not in arrays:
        raise FileFormatError(
            f"{source} has no array {name!r}, it has {', '.join(arrays) or 'none'}; "
            "name one of these"
        )
    return arrays[name]


def _pick_features(source: Path, arrays: Mapping[str, AnyArray], name: str | None) -> AnyArray:
    found = _pick(source, arrays, name, _FEATURE_KEYS)
    if found is not None:
        return found
    matrices = [key for key, array in arrays.items() if array.ndim == 2]
    if len(matrices) != 1:
        raise FileFormatError(
            f"{source} has {len(matrices)} two-dimensional arrays (its arrays: "
            f"{', '.join(arrays) or 'none'}), expected features, embeddings, X or only one; "
            "name it (features=… in Python, --features-column)"
        )
    return arrays[matrices[0]]
