"""JSON that hilander stored, read and checked against a schema in one place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from hilander.errors import FileFormatError, MissingFileError


def read_json(path: str | Path, schema: Any = Any) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path : str or Path
    schema : type, optional
        What the content must be, as msgspec reads types: a class of `msgspec.Struct` for an object,
        ``list[dict]``, and so on. Keys that a class does not name are allowed.

    Returns
    -------
    content : object
        Plain values: dicts, lists, numbers and text, whatever the schema.

    Raises
    ------
    FileFormatError
        When the file is missing, unreadable, damaged, or of another schema.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingFileError(f"{path} does not exist, expected a JSON file") from error
    except OSError as error:
        reason = error.strerror or error
        raise FileFormatError(f"{path} cannot be read ({reason}), expected a JSON file") from error
    except (ValueError, RecursionError) as error:
        raise FileFormatError(
            f"{path} is damaged ({error}), expected JSON; restore it or write it again"
        ) from error
    return check_schema(content, schema, path)


def check_schema(content: Any, schema: Any, source: str | Path) -> Any:
    """Give plain values back if they are as a schema says.

    Parameters
    ----------
    content : object
        As `json.loads` gives it.
    schema : type
        As in `read_json`.
    source : str or Path
        Where the content is from, for the error.

    Raises
    ------
    FileFormatError
        When they are not; the message names the place and the expected type.
    """
    if schema is Any:
        return content
    try:
        msgspec.convert(content, schema)
    except (msgspec.ValidationError, RecursionError) as error:
        raise FileFormatError(
            f"{source} does not hold what it should ({error}); restore it or write it again"
        ) from error
    return content
