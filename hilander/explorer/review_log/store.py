"""The log of a review on disk: append-only, in SQLite.

Each action is one transaction and is acknowledged after it is on disk. A killed process therefore
loses no acknowledged action. The state of the review is the replay of the log.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import FileFormatError, OutputError
from hilander.explorer.review_log.state import Event

REVIEW_FILE = "review.sqlite"
CACHE_FOLDER = "cache"
# Version of the schema; a database with a higher one is refused.
_FORMAT = 1
# Seconds that a process waits for another one to finish writing.
_LOCK_SECONDS = 30
_SCHEMA = """
CREATE TABLE IF NOT EXISTS bases (
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    created TEXT NOT NULL,
    n_clusters INTEGER NOT NULL,
    ids BLOB NOT NULL,
    labels BLOB NOT NULL,
    conflicts TEXT NOT NULL DEFAULT '[]'
);
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    base INTEGER NOT NULL REFERENCES bases(id),
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    payload BLOB NOT NULL,
    client_key TEXT UNIQUE
);
"""


def state_folder(run_folder: str | Path) -> Path:
    """Return the folder of the review: beside the run, because the run may be rewritten."""
    path = Path(run_folder).resolve()
    return path.with_name(path.name + ".explorer")


@dataclass(frozen=True, eq=False)
class Base:
    """The clusters that a log starts from.

    Parameters
    ----------
    id : int
    fingerprint : str
        Fingerprint of the run.
    n_clusters : int
    ids : list of str
        Id of each point.
    labels : ndarray of shape (n_points,)
        Cluster of each point.
    """

    id: int
    fingerprint: str
    n_clusters: int
    ids: list[str]
    labels: IntArray


class ReviewStore:
    """The log of a review.

    Parameters
    ----------
    path : Path
        The database; created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=_LOCK_SECONDS
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._check_format()
        except sqlite3.DatabaseError as error:
            raise FileFormatError(
                f"{path} is not a review database or is damaged ({error}); move it away to start "
                "again"
            ) from error
        except OSError as error:
            raise OutputError(
                f"{path} cannot be written ({error.strerror or error}); choose another place "
                "with --state"
            ) from error

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database, so that its one file is complete."""
        with self._lock, contextlib.suppress(sqlite3.Error):  # another process is reading
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Make the file complete, and close the database."""
        with self._lock:
            self.checkpoint()
            self._db.close()

    def latest_base(self) -> Base | None:
        """Return the base of the latest log."""
        with self._lock:
            row = self._db.execute(
                "SELECT id, fingerprint, n_clusters, ids, labels FROM bases ORDER BY id DESC"
            ).fetchone()
        if row is None:
            return None
        try:
            labels = np.frombuffer(zlib.decompress(row[4]), dtype=np.int32).astype(np.int64)
            return Base(row[0], row[1], row[2], json.loads(zlib.decompress(row[3])), labels)
        except (zlib.error, ValueError) as error:
            raise FileFormatError(f"{self.path} is damaged ({error})") from error

    def latest_fingerprint(self) -> tuple[int, str] | None:
        """Return number and fingerprint of the latest base, without reading its points."""
        with self._lock:
            return self._db.execute(  # type: ignore[no-any-return]
                "SELECT id, fingerprint FROM bases ORDER BY id DESC"
            ).fetchone()

    def add_base(
        self,
        base: Base,
        events: Sequence[tuple[str, dict[str, Any]]] = (),
        conflicts: Sequence[dict[str, Any]] = (),
    ) -> int:
        """Start a new log with the actions that were carried over, in one transaction.

        If the latest log already has the same fingerprint, another process was faster. Its log is
        used and nothing is written.

        Returns
        -------
        id : int
            Number of the base to append to.
        """
        ids = zlib.compress(json.dumps(base.ids).encode(), 1)
        labels = zlib.compress(base.labels.astype(np.int32).tobytes(), 1)
        with self._lock, _Transaction(self._db):
            latest = self.latest_fingerprint()
            if latest is not None and latest[1] == base.fingerprint:
                return latest[0]
            cursor = self._db.execute(
                "INSERT INTO bases (fingerprint, created, n_clusters, ids, labels, conflicts) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (base.fingerprint, _now(), base.n_clusters, ids, labels, json.dumps(conflicts)),
            )
            number = int(cursor.lastrowid or 0)
            for kind, payload in events:
                self._insert(number, kind, payload, None)
        return number

    def append(
        self,
        base: int,
        kind: str,
        payload: dict[str, Any],
        client_key: str | None = None,
        after: int | None = None,
    ) -> Event | None:
        """Append one action; it is on disk when this returns.

        Parameters
        ----------
        base : int
        kind, payload
            As in `Event`.
        client_key : str, optional
            Identifies the request. If the log has an action with this key, it is returned and
            nothing is written.
        after : int, optional
            Number of the last event that the caller has read.

        Returns
        -------
        event : Event, or None
            None if the log has events after `after`: read them and try again.
        """
        with self._lock, _Transaction(self._db):
            if client_key is not None:
                before = self._db.execute(
                    "SELECT seq, kind, payload, at FROM events WHERE client_key = ?", (client_key,)
                ).fetchone()
                if before is not None:
                    return _event(before)
            if after is not None and self._last(base) != after:
                return None
            return self._insert(base, kind, payload, client_key)

    def events(self, base: int, after: int = 0) -> list[Event]:
        """Read the events of a base that follow event `after`."""
        with self._lock:
            rows = self._db.execute(
                "SELECT seq, kind, payload, at FROM events WHERE base = ? AND seq > ? ORDER BY seq",
                (base, after),
            ).fetchall()
        return [_event(row) for row in rows]

    def find_key(self, client_key: str) -> int | None:
        """Return the number of the event that a request wrote, if it was written."""
        with self._lock:
            row = self._db.execute(
                "SELECT seq FROM events WHERE client_key = ?", (client_key,)
            ).fetchone()
        return None if row is None else int(row[0])

    def conflicts(self, base: int) -> list[dict[str, Any]]:
        """Read the conflicts of a base: decisions that could not be carried over to it."""
        with self._lock:
            row = self._db.execute("SELECT conflicts FROM bases WHERE id = ?", (base,)).fetchone()
        return [] if row is None else list(json.loads(row[0]))

    def _last(self, base: int) -> int:
        row = self._db.execute("SELECT MAX(seq) FROM events WHERE base = ?", (base,)).fetchone()
        return int(row[0] or 0)

    def _insert(
        self, base: int, kind: str, payload: dict[str, Any], client_key: str | None
    ) -> Event:
        at = _now()
        body = zlib.compress(json.dumps(payload).encode())
        cursor = self._db.execute(
            "INSERT INTO events (base, at, kind, payload, client_key) VALUES (?, ?, ?, ?, ?)",
            (base, at, kind, body, client_key),
        )
        return Event(int(cursor.lastrowid or 0), kind, payload, at)

    def _check_format(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > _FORMAT:
            raise FileFormatError(
                f"{self.path} has format {version}, expected at most {_FORMAT}; it was written by "
                "a newer hilander: upgrade"
            )
        self._db.executescript(_SCHEMA)
        self._db.execute(f"PRAGMA user_version = {_FORMAT}")


class _Transaction:
    """BEGIN IMMEDIATE … COMMIT: a second process waits at the start instead of failing later."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def __enter__(self) -> None:
        self.db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        self.db.execute("COMMIT" if kind is None else "ROLLBACK")


def _event(row: tuple[int, str, bytes, str]) -> Event:
    return Event(int(row[0]), row[1], json.loads(zlib.decompress(row[2])), row[3])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
