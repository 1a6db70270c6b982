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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hilander.arrays.rows import IntArray
from hilander.errors import FileFormatError, OutputError
from hilander.explorer.review_log.state import Event
from hilander.io.output_errors import output_errors
from hilander.io.stored_json import check_schema

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


class DamagedReviewError(FileFormatError):
    """The database of a review is damaged, or is none."""


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
            self._check_pages()
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._check_format()
        except sqlite3.OperationalError as error:
            raise OutputError(
                f"{path} cannot be opened ({error}); close what uses it, or choose another place "
                "with --state"
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise self._damaged(error) from error
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
        with self._reading():
            labels = np.frombuffer(zlib.decompress(row[4]), dtype=np.int32).astype(np.int64)
            ids = check_schema(json.loads(zlib.decompress(row[3])), list[str], self.path)
            if len(ids) != len(labels):
                raise ValueError(f"{len(ids)} ids for {len(labels)} labels")
            return Base(int(row[0]), str(row[1]), int(row[2]), ids, labels)

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
        with self._lock, self._reading():
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
        with self._lock, self._reading():
            row = self._db.execute("SELECT conflicts FROM bases WHERE id = ?", (base,)).fetchone()
            found = [] if row is None else json.loads(row[0])
            return list(check_schema(found, list[dict[str, Any]], self.path))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what a damaged row raises into a DamagedReviewError."""
        try:
            yield
        except (sqlite3.DatabaseError, zlib.error, ValueError, TypeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DamagedReviewError:
        return DamagedReviewError(
            f"{self.path} is not a review database or is damaged ({error}); move it away to start "
            "again"
        )

    def _check_pages(self) -> None:
        found = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)

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
    payload = json.loads(zlib.decompress(row[2]))
    if not isinstance(payload, dict):
        raise ValueError(f"action {row[0]} is {payload!r:.40}")
    return Event(int(row[0]), str(row[1]), payload, str(row[3]))


def set_aside(path: Path) -> Path:
    """Rename a damaged review, so that another one can be started; nothing is lost.

    Parameters
    ----------
    path : Path
        The database. The files that SQLite keeps beside it are renamed too.

    Returns
    -------
    aside : Path
        The new name, ``review-damaged-<time>.sqlite``.
    """
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S-%f")
    aside = path.with_name(f"{path.stem}-damaged-{stamp}{path.suffix}")
    with output_errors(path):
        for ending in ("-wal", "-shm", ""):
            part = path.with_name(path.name + ending)
            if part.exists():
                part.rename(aside.with_name(aside.name + ending))
    return aside


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
