"""Write rows of embeddings to a Parquet file, a block at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import FloatArray
from hilander.embedders.protocol import Embedder
from hilander.io.item_columns import BOX_COLUMNS, PATH, PHOTO, SCORE, TEXT, item_metadata
from hilander.io.writing import write_atomically

EMBEDDING_COLUMN = "embedding"
_BLOCK_ROWS = 2048
# Columns besides id, embedding, embedder and embedder_version, by kind of embedder.
_COLUMNS: dict[str, dict[str, str]] = {
    "picture": {PATH: "string"},
    "face": {
        PATH: "string",
        PHOTO: "string",
        **dict.fromkeys(BOX_COLUMNS, "float32"),
        SCORE: "float32",
    },
    "text": {TEXT: "string"},
}


@dataclass(frozen=True, eq=False)
class Row:
    """One embedding.

    Attributes
    ----------
    id : str
    features : ndarray of shape (dim,)
    facts : mapping of str to value
        Further columns; those of `fact_columns`.
    """

    id: str
    features: FloatArray
    facts: Mapping[str, Any] = field(default_factory=dict)


def fact_columns(kind: str) -> tuple[str, ...]:
    """Columns that describe an item, for a kind of embedder."""
    return tuple(_COLUMNS[kind])


def write_rows(
    path: Path, rows: Iterable[Row], embedder: Embedder, folder: str | None = None
) -> int:
    """Write rows of embeddings, whole or not at all.

    Parameters
    ----------
    path : Path
        A Parquet file: ``id``, the columns of `fact_columns`, ``embedding`` (a list of float32 of
        fixed length), ``embedder`` and ``embedder_version``.
    rows : iterable of Row
    embedder : Embedder
    folder : str, optional
        Where the files named by ``path`` are.

    Returns
    -------
    n_rows : int
    """
    import pyarrow.parquet

    schema = _make_schema(embedder).with_metadata(item_metadata(folder, embedder.name))
    waiting, n_rows = iter(rows), 0
    with (
        write_atomically(path) as temporary,
        pyarrow.parquet.ParquetWriter(temporary, schema) as writer,
    ):
        while block := list(islice(waiting, _BLOCK_ROWS)):
            writer.write_table(_make_table(block, embedder, schema))
            n_rows += len(block)
    return n_rows


def _make_schema(embedder: Embedder) -> Any:
    import pyarrow

    named = pyarrow.string()
    return pyarrow.schema(
        {
            "id": pyarrow.string(),
            **{name: getattr(pyarrow, kind)() for name, kind in _COLUMNS[embedder.kind].items()},
            EMBEDDING_COLUMN: pyarrow.list_(pyarrow.float32(), embedder.dim),
            "embedder": named,
            "embedder_version": named,
        }
    )


def _make_table(block: list[Row], embedder: Embedder, schema: Any) -> Any:
    import pyarrow

    vectors = np.stack([row.features for row in block]).astype(np.float32)
    columns: dict[str, Any] = {
        "id": [row.id for row in block],
        EMBEDDING_COLUMN: pyarrow.FixedSizeListArray.from_arrays(
            pyarrow.array(vectors.reshape(-1)), embedder.dim
        ),
        "embedder": [embedder.name] * len(block),
        "embedder_version": [embedder.version] * len(block),
    }
    for name in _COLUMNS[embedder.kind]:
        columns[name] = [row.facts.get(name) for row in block]
    arrays = [
        value if name == EMBEDDING_COLUMN else pyarrow.array(value).cast(schema.field(name).type)
        for name, value in ((name, columns[name]) for name in schema.names)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=schema)
