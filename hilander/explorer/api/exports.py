"""Export a review: must-link and cannot-link pairs, and the corrected labels."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import numpy as np

from hilander.errors import SettingError
from hilander.explorer.session.explorer import Explorer

# Cluster number of junk in exported labels.
JUNK = -1
FORMATS = ("csv", "json", "parquet")
# A spreadsheet evaluates a cell that starts with one of these.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def export_pairs(explorer: Explorer, kind: str) -> bytes:
    """Return the must-link and cannot-link pairs as a file.

    The columns are ``id_a``, ``id_b`` and ``link``, which is must or cannot.
    """
    must, cannot = explorer.review.state.constraints()
    pairs = [(a, b, "must") for a, b in must] + [(a, b, "cannot") for a, b in cannot]
    name = explorer.run.items.id_of
    columns = {
        "id_a": [name(a) for a, _, _ in pairs],
        "id_b": [name(b) for _, b, _ in pairs],
        "link": [link for _, _, link in pairs],
    }
    return encode_columns(columns, kind)


def export_labels(explorer: Explorer, kind: str) -> bytes:
    """Return the corrected labels as a file.

    The columns are ``id``, ``cluster`` (-1 for junk) and ``name``.
    """
    state = explorer.review.state
    labels = state.labels.copy()
    if state.junk:
        labels[np.isin(labels, list(state.junk))] = JUNK
    names = [state.names.get(group, "") for group in state.labels.tolist()]
    ids = [str(value) for value in explorer.run.items.ids.to_pylist()]
    return encode_columns({"id": ids, "cluster": labels.tolist(), "name": names}, kind)


def encode_columns(columns: dict[str, list[Any]], kind: str) -> bytes:
    """Return columns as CSV, JSON (a list of objects) or Parquet."""
    rows = zip(*columns.values(), strict=True)
    if kind == "json":
        objects = [dict(zip(columns, row, strict=True)) for row in rows]
        return json.dumps(objects, ensure_ascii=False).encode()
    if kind == "csv":
        stream = io.StringIO(newline="")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_escape_formula(value) for value in row] for row in rows)
        return stream.getvalue().encode()
    if kind == "parquet":
        import pyarrow
        import pyarrow.parquet

        buffer = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
        return buffer.getvalue()
    raise SettingError(f"format {kind!r} is unknown; use one of {', '.join(FORMATS)}")


def _escape_formula(value: Any) -> Any:
    """Put a quote before text, but not before a number, that would be evaluated as a formula."""
    if not isinstance(value, str) or not value.startswith(_FORMULA_STARTS):
        return value
    return value if _NUMBER.fullmatch(value) else f"'{value}"
