"""Write the report of a run to a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hilander.errors import SettingError
from hilander.explorer.report.facts import gather_facts
from hilander.explorer.report.html_report import render_html
from hilander.explorer.report.markdown_report import write_markdown
from hilander.explorer.review_log.backup import back_up_review
from hilander.explorer.review_log.store import (
    CACHE_FOLDER,
    REVIEW_FILE,
    ReviewStore,
    state_folder,
)
from hilander.explorer.run.run_folder import Attachments, open_run
from hilander.explorer.session.explorer import Explorer
from hilander.io.writing import write_atomically

SUFFIXES = (".html", ".htm", ".md")


def write_report(
    folder: Path,
    output: Path,
    attachments: Attachments | None = None,
    state: Path | None = None,
    *,
    review: bool = True,
) -> Path:
    """Write the report of a run.

    Parameters
    ----------
    folder : Path
        The run.
    output : Path
        Ends in `.html` for one self-contained file, or in `.md` for Markdown with figures as PNG
        files in a folder beside it.
    attachments : Attachments, optional
        Labels and images that the run itself does not have.
    state : Path, optional
        Folder of the review; by default beside the run.
    review : bool
        Whether to report the clusters as corrected, with their names.

    Returns
    -------
    output : Path
    """
    check_report_path(output)
    with _open_copy(folder, attachments, state or state_folder(folder), review) as explorer:
        facts = gather_facts(explorer)
        if output.suffix.lower() == ".md":
            return write_markdown(facts, output)
        with write_atomically(output) as temporary:
            # Names of files may not be UTF-8.
            temporary.write_text(render_html(facts), encoding="utf-8", errors="backslashreplace")
    return output


@contextmanager
def _open_copy(
    folder: Path, attachments: Attachments | None, state: Path, review: bool
) -> Iterator[Explorer]:
    """Open a run with a copy of its review: a report changes nothing."""
    cache = state / CACHE_FOLDER  # the explorer may have laid out the map already
    run = open_run(folder, attachments)
    with TemporaryDirectory() as place:
        copy = Path(place) / REVIEW_FILE
        if review and (state / REVIEW_FILE).is_file():
            back_up_review(state / REVIEW_FILE, copy)
        store = ReviewStore(copy)
        try:
            yield Explorer(run, store, cache=cache if cache.is_dir() else None)
        finally:
            store.close()


def check_report_path(output: Path) -> None:
    """Raise SettingError if the ending is not one of `SUFFIXES`."""
    if output.suffix.lower() not in SUFFIXES:
        raise SettingError(
            f"{output.name!r} ends in {output.suffix!r}, expected one of {', '.join(SUFFIXES)}; "
            f"for example {output.stem or 'report'}.html"
        )
