"""A study of sets that are drawn from the test files: its rows, its table, its command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import SHARED, begin_row
from benchmarks.quality import PAGE
from benchmarks.rows import append_row, put_block, read_rows

Row = dict[str, Any]


@dataclass(frozen=True)
class SetStudy:
    """What differs between such studies.

    Parameters
    ----------
    about : str
        What its command line says of it.
    rows : Path of a file of rows
    marks : tuple of str
        Where its table begins and ends in `docs/quality.md`.
    methods : sequence of str
    measure : callable (name of a pair, methods) -> rows
    format_rows : callable (rows) -> Markdown table
    """

    about: str | None
    rows: Path
    marks: tuple[str, str]
    methods: Sequence[str]
    measure: Callable[[str, Sequence[str]], Iterable[Row]]
    format_rows: Callable[[list[Row]], str]

    def render(self) -> None:
        """Draw the table of the page anew."""
        text = PAGE.read_text(encoding="utf-8")
        table = self.format_rows(read_rows(self.rows))
        PAGE.write_text(put_block(text, self.marks, table), encoding="utf-8")

    def run(self, names: Sequence[str], methods: Sequence[str]) -> None:
        """Measure some methods on some pairs, one row after the other."""
        for name in names:
            told = begin_row(name, 0)
            for row in self.measure(name, methods):
                append_row(self.rows, told | row)
                print(name, row, flush=True)

    def main(self, arguments: list[str] | None = None) -> int:
        """Run the command line."""
        parser = argparse.ArgumentParser(description=self.about)
        parser.add_argument("command", choices=["run", "render"])
        parser.add_argument("--dataset", nargs="+", choices=list(SHARED), default=list(SHARED))
        parser.add_argument("--methods", nargs="+", choices=self.methods, default=self.methods)
        args = parser.parse_args(arguments)
        if args.command == "render":
            self.render()
        else:
            self.run(args.dataset, args.methods)
        return 0
