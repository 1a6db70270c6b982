"""Items that cannot be embedded: each is a row of skipped.csv, with its reason."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hilander.io.writing import write_atomically


class SkippedItem(Exception):  # noqa: N818 - it never leaves the package as an error
    """An item cannot be embedded.

    Parameters
    ----------
    reason : str
        Completes the sentence "this file …".
    lasting : bool
        Whether the same content will give the same reason again. A file that could not be opened,
        or that needs a library which is not installed, is tried again.
    """

    def __init__(self, reason: str, *, lasting: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.lasting = lasting


@dataclass(frozen=True, order=True)
class Skip:
    """A row of skipped.csv.

    Attributes
    ----------
    item : str
        The path as text, or the number of a line.
    reason : str
    """

    item: str
    reason: str


def write_skipped(path: Path, skips: Iterable[Skip]) -> None:
    """Write the rows, also when there are none: an old file would be misleading."""
    with (
        write_atomically(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("item", "reason"))
        writer.writerows((skip.item, skip.reason) for skip in skips)
