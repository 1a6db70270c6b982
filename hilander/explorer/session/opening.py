"""Open a run folder together with its review."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hilander.errors import OutputError
from hilander.explorer.review_log.store import (
    CACHE_FOLDER,
    REVIEW_FILE,
    DamagedReviewError,
    ReviewStore,
    set_aside,
    state_folder,
)
from hilander.explorer.run.run_folder import Attachments, Run, open_run
from hilander.explorer.session.explorer import Explorer
from hilander.io.writing import write_json

_STATE_NOTE = {
    "review.sqlite": "your review; keep it",
    "review.sqlite-wal": "its last actions while the explorer runs; `hilander backup` copies both",
    "cache": "can be deleted",
}


def open_explorer(
    folder: Path,
    attachments: Attachments | None = None,
    state: Path | None = None,
    compare: Iterable[Path] = (),
) -> Explorer:
    """Open a run with the user's review of it.

    Parameters
    ----------
    folder : Path
        The run.
    attachments : Attachments, optional
    state : Path, optional
        Folder of the review and the cache; by default beside the run.
    compare : iterable of Path
        Other runs to compare with.
    """
    target = state or state_folder(folder)
    cache = target / CACHE_FOLDER
    run = open_run(folder, attachments, cache / "thumbnails")
    try:
        _write_state_note(target)
    except OSError as error:
        raise OutputError(
            f"{target} cannot be written ({error.strerror or error}); choose another place with "
            "--state"
        ) from error
    others: dict[str, Run] = {}
    for path in compare:
        other = open_run(path)
        name = other.name if other.name not in others else str(path)
        others[name] = other
    review = target / REVIEW_FILE
    try:
        return Explorer(run, ReviewStore(review), others, cache)
    except DamagedReviewError as error:
        note = f"{error}. It is set aside as {set_aside(review)}, and a new review is started."
    warnings.warn(note, stacklevel=2)
    return Explorer(replace(run, notes=(*run.notes, note)), ReviewStore(review), others, cache)


def _write_state_note(folder: Path) -> None:
    """Create the folder of a review, with a note that describes its files."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "README.json"
    if not note.exists():
        write_json(note, _STATE_NOTE)
