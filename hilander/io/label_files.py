"""Read labels from text files, and match labels to embeddings by id."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.errors import FileFormatError, LabelError
from hilander.io.separators import default_separator, find_separator, read_first_line

AnyArray = npt.NDArray[Any]

ID_COLUMNS = ("id", "ids")  # default names, for every kind of file
LABEL_COLUMNS = ("label", "labels")
_LABEL_WORDS = (*LABEL_COLUMNS, "y", "identity", "class", "cluster")


def read_text_labels(
    source: Path,
    column: str | None,
    n_rows: int | None,
    *,
    ids: AnyArray | None,
    id_column: str | None = None,
) -> tuple[AnyArray, AnyArray | None, str]:
    """Read labels, and ids if there are any, from a ``.csv``, ``.tsv`` or ``.txt`` file.

    The separator is a comma, or a tab in ``.tsv``; if the first line has the names of the columns,
    it is the separator of these. The first line is a header if ``column`` is given, if it holds a
    default name (id, label, ...), if there is one line more than embeddings, or if it is the only
    line that is not a whole number.

    Parameters
    ----------
    source : Path
    column : str, optional
        Name of the column of labels.
    n_rows : int, optional
        Number of embeddings.
    ids : ndarray of shape (n_rows,), optional
        Ids of the embeddings. If there are any, the columns of a file of two columns without header
        are id and label, and a column that holds all of them has the ids.
    id_column : str, optional
        Name of the column of ids.

    Returns
    -------
    labels : ndarray of shape (n_lines,)
        int64 if all are plain whole numbers, else strings; "007" stays a string.
    own_ids : ndarray of shape (n_lines,), or None
    name : str
        Name of the column of ids; empty if it has none.
    """
    has_ids = ids is not None
    rows = _read_rows(source, column)
    width = len(rows[0])
    for number, row in enumerate(rows):
        if len(row) != width:
            raise FileFormatError(
                f"{source} row {number} has {len(row)} columns where row 0 has {width}, expected "
                "one number of columns; quote cells that hold the separator"
            )
    header = _header(rows, column or id_column, n_rows)
    body = rows[1:] if header else rows
    at = _label_position(source, header, width, column, has_ids=has_ids)
    labels = [row[at].strip() for row in body]
    if id_column is not None:
        ids_at: int | None = _named(source, header, id_column)
    else:
        ids_at = _id_position(header, width, at, has_ids=has_ids)
    if ids_at is None and header is not None and ids is not None:
        others = {
            name: [row[place].strip() for row in body]
            for place, name in enumerate(header)
            if place != at
        }
        found = find_id_column(others, ids)
        ids_at = None if found is None else header.index(found)
    if ids_at is None:
        return as_numbers(labels), None, ""
    own_ids = np.array([row[ids_at].strip() for row in body])
    return as_numbers(labels), own_ids, header[ids_at] if header is not None else ""


def find_id_column(columns: Mapping[str, Sequence[Any]], ids: AnyArray) -> str | None:
    """The only column that holds all ids of the embeddings; None if there is none or several.

    Parameters
    ----------
    columns : mapping of str to sequence
    ids : ndarray of shape (n_rows,)
    """
    wanted = {str(one) for one in np.asarray(ids).tolist()}
    found = [name for name, values in columns.items() if wanted <= {str(one) for one in values}]
    return found[0] if len(found) == 1 else None


def _named(source: Path, header: list[str] | None, name: str) -> int:
    if header is None or name not in header:
        raise FileFormatError(
            f"{source} has no column {name!r}, it has {', '.join(header or [])}; name one of these"
        )
    return header.index(name)


def join_by_id(
    source: Path, labels: AnyArray, own_ids: AnyArray, ids: AnyArray, *, may_miss: bool = False
) -> AnyArray:
    """Sort labels into the order of the embeddings, by id.

    Parameters
    ----------
    source : Path
        File of the labels, for errors.
    labels, own_ids : ndarray of shape (n_labels,)
        Labels and their ids. There may be more than there are embeddings.
    ids : ndarray of shape (n_samples,)
        Ids of the embeddings, compared as text, so 7 matches "7".
    may_miss : bool
        Whether an embedding may have no label; it gets None.

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
            f"{source} has {len(own_ids)} ids for {len(labels)} labels, expected one for each; "
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
    if missing and may_miss:
        known = np.array([*labels.tolist(), None], dtype=object)
        return known[[row_of.get(key, -1) for key in keys]]
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
            "convert it or give it the right suffix"
        ) from error
    if not rows:
        raise FileFormatError(f"{source} is empty, expected labels; check how it was made")
    if any("\0" in cell for cell in rows[0]):
        raise FileFormatError(f"{source} is not a text file, expected UTF-8 labels; convert it")
    return rows


def _find_separator(source: Path, column: str | None) -> str:
    """The separator of the first line if that has a known name; else the default.

    Labels may hold any character, so other lines do not show the separator.
    """
    line = read_first_line(source)
    found, default = find_separator(source, line), default_separator(source)
    names = {cell.strip(' "').lower() for cell in line.split(found)}
    known = {*_LABEL_WORDS, *ID_COLUMNS, *([] if column is None else [column.lower()])}
    return found if names & known else default


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
        return _named(source, header, column)
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
    """Texts as int64 if all are plain whole numbers, else as strings; "007" stays a string."""
    if all(_is_whole(label) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    return np.array(labels)
