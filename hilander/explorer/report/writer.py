"""Write the report of a run to a file."""

from __future__ import annotations

from pathlib import Path

from hilander.errors import SettingError
from hilander.explorer.report.facts import gather_facts
from hilander.explorer.report.html_report import render_html
from hilander.explorer.report.markdown_report import write_markdown
from hilander.explorer.review_log.store import CACHE_FOLDER, state_folder
from hilander.explorer.run.run_folder import Attachments, open_run
from hilander.io.writing import write_atomically

SUFFIXES = (".html", ".htm", ".md")


def write_report(folder: Path, output: Path, attachments: Attachments | None = None) -> Path:
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

    Returns
    -------
    output : Path
    """
    check_report_path(output)
    cache = state_folder(folder) / CACHE_FOLDER  # the explorer may have laid out the map already
    facts = gather_facts(open_run(folder, attachments), cache if cache.is_dir() else None)
    if output.suffix.lower() == ".md":
        return write_markdown(facts, output)
    with write_atomically(output) as temporary:
        # Names of files may not be UTF-8.
        temporary.write_text(render_html(facts), encoding="utf-8", errors="backslashreplace")
    return output


def check_report_path(output: Path) -> None:
    """Raise SettingError if the ending is not one of `SUFFIXES`."""
    if output.suffix.lower() not in SUFFIXES:
        raise SettingError(
            f"{output.name!r} ends in {output.suffix!r}, expected one of {', '.join(SUFFIXES)}; "
            f"for example {output.stem or 'report'}.html"
        )
