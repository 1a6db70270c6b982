"""The items of a run: ids, true labels, further columns, paths of images."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hilander.arrays.rows import IntArray
from hilander.embeddings.labels import encode_labels
from hilander.errors import FileFormatError, MissingFileError
from hilander.hierarchy.run_extras import ITEMS_FILE
from hilander.hierarchy.storage import list_cluster_files
from hilander.io.writing import list_stored_files

LABEL_COLUMN = "label"
PATH_COLUMN = "path"
# Letters of a value that are shown; longer text is cut so that a page stays small.
_LONGEST_TEXT = 500


@dataclass(frozen=True, eq=False)
class Labels:
    """True identities, encoded.

    Parameters
    ----------
    codes : ndarray of shape (n_points,)
        Index into `names` for each point.
    names : ndarray of shape (n_identities,)
    """

    codes: IntArray
    names: npt.NDArray[Any]


class Items:
    """Ids, labels and further columns of the rows of a run.

    Parameters
    ----------
    ids : pyarrow array of n_points strings
    columns : dict of str to pyarrow array
        One value for each item.
    labels : array-like of shape (n_points,), optional
        True identities; replace the column ``label``.
    """

    def __init__(
        self, ids: Any, columns: dict[str, Any], labels: npt.NDArray[Any] | None = None
    ) -> None:
        self.ids = ids
        self.columns = columns
        self._given_labels = labels

    def __len__(self) -> int:
        return len(self.ids)

    def id_of(self, row: int) -> str:
        """Return the id of a row as text."""
        return str(self.ids[row].as_py())

    def ids_of(self, rows: IntArray) -> list[str]:
        """Return the ids of rows as text."""
        import pyarrow

        return [str(value) for value in self.ids.take(pyarrow.array(rows)).to_pylist()]

    def facts_of(self, row: int) -> dict[str, str]:
        """Return the further columns of a row as text, without empty values."""
        facts = {name: column[row].as_py() for name, column in self.columns.items()}
        return {
            name: str(value)[:_LONGEST_TEXT] for name, value in facts.items() if value is not None
        }

    def path_of(self, row: int) -> str | None:
        """Return the image path of a row: its value in the column ``path``, or else its id."""
        column = self.columns.get(PATH_COLUMN)
        return self.id_of(row) if column is None else column[row].as_py()

    @cached_property
    def labels(self) -> Labels | None:
        """True identities, if they are known."""
        given = self._given_labels
        if given is None and LABEL_COLUMN in self.columns:
            column = self.columns[LABEL_COLUMN]
            if column.null_count:
                return None
            given = np.asarray(column.to_numpy(zero_copy_only=False))
        return None if given is None else Labels(*encode_labels(given, len(self)))

    def label_of(self, row: int) -> str | None:
        """Return the true identity of a row as text, if it is known."""
        return None if self.labels is None else str(self.labels.names[self.labels.codes[row]])

    def find(self, text: str, limit: int) -> list[int]:
        """Find rows by id: an exact match first, then ids that contain the text in any case."""
        import pyarrow.compute as compute

        exact = compute.index(self.ids, text).as_py()
        found = [] if exact < 0 else [int(exact)]
        wanted = text.lower().encode()
        letters, starts = self._lowered
        place = letters.find(wanted) if wanted else -1
        while place >= 0 and len(found) < limit:
            row = int(np.searchsorted(starts, place, side="right")) - 1
            after = int(starts[row + 1])
            if place + len(wanted) <= after:  # the match lies within one id
                if row != exact:
                    found.append(row)
                place = after - 1
            place = letters.find(wanted, place + 1)
        return found[:limit]

    @cached_property
    def _lowered(self) -> tuple[bytes, IntArray]:
        """All ids in lower case as one text, and the offset of each: one search covers all ids."""
        import pyarrow
        import pyarrow.compute as compute

        lowered = compute.utf8_lower(self.ids).cast(pyarrow.large_string())
        letters = lowered.buffers()[2]
        lengths = np.asarray(compute.binary_length(lowered), dtype=np.int64)
        starts = np.concatenate(([0], np.cumsum(lengths)))
        return (b"" if letters is None else letters.to_pybytes()[: int(starts[-1])]), starts

    @cached_property
    def row_by_id(self) -> dict[str, int]:
        """Row of each id."""
        return {str(value): row for row, value in enumerate(self.ids.to_pylist())}


def read_items(folder: Path, n_points: int, labels: npt.NDArray[Any] | None = None) -> Items:
    """Read the ids and further columns of a run folder.

    Parameters
    ----------
    folder : Path
    n_points : int
        Number of points of the hierarchy; the files must agree.
    labels : ndarray of shape (n_points,), optional
        True identities given by the user.
    """
    files = list_stored_files(folder)
    ids = _read_ids(list_cluster_files(files), n_points)
    extra = files.check(ITEMS_FILE)
    columns = _read(extra, None, n_points) if extra.is_file() else {}
    columns.pop("id", None)
    return Items(ids, columns, labels)


def _read_ids(paths: list[Path], n_points: int) -> Any:
    """Ids of all points; those of a run over shards are in several files."""
    if len(paths) == 1:
        return _read(paths[0], ["id"], n_points)["id"]
    import pyarrow

    parts = [_read(path, ["id"], None)["id"] for path in paths]
    if sum(map(len, parts)) != n_points:
        raise FileFormatError(
            f"{paths[0].parent} has {sum(map(len, parts))} rows, expected {n_points}; "
            "run `hilander cluster` again"
        )
    return pyarrow.concat_arrays(parts)


def _read(path: Path, names: list[str] | None, n_points: int | None) -> dict[str, Any]:
    import pyarrow
    import pyarrow.parquet

    try:
        with path.open("rb") as stream:
            table = pyarrow.parquet.ParquetFile(stream).read(columns=names)
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        if names is not None:
            columns = {name: column.cast(pyarrow.string()) for name, column in columns.items()}
        for column in columns.values():
            column.validate(full=True)  # text may hold bytes that are not UTF-8
    except FileNotFoundError:
        raise MissingFileError(f"{path} does not exist; run `hilander cluster` again") from None
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileFormatError(
            f"{path} is damaged ({reason}); run `hilander cluster` again"
        ) from error
    missing = [name for name in names or () if name not in columns]
    if missing or (n_points is not None and table.num_rows != n_points):
        raise FileFormatError(
            f"{path} has {table.num_rows} rows and columns {', '.join(table.column_names)}, "
            f"expected {n_points} rows{' and ' + ', '.join(missing) if missing else ''}; "
            "run `hilander cluster` again"
        )
    return columns
