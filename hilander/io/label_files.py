"""Labels from text files, and labels matched to embeddings by id."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError, LabelError
from hilander.io.separators import find_separator, read_first_line, usual_separator

AnyArray = npt.NDArray[Any]

ID_COLUMNS = ("id", "ids")  # as every kind of file names them
LABEL_COLUMNS = ("label", "labels")
_LABEL_WORDS = (*LABEL_COLUMNS, "y", "identity", "class", "cluster")


def read_text_labels(
    source: Path, column: str | None, n_rows: int | None, *, has_ids: bool
) -> tuple[AnyArray, AnyArray | None]:
    """Read labels, and ids if there are any, from a ``.csv``, ``.tsv`` or ``.txt`` file.

    Cells are separated by a comma, or a tab in ``.tsv``; where a first line names the columns, by
    what separates these. The first line is a header when ``column`` is named, when it holds a usual
    name (id, label, ...), when there is one line more than embeddings, or when it alone is not a
    whole number.

    Parameters
    ----------
    source : Path
    column : str, optional
        Name of the column of labels.
    n_rows : int, optional
        Number of embeddings.
    has_ids : bool
        Whether the embeddings have ids; then a file of two columns without header is id, label.

    Returns
    -------
    labels : ndarray of shape (n_lines,)
        int64 where all are plain whole numbers, else strings; "007" stays a string.
    ids : ndarray of shape (n_lines,), or None
    """
    rows = _read_rows(source, column)
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            raise FileFormatError(
                f"{source} row {number} has {len(row)} columns where row 0 has {width}, expected "
                "one number of columns; quote cells that hold the separator"
            )
    header = _header(rows, column, n_rows)
    body = rows[1:] if header else rows
    at = _label_position(source, header, width, column, has_ids=has_ids)
    labels = [row[at].strip() for row in body]
    if "" in labels:
        raise LabelError(
            f"{source}: label of row {labels.index('')} is missing, expected one in each row; "
            "drop that row or fill it"
        )
    ids_at = _id_position(header, width, at, has_ids=has_ids)
    ids = None if ids_at is None else np.array([row[ids_at].strip() for row in body])
    return as_numbers(labels), ids


def join_by_id(source: Path, labels: AnyArray, own_ids: AnyArray, ids: AnyArray) -> AnyArray:
    """Bring labels into the order of the embeddings.

    Parameters
    ----------
    source : Path
        Where the labels came from, for errors.
    labels, own_ids : ndarray of shape (n_labels,)
        Labels and their ids. More than are needed may be there.
    ids : ndarray of shape (n_samples,)
        Ids of the embeddings; compared by their text, so 7 matches "7".

    Returns
    -------
    labels : ndarray of shape (n_samples,)

    Raises
    ------
    LabelError
        When an id has no label or several different ones.
    """
    if len(labels) != len(own_ids):
        raise FileFormatError(
            f"{source} has {len(own_ids)} ids for {len(labels)} labels, expected one each; "
            "check how it was made"
        )
    row_of: dict[str, int] = {}
    for row, key in enumerate(map(str, own_ids.tolist())):
        first = row_of.setdefault(key, row)
        if labels[first] != labels[row]:
            raise LabelError(
                f"{source}: id {key} has the labels {labels[first]} and {labels[row]}, expected "
                "one; remove one of the rows"
            )
    keys = [str(key) for key in np.asarray(ids).tolist()]
    missing = [key for key in keys if key not in row_of]
    if missing:
        raise LabelError(
            f"{source}: id {missing[0]} has no label ({len(missing)} of {len(keys)} ids have "
            "none), expected one for each embedding; add them or drop those embeddings"
        )
    return labels[np.array([row_of[key] for key in keys], dtype=np.int64)]


def _read_rows(source: Path, column: str | None) -> list[list[str]]:
    try:
        with source.open(encoding="utf-8-sig", newline="") as stream:
            if source.suffix.lower() == ".txt":
                rows = [[line] for line in stream.read().splitlines() if line.strip()]
            else:
                lines = csv.reader(stream, delimiter=_find_separator(source, column))
                rows = [row for row in lines if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(
            f"{source} cannot be read as text ({error}), expected UTF-8 labels; "
            "convert it or give it its true suffix"
        ) from error
    if not rows:
        raise FileFormatError(f"{source} is empty, expected labels; check how it was made")
    if any("\0" in cell for cell in rows[0]):
        raise FileFormatError(f"{source} is no text file, expected UTF-8 labels; convert it")
    return rows


def _find_separator(source: Path, column: str | None) -> str:
    """Another one than usual only where it sets a name apart: labels may hold any character."""
    line = read_first_line(source)
    found, usual = find_separator(source, line), usual_separator(source)
    names = {cell.strip(' "').lower() for cell in line.split(found)}
    known = {*_LABEL_WORDS, *ID_COLUMNS, *([] if column is None else [column.lower()])}
    return found if names & known else usual


def _header(rows: list[list[str]], column: str | None, n_rows: int | None) -> list[str] | None:
    first = [cell.strip() for cell in rows[0]]
    if column is not None or any(cell.lower() in _LABEL_WORDS + ID_COLUMNS for cell in first):
        return first
    if len(rows) < 2 or len(rows) == n_rows:
        return None
    if n_rows is not None and len(rows) == n_rows + 1:
        return first
    rest_are_numbers = all(_is_whole(row[-1].strip()) for row in rows[1:])
    return first if rest_are_numbers and not first[-1].removeprefix("-").isdigit() else None


def _label_position(
    source: Path, header: list[str] | None, width: int, column: str | None, *, has_ids: bool
) -> int:
    if column is not None:
        if header is None or column not in header:
            raise FileFormatError(
                f"{source} has no column {column!r}, it has {', '.join(header or [])}; "
                "name one of these"
            )
        return header.index(column)
    lowered = [cell.lower() for cell in header or []]
    for word in _LABEL_WORDS:
        if word in lowered:
            return lowered.index(word)
    others = [at for at in range(width) if not lowered or lowered[at] not in ID_COLUMNS]
    if len(others) == 1:
        return others[0]
    if width == 2 and header is None and has_ids:
        return 1
    raise FileFormatError(
        f"{source} has {width} columns ({', '.join(header or ['no header'])}), expected one of "
        "labels; name the column (--labels-column)"
    )


def _id_position(header: list[str] | None, width: int, label: int, *, has_ids: bool) -> int | None:
    if header is None:
        return 0 if has_ids and width == 2 and label == 1 else None
    lowered = [cell.lower() for cell in header]
    return next((lowered.index(word) for word in ID_COLUMNS if word in lowered), None)


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


def as_numbers(labels: list[str]) -> AnyArray:
    """Texts as int64 where all are plain whole numbers, else as they are: "007" stays a text."""
    if all(_is_whole(label) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    return np.array(labels)
