"""Back up a review: keep its one file complete, and copy it while the explorer runs.

SQLite writes new actions to a write-ahead log beside the file first. Until a checkpoint copies them
into the file, a copy of the file alone would lack them.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from hilander.errors import FileFormatError, MissingFileError, OutputError
from hilander.explorer.review_log.store import ReviewStore
from hilander.io.writing import write_atomically

# Seconds between two checkpoints: what a copy of the file alone can lack.
CHECKPOINT_SECONDS = 20.0


class Checkpoints:
    """Checkpoints of a store, one every few seconds, until they are stopped.

    Parameters
    ----------
    store : ReviewStore
    seconds : float
    """

    def __init__(self, store: ReviewStore, seconds: float = CHECKPOINT_SECONDS) -> None:
        self.store = store
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(seconds,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, make a last checkpoint, and close the store."""
        self._stopped.set()
        self._thread.join()
        self.store.close()

    def _run(self, seconds: float) -> None:
        while not self._stopped.wait(seconds):
            self.store.checkpoint()


def back_up_review(source: Path, target: Path) -> int:
    """Copy a review into one complete file, also while an explorer writes to it.

    Parameters
    ----------
    source : Path
        The database of a review.
    target : Path
        A file that does not exist.

    Returns
    -------
    n_events : int
        Number of actions in the copy.
    """
    if not source.is_file():
        raise MissingFileError(f"{source} does not exist, expected the review of a run")
    if target.exists():
        raise OutputError(f"{target} exists; choose another name for the backup")
    with write_atomically(target) as temporary:
        try:
            with (
                closing(sqlite3.connect(source)) as read,
                closing(sqlite3.connect(temporary)) as written,
            ):
                read.backup(written)
                written.execute("PRAGMA journal_mode=DELETE")
                found = written.execute("SELECT COUNT(*) FROM events").fetchone()
        except sqlite3.DatabaseError as error:
            raise FileFormatError(f"{source} is not a review or is damaged ({error})") from error
    return int(found[0])
