"""Embeddings by content, in one SQLite file: a second run embeds only what is new.

A file is known by the SHA-256 of its content, so it may be renamed, moved or copied. To avoid
reading every file again, its digest is also kept by path, size, time of change and number. A result
is stored with the name and version of its embedder. A run that is killed keeps what it has
committed.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hilander.arrays.rows import FloatArray
from hilander.embedders.protocol import Embedder
from hilander.errors import FileFormatError, OutputError

CACHE_FILE = "cache.sqlite"
_FORMAT = 1
_WAIT_SECONDS = 60.0
_TABLES = """
CREATE TABLE IF NOT EXISTS files (
    path BLOB PRIMARY KEY, size INTEGER, changed INTEGER, number INTEGER, digest BLOB
);
CREATE TABLE IF NOT EXISTS results (
    embedder TEXT, digest BLOB, n_pieces INTEGER, vectors BLOB, facts TEXT, reason TEXT,
    PRIMARY KEY (embedder, digest)
);
"""


@dataclass(frozen=True, eq=False)
class Result:
    """What an embedder gave for one content.

    Attributes
    ----------
    features : ndarray of shape (n_pieces, dim), float32
    facts : sequence of mapping of str to float
        One for each piece.
    reason : str, optional
        Why there is no embedding.
    """

    features: FloatArray
    facts: Sequence[Mapping[str, float]] = field(default_factory=list)
    reason: str | None = None


def cache_key(embedder: Embedder) -> str:
    """What the results of an embedder are stored under."""
    return f"{embedder.name} {embedder.version}"


class EmbeddingCache:
    """Results by content. Use it as a context manager.

    Parameters
    ----------
    folder : Path
        Its parents are created too.
    embedder : str
        As `cache_key` gives it.
    read_only : bool
        For worker processes.
    """

    def __init__(self, folder: Path, embedder: str, *, read_only: bool = False) -> None:
        self.path = folder / CACHE_FILE
        self.embedder = embedder
        with _explain(self.path):
            if read_only:
                address = f"{self.path.absolute().as_uri()}?mode=ro"
                self._db = sqlite3.connect(address, timeout=_WAIT_SECONDS, uri=True)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                self._db = sqlite3.connect(self.path, timeout=_WAIT_SECONDS)
                self._open()

    def __enter__(self) -> EmbeddingCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. What was not committed is lost."""
        self._db.close()

    def commit(self) -> None:
        """Keep what was added: it survives a kill from here on."""
        with _explain(self.path):
            self._db.commit()

    def digest_of(self, path: str, facts: tuple[int, int, int]) -> bytes | None:
        """Digest of a file that has not changed since it was read, or None."""
        with _explain(self.path):
            row = self._db.execute(
                "SELECT digest FROM files WHERE path=? AND size=? AND changed=? AND number=?",
                (os.fsencode(path), *facts),
            ).fetchone()
        return None if row is None else row[0]

    def add_file(self, path: str, facts: tuple[int, int, int], digest: bytes) -> None:
        """Note the digest of a file."""
        with _explain(self.path):
            self._db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)",
                (os.fsencode(path), *facts, digest),
            )

    def has(self, digest: bytes) -> bool:
        """Whether there is a result for a content."""
        with _explain(self.path):
            found = self._db.execute(
                "SELECT 1 FROM results WHERE embedder=? AND digest=?", (self.embedder, digest)
            ).fetchone()
        return found is not None

    def add(self, digest: bytes, result: Result) -> None:
        """Add the result of a content."""
        vectors = np.ascontiguousarray(result.features, dtype="<f4")
        row = (
            self.embedder,
            digest,
            len(vectors),
            vectors.tobytes(),
            json.dumps([dict(one) for one in result.facts]),
            result.reason,
        )
        with _explain(self.path):
            self._db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?)", row)

    def get(self, digest: bytes) -> Result | None:
        """Give the result of a content, or None."""
        with _explain(self.path):
            row = self._db.execute(
                "SELECT n_pieces, vectors, facts, reason FROM results "
                "WHERE embedder=? AND digest=?",
                (self.embedder, digest),
            ).fetchone()
        if row is None:
            return None
        n_pieces, vectors, facts, reason = row
        features = np.frombuffer(vectors, "<f4").reshape(n_pieces, -1 if n_pieces else 0)
        return Result(features, json.loads(facts), reason)

    def _open(self) -> None:
        """Create the tables. Readers do not wait for the writer (WAL)."""
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _FORMAT):
            raise FileFormatError(
                f"{self.path} has format {version}, expected {_FORMAT}; it was written by another "
                "version of hilander: delete it"
            )
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_TABLES)
        self._db.execute(f"PRAGMA user_version={_FORMAT}")
        self._db.commit()


@contextmanager
def _explain(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into errors that say what to do."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        raise OutputError(
            f"{path} cannot be written ({error}), expected a writable file; free some space, or "
            "write elsewhere with --cache"
        ) from error
    except sqlite3.DatabaseError as error:
        raise FileFormatError(
            f"{path} is damaged ({error}), expected the cache of an earlier run; delete it"
        ) from error
