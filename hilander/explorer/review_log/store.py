"""The user's work on disk: an append-only log in SQLite.

Each action is one transaction, acknowledged when it is on disk. A process that is killed loses
nothing that it acknowledged, for the log is all there is: the state is its replay.
"""

from __future__ import annotations

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
_FORMAT = 1
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
    """Where an explorer keeps the user's work: beside the run, which may be written anew."""
    path = Path(run_folder).resolve()
    return path.with_name(path.name + ".explorer")


@dataclass(frozen=True, eq=False)
class Base:
    """The clusters that a log started from.

    Parameters
    ----------
    id : int
    fingerprint : str
        Of the run.
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
    """The log of one explorer.

    Parameters
    ----------
    path : Path
        The database; made if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=30
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._check_format()
        except sqlite3.DatabaseError as error:
            raise FileFormatError(
                f"{path} is not a review database or is damaged ({error}); move it away to start "
                "afresh"
            ) from error
        except OSError as error:
            raise OutputError(
                f"{path} cannot be written ({error.strerror or error}); choose another place "
                "with --state"
            ) from error

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._db.close()

    def latest_base(self) -> Base | None:
        """Give the base that the log goes on from."""
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
        """Give number and fingerprint of the latest base, without its points."""
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
        """Start a new log, with the actions that were carried over, all or nothing.

        If the latest log is of the same clusters already, another explorer was quicker, and its
        log is the one to go on with.

        Returns
        -------
        id : int
            Of the base to write to.
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
        """Write one action; it is on disk when this returns.

        Parameters
        ----------
        base : int
        kind, payload
            As in `Event`.
        client_key : str, optional
            Names the request. An action with a key that is in the log already is not done twice.
        after : int, optional
            The last number that the caller knows of.

        Returns
        -------
        event : Event, or None
            None if the log went on after `after`: read what is new and decide again.
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
        """Read the log of a base, from an event on."""
        with self._lock:
            rows = self._db.execute(
                "SELECT seq, kind, payload, at FROM events WHERE base = ? AND seq > ? ORDER BY seq",
                (base, after),
            ).fetchall()
        return [_event(row) for row in rows]

    def find_key(self, client_key: str) -> int | None:
        """Give the number of the action that a request became, if it was done."""
        with self._lock:
            row = self._db.execute(
                "SELECT seq FROM events WHERE client_key = ?", (client_key,)
            ).fetchone()
        return None if row is None else int(row[0])

    def conflicts(self, base: int) -> list[dict[str, Any]]:
        """Read what could not be carried over to a base."""
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
    """BEGIN IMMEDIATE … COMMIT: a second process waits its turn instead of failing half-way."""

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
