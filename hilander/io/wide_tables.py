"""Read tables with one feature in each column, numbered: f0, f1, f2, … or 0, 1, 2, ….

pyarrow is imported inside the functions, so that ``import hilander.io`` stays quick.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import EmbeddingError, FileFormatError
from hilander.io.label_files import ID_COLUMNS, LABEL_COLUMNS, as_numbers
from hilander.io.separators import (
    find_separator,
    has_decimal_commas,
    is_decimal_comma,
    is_number,
    read_first_line,
)

AnyArray = npt.NDArray[Any]

_BLOCK_BYTES = 1 << 24  # bytes of text read at a time; a line has to fit
_MOST_SHOWN = 8  # column names in an error
_CERTAIN_HEADER = 4  # columns: a line 0, 1, 2 may be an embedding, a line 0, 1, 2, 3 is a header


@dataclass(frozen=True)
class _Layout:
    """The layout of a text table: places of columns, counted from 0."""

    names: list[str]
    separator: str
    n_skipped: int  # lines of the header
    features: list[int]
    ids: int | None
    labels: int | None


def find_numbered(
    path: Path, names: Sequence[str], is_number: Sequence[bool], prefix: str | None = None
) -> list[int]:
    """Find the numbered columns that hold the features.

    Their names are a common prefix, which may be empty, and consecutive numbers from 0 or 1 on.

    Parameters
    ----------
    path : Path
        For errors.
    names : sequence of str
    is_number : sequence of bool
        Whether each column holds numbers. A group of numbered columns with text only is ignored.
    prefix : str, optional
        Chooses one of several such groups.

    Returns
    -------
    places : list of int
        In the order of their numbers; empty if there are no such columns.

    Raises
    ------
    FileFormatError
        For several groups without a prefix to choose one, and for numbers with a gap.
    """
    groups = {
        one: columns
        for one, columns in _group(names).items()
        if any(is_number[at] for _, at in columns) and prefix in (None, one)
    }
    whole = {one: columns for one, columns in groups.items() if _find_gap(columns) is None}
    if len(whole) > 1:
        shown = ", ".join(f"{names[of[0][1]]} … {names[of[-1][1]]}" for of in whole.values())
        raise FileFormatError(
            f"{path} has several groups of numbered columns ({shown}), expected one; give the "
            "prefix of its columns (features=… in Python, --features-column)"
        )
    for columns in whole.values():
        return [at for _, at in columns]
    for one, columns in groups.items():
        place = _find_gap(columns) or 0
        _, at = columns[place]
        wanted = place + (columns[0][0] > 0)
        raise FileFormatError(
            f"{path} has a column {names[at]} where {one}{wanted} was expected: numbered columns "
            "of embeddings begin at 0 or 1 and have no gap; add or rename it"
        )
    return []


def fill_rows(rows: AnyArray, names: Sequence[str], columns: Sequence[Any], first: int) -> None:
    """Copy Arrow columns of numbers into the columns of a matrix.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Receives the values.
    names : sequence of n_features str
    columns : sequence of n_features pyarrow.Array of length n_rows
    first : int
        Number of the first row in errors.

    Raises
    ------
    EmbeddingError
        For a missing value.
    """
    for place, (name, column) in enumerate(zip(names, columns, strict=True)):
        if column.null_count:
            row = first + int(np.flatnonzero(np.asarray(column.is_null()))[0])
            raise EmbeddingError(
                f"column {name!r} row {row} is null, expected a number in each row; drop or fill "
                "that row"
            )
        rows[:, place] = column.to_numpy(zero_copy_only=False)


def read_text_table(
    path: Path, features: str | None = None, ids: str | None = None, labels: str | None = None
) -> tuple[AnyArray, AnyArray | None, AnyArray | None]:
    """Read embeddings from a ``.csv`` or ``.tsv`` file, one in each line.

    The separator is found in the first line: a comma, a semicolon, a tab, a bar (|) or, between
    numbers, a space.

    The first line is a header if it holds a word, or if it counts 0, 1, 2, … or 1, 2, 3, … as
    pandas writes it (with fewer than four columns, only if the next line is not all whole numbers).
    Without a header every column is a feature.

    Parameters
    ----------
    path : Path
    features : str, optional
        Prefix of the names of the feature columns.
    ids, labels : str, optional
        Names of columns; by default id or ids, and label or labels.

    Returns
    -------
    features : ndarray of shape (n_lines, n_features), float32
    ids, labels : ndarray of shape (n_lines,), or None
        int64 if all are plain whole numbers, else strings; "007" stays a string.

    Raises
    ------
    FileFormatError
        For lines of different lengths, cells without a number, and files without embeddings.
    """
    import pyarrow

    layout = _read_layout(path, features, ids, labels)
    blocks: list[AnyArray] = []
    texts: dict[int, list[str]] = {at: [] for at in (layout.ids, layout.labels) if at is not None}
    try:
        for batch in _stream(path, layout):
            block = np.empty((batch.num_rows, len(layout.features)), dtype=np.float32)
            columns = [batch.column(str(at)) for at in layout.features]
            fill_rows(block, [layout.names[at] for at in layout.features], columns, 0)
            blocks.append(block)
            for at, cells in texts.items():
                cells.extend(cell.strip() for cell in batch.column(str(at)).to_pylist())
        if any("" in cells for cells in texts.values()):
            raise EmbeddingError("an id or label is missing")
    except (EmbeddingError, pyarrow.ArrowException, OSError) as error:
        raise FileFormatError(_explain(path, layout, error)) from error
    found = {at: as_numbers(cells) for at, cells in texts.items()}
    own = [None if at is None else found[at] for at in (layout.ids, layout.labels)]
    return np.concatenate(blocks), own[0], own[1]


def show_names(names: Sequence[str]) -> str:
    """Names for an error, shortened if there are many."""
    if len(names) <= _MOST_SHOWN + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_SHOWN])}, … ({len(names)} in all)"


def _group(names: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
    """Numbers and places of the columns of each prefix that has several, sorted by number."""
    groups: dict[str, list[tuple[int, int]]] = {}
    for at, name in enumerate(names):
        match = re.fullmatch(r"(.*?)([0-9]{1,9})", name, flags=re.DOTALL)
        # 0.1 and 0.2 are not names, but cells of a line that is not a header.
        if match and (not match[1] or not is_number(name)):
            groups.setdefault(match[1], []).append((int(match[2]), at))
    return {prefix: sorted(columns) for prefix, columns in groups.items() if len(columns) > 1}


def _find_gap(columns: list[tuple[int, int]]) -> int | None:
    """Index of the first number that breaks the order 0, 1, 2, … or 1, 2, 3, …; None if none."""
    first = 1 if columns[0][0] else 0
    return next((at for at, (number, _) in enumerate(columns) if number != first + at), None)


def _stream(path: Path, layout: _Layout) -> Iterator[Any]:
    """The batches of the table; columns are named by their places."""
    import pyarrow
    import pyarrow.csv

    texts = [str(at) for at in (layout.ids, layout.labels) if at is not None]
    numbers = [str(at) for at in layout.features]
    types = dict.fromkeys(numbers, pyarrow.float32()) | dict.fromkeys(texts, pyarrow.string())
    with pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(
            column_names=[str(at) for at in range(len(layout.names))],
            skip_rows=layout.n_skipped,
            block_size=_BLOCK_BYTES,
        ),
        parse_options=pyarrow.csv.ParseOptions(delimiter=layout.separator),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[""]
        ),
    ) as batches:
        yield from batches


def _read_layout(path: Path, features: str | None, ids: str | None, labels: str | None) -> _Layout:
    separator = find_separator(path, read_first_line(path))
    first, second, n_lines = _first_lines(path, separator)
    named = [name for name in (features, ids, labels) if name is not None]
    if has_decimal_commas(first):
        raise FileFormatError(f"{path} line {n_lines} has {_with_comma(first)}")
    if not _is_header(first, second):
        if named:
            raise FileFormatError(
                f"{path} has no header (its first line is all numbers), got the name {named[0]!r}; "
                "leave it out, or write the names of the columns into a first line"
            )
        if len(first) < 2:
            raise FileFormatError(
                f"{path} has one column of numbers, expected an embedding in each line; is it a "
                "file of labels?"
            )
        names = [str(at) for at in range(len(first))]
        return _Layout(names, separator, 0, list(range(len(first))), None, None)
    if second is None:
        raise FileFormatError(
            f"{path} has no rows below its header, expected embeddings; check how it was made"
        )
    ids_at = _place(path, first, ids, ID_COLUMNS)
    labels_at = _place(path, first, labels, LABEL_COLUMNS)
    free = ["" if at in (ids_at, labels_at) else name for at, name in enumerate(first)]
    cells = [*second, *[""] * len(first)]  # a line that is too short is reported later
    are_numbers = [
        not cell or is_number(cell) or is_decimal_comma(cell) for cell in cells[: len(first)]
    ]
    found = find_numbered(path, free, are_numbers, features)
    if not found:
        raise FileFormatError(_no_features(path, first, features))
    return _Layout(first, separator, n_lines, found, ids_at, labels_at)


def _no_features(path: Path, names: list[str], prefix: str | None) -> str:
    wanted = "such as {0}0, {0}1, {0}2, …".format("f" if prefix is None else prefix)
    whole = ", separated by a comma, a semicolon, a tab or |" if len(names) == 1 else ""
    return (
        f"{path} has no columns of numbers {wanted} (its columns: {show_names(names)}), expected "
        f"embeddings in such columns{whole}; name them so in a first line, or omit the header if "
        "all columns are features"
    )


def _with_comma(cells: Sequence[str]) -> str:
    """Message about the first number with a decimal comma."""
    cell = next(cell.strip() for cell in cells if is_decimal_comma(cell))
    return f"the number {cell}, expected a decimal point; write {cell.replace(',', '.')}, and so on"


def _first_lines(path: Path, separator: str) -> tuple[list[str], list[str] | None, int]:
    """Cells of the first two non-empty lines, and the line at which the first of them ends."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, delimiter=separator)
            first = next((cells for cells in reader if cells), None)
            n_lines = reader.line_num
            second = next((cells for cells in reader if cells), None)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(_no_text(path, error)) from error
    if first is None:
        raise FileFormatError(f"{path} is empty, expected embeddings; check how it was made")
    if any("\0" in cell for cell in first):
        raise FileFormatError(_no_text(path, "it holds null bytes"))
    return [cell.strip() for cell in first], second, n_lines


def _is_header(cells: list[str], following: list[str] | None) -> bool:
    """Whether a line is a header: it holds a word, or counts from 0 or 1 as pandas writes it."""
    filled = [cell for cell in cells if cell]
    if not all(cell.isdecimal() for cell in filled):
        return any(not is_number(cell) for cell in filled)
    if len(filled) < 2 or _find_gap([(int(cell), 0) for cell in filled]) is not None:
        return False
    return len(filled) >= _CERTAIN_HEADER or not all(
        cell.isdecimal() for cell in following or ["0"]
    )


def _place(path: Path, names: list[str], name: str | None, defaults: Sequence[str]) -> int | None:
    if name is None:
        lowered = [one.lower() for one in names]
        return next((lowered.index(word) for word in defaults if word in lowered), None)
    if name not in names:
        raise FileFormatError(
            f"{path} has no column {name!r}, it has {show_names(names)}; name one of these"
        )
    return names.index(name)


def _explain(path: Path, layout: _Layout, error: Exception) -> str:
    """Message with the line that could not be read, which pyarrow does not report."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, delimiter=layout.separator)
            for cells in reader:
                if cells and reader.line_num > layout.n_skipped:
                    wrong = _find_wrong(cells, layout)
                    if wrong:
                        return f"{path} line {reader.line_num} {wrong}"
    except (OSError, UnicodeDecodeError, csv.Error) as other:
        return _no_text(path, other)
    return _no_text(path, error)


def _find_wrong(cells: list[str], layout: _Layout) -> str:
    """What is wrong with a line; "" if nothing is."""
    if len(cells) != len(layout.names):
        return (
            f"has {len(cells)} cells where the first line has {len(layout.names)}, expected one "
            "length; embed all rows with one model, and quote cells that hold the separator"
        )
    for at in (layout.ids, layout.labels):
        if at is not None and not cells[at].strip():
            return (
                f"has no value in column {layout.names[at]!r}, expected a value in each line; drop "
                "that line or fill it"
            )
    for at in layout.features:
        if is_decimal_comma(cells[at]):
            return f"has in column {layout.names[at]!r} {_with_comma([cells[at]])}"
        if not is_number(cells[at]):
            held = f"{cells[at]!r:.40}" if cells[at].strip() else "no value"
            return (
                f"has {held} in column {layout.names[at]!r}, expected a number; drop that line or "
                "fill it"
            )
    return ""


def _no_text(path: Path, reason: object) -> str:
    shown = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
    return (
        f"{path} cannot be read as a table ({shown}), expected lines of numbers in UTF-8; convert "
        "it or give it the right suffix"
    )
