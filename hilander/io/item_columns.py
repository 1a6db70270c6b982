"""Columns of a file of embeddings that describe its items, as ``hilander embed`` writes them.

A run keeps them, so that the explorer can show the picture, the face or the text of each row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATH, PHOTO, TEXT, SCORE = "path", "photo", "text", "score"
# Edges of a face in its photo, in pixels of the upright photo at full size.
BOX_COLUMNS = ("box_left", "box_top", "box_right", "box_bottom")
ITEM_COLUMNS = (PATH, PHOTO, *BOX_COLUMNS, SCORE, TEXT)
# Metadata of the file: the folder that the paths are relative to. Its presence says that the file
# was written by `hilander embed`.
_FOLDER_KEY = b"hilander.folder"
_EMBEDDER_KEY = b"hilander.embedder"


@dataclass(frozen=True, eq=False)
class DescribedItems:
    """What a file says about its items.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
    folder : Path, optional
        Where the files named by ``path`` are.
    embedder : str, optional
        Name of the embedder.
    """

    columns: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    embedder: str | None = None


def item_metadata(folder: str | None, embedder: str) -> dict[bytes, bytes]:
    """Metadata of a file of embeddings."""
    values = {_FOLDER_KEY: folder or "", _EMBEDDER_KEY: embedder}
    return {key: value.encode("utf-8", "backslashreplace") for key, value in values.items()}


def read_item_columns(path: Path) -> DescribedItems:
    """Read the columns that describe items; none of a file that `hilander embed` did not write.

    Parameters
    ----------
    path : Path
        Of any format.

    Returns
    -------
    items : DescribedItems
    """
    if path.suffix.lower() != ".parquet":
        return DescribedItems()
    import pyarrow.parquet

    # Opened here: pyarrow takes names in UTF-8 only.
    with path.open("rb") as stream, pyarrow.parquet.ParquetFile(stream) as file:
        metadata = file.schema_arrow.metadata or {}
        folder, embedder = (metadata.get(key) for key in (_FOLDER_KEY, _EMBEDDER_KEY))
        if folder is None:
            return DescribedItems()
        names = [name for name in ITEM_COLUMNS if name in file.schema_arrow.names]
        table = file.read(columns=names)
    columns = {name: table.column(name).to_numpy() for name in names}
    text = folder.decode("utf-8")
    name = None if embedder is None else embedder.decode("utf-8")
    return DescribedItems(columns, Path(text) if text else None, name)
