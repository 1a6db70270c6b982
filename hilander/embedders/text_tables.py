"""Read texts from a column of a table: .csv, .tsv, .jsonl or .parquet, or the lines of a file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hilander.embedders.skipping import Skip
from hilander.errors import FileFormatError

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
TEXT_COLUMNS = ("text", "sentence", "sentences", "content", "title", "body", "message", "utterance")
ID_COLUMNS = ("id", "ids")
# A field of a CSV file may be a whole document.
_LONGEST_FIELD = 1 << 27


@dataclass
class TextTable:
    """Texts and their ids.

    Attributes
    ----------
    source : Path
    ids, texts : list of str
        As many of each.
    skips : list of Skip
        Rows without a text, by their id or number.
    """

    source: Path
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)


def read_texts(
    path: Path, text_column: str | None = None, id_column: str | None = None
) -> TextTable:
    """Read the texts of a table. A row without one is skipped.

    Parameters
    ----------
    path : Path
    text_column : str, optional
        By default one of `TEXT_COLUMNS`, or else the only column of text.
    id_column : str, optional
        By default ``id``; without one the ids are the numbers of the rows, from 0.

    Returns
    -------
    table : TextTable

    Raises
    ------
    FileFormatError
        When the file is damaged or has no such column.
    """
    table = TextTable(path)
    text_name = id_name = None
    for number, row in enumerate(_read_rows(path)):
        if isinstance(row, str):  # why the row cannot be read
            table.skips.append(Skip(str(number), row))
            continue
        if text_name is None:
            text_name = _choose_text(path, row, text_column)
            id_name = _choose_id(path, row, id_column)
        name = str(row.get(id_name)) if id_name and row.get(id_name) is not None else str(number)
        text = row.get(text_name)
        if not isinstance(text, str):
            reason = "has no text" if text is None else f"has {type(text).__name__}, expected text"
            table.skips.append(Skip(name, reason))
        elif not text.strip():
            table.skips.append(Skip(name, "has an empty text"))
        else:
            table.ids.append(name)
            table.texts.append(text)
    return table


def _read_rows(path: Path) -> Iterator[dict[str, Any] | str]:
    """Rows of a table by column; for one that cannot be read, the reason."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            yield from _read_parquet(path)
        elif suffix in (".jsonl", ".ndjson"):
            yield from _read_json_lines(path)
        elif suffix in (".csv", ".tsv"):
            yield from _read_csv(path, "\t" if suffix == ".tsv" else ",")
        else:
            with path.open(encoding="utf-8-sig", errors="replace") as stream:
                yield from ({"text": line.rstrip("\n")} for line in stream)
    except OSError as error:
        reason = error.strerror or error
        raise FileFormatError(f"{path} cannot be read ({reason}), expected a table") from error


def _read_csv(path: Path, separator: str) -> Iterator[dict[str, Any] | str]:
    former = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            reader = csv.reader(stream, delimiter=separator)
            header = next(reader, None)
            if header is None:
                raise FileFormatError(f"{path} is empty, expected a header and rows; check it")
            for values in reader:
                if not values:
                    continue
                if len(values) != len(header):
                    yield f"has {len(values)} fields, expected {len(header)}"
                else:
                    yield dict(zip(header, values, strict=True))
    except csv.Error as error:
        raise FileFormatError(f"{path} is damaged ({error}), expected a table; fix it") from error
    finally:
        csv.field_size_limit(former)


def _read_json_lines(path: Path) -> Iterator[dict[str, Any] | str]:
    with path.open(encoding="utf-8-sig", errors="replace") as stream:
        for line in stream:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield f"is not JSON: {error}"
                continue
            yield row if isinstance(row, dict) else f"is {type(row).__name__}, expected an object"


def _read_parquet(path: Path) -> Iterator[dict[str, Any] | str]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            kept = [one.name for one in file.schema_arrow if not pyarrow.types.is_nested(one.type)]
            for batch in file.iter_batches(columns=kept):
                yield from batch.to_pylist()
    except pyarrow.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise FileFormatError(
            f"{path} is damaged or not a Parquet file ({reason}), expected Parquet; write it again"
        ) from error


def _choose_text(path: Path, row: dict[str, Any], asked: str | None) -> str:
    names = list(row)
    if asked is not None:
        if asked not in row:
            raise FileFormatError(_no_column(path, asked, names))
        return asked
    named = next((name for name in TEXT_COLUMNS if name in row), None)
    if named is not None:
        return named
    texts = [name for name in names if isinstance(row[name], str) and name not in ID_COLUMNS]
    if len(texts) == 1:
        return texts[0]
    raise FileFormatError(
        f"{path} has the columns {', '.join(names)}, expected one named {TEXT_COLUMNS[0]}; name "
        "the column of texts with --text-column"
    )


def _choose_id(path: Path, row: dict[str, Any], asked: str | None) -> str | None:
    if asked is not None and asked not in row:
        raise FileFormatError(_no_column(path, asked, list(row)))
    return asked or next((name for name in ID_COLUMNS if name in row), None)


def _no_column(path: Path, asked: str, names: list[str]) -> str:
    return f"{path} has no column {asked!r}, it has {', '.join(names)}; name one of these"
