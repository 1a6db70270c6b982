"""From a run folder to an explorer, and from an explorer to a listening server."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hilander.errors import OutputError
from hilander.explorer.review_log.store import REVIEW_FILE, ReviewStore, state_folder
from hilander.explorer.run.run_folder import Attachments, Run, open_run
from hilander.explorer.session.explorer import Explorer, mark_state_folder

CACHE_FOLDER = "cache"


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
        Where the review and caches are kept; beside the run by default.
    compare : iterable of Path
        Other runs to compare with.
    """
    kept = state or state_folder(folder)
    cache = kept / CACHE_FOLDER
    run = open_run(folder, attachments, cache / "thumbnails")
    try:
        mark_state_folder(kept)
    except OSError as error:
        raise OutputError(
            f"{kept} cannot be written ({error.strerror or error}); choose another place with "
            "--state"
        ) from error
    others: dict[str, Run] = {}
    for path in compare:
        other = open_run(path)
        name = other.name if other.name not in others else str(path)
        others[name] = other
    return Explorer(run, ReviewStore(kept / REVIEW_FILE), others, cache)
