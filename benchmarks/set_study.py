"""A study of sets drawn from the test files: its rows, its table, its command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import SHARED, begin_row
from benchmarks.rows import append_row, put_block, read_rows

Row = dict[str, Any]


@dataclass(frozen=True)
class SetStudy:
    """The parts in which such studies differ.

    Parameters
    ----------
    about : str
        Description of the command line.
    rows : Path
        File of the rows.
    page : Path
        Page of the table.
    marks : tuple of str
        Marks of the page between which the table stands.
    methods : sequence of str
    measure : callable (name of a pair, methods) -> rows
    format_rows : callable (rows) -> Markdown table
    """

    about: str | None
    rows: Path
    page: Path
    marks: tuple[str, str]
    methods: Sequence[str]
    measure: Callable[[str, Sequence[str]], Iterable[Row]]
    format_rows: Callable[[list[Row]], str]

    def render(self) -> None:
        """Write the table of the page from the rows."""
        text = self.page.read_text(encoding="utf-8")
        table = self.format_rows(read_rows(self.rows))
        self.page.write_text(put_block(text, self.marks, table), encoding="utf-8")

    def run(self, names: Sequence[str], methods: Sequence[str]) -> None:
        """Measure methods on pairs and append a row for each result."""
        for name in names:
            start = begin_row(name, 0)
            for row in self.measure(name, methods):
                append_row(self.rows, start | row)
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
