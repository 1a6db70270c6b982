"""The suite: every method on every data set of a config, one row for each run.

    python -m benchmarks.suite run [--config FILE] [--dataset NAME] [--methods NAMES] [--missing]
    python -m benchmarks.render

Rows are appended to ``benchmarks/results/comparison.jsonl``.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.datasets import load_pair
from benchmarks.rows import RESULTS, ROOT
from hilander.comparison.methods import choose_methods
from hilander.comparison.rows import latest_rows, read_rows
from hilander.comparison.run import Plan, Progress, compare_methods
from hilander.comparison.runner import Limits
from hilander.comparison.tables import format_comparison, summarise_rows
from hilander.errors import FileFormatError, SettingError

CONFIG = ROOT / "benchmarks" / "suite.toml"
ROWS = RESULTS / "comparison.jsonl"
KINDS = ("scores", "seconds", "pseudo-labels")


@dataclass(frozen=True)
class Table:
    """One table of the results.

    Parameters
    ----------
    kind : {"scores", "seconds", "pseudo-labels"}
    title : str
    datasets : tuple of str
    methods : tuple of str
        All of them if empty.
    """

    kind: str
    title: str
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingError(f"table kind {self.kind!r} is not known; use {', '.join(KINDS)}")


@dataclass(frozen=True)
class Suite:
    """What to measure and print, as read from a config."""

    tables: tuple[Table, ...]
    figures: dict[str, str] = field(default_factory=dict)
    seeds: int = 3
    time_limit: float = 1800.0
    memory_limit: float = 8.0
    jobs: int = 1

    @property
    def datasets(self) -> list[str]:
        """The data sets of all tables, each once."""
        return list(dict.fromkeys(name for table in self.tables for name in table.datasets))


def read_suite(path: Path = CONFIG) -> Suite:
    """Read a config."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise FileFormatError(f"{path} is not a config ({error})") from error
    tables = tuple(_read_table(table) for table in content.pop("table", []))
    try:
        return Suite(tables, **content)
    except TypeError as error:
        raise SettingError(f"{path} has a key that is not known ({error})") from error


def _read_table(values: dict[str, Any]) -> Table:
    plain = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    try:
        return Table(**plain)
    except TypeError as error:
        raise SettingError(f"a table has a key that is not known ({error})") from error


def run_suite(suite: Suite, datasets: list[str], methods: list[str] | None, missing: bool) -> None:
    """Measure and append rows; with `missing`, only methods without a successful row."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    limits = Limits(suite.time_limit, int(suite.memory_limit * 2**30))
    for name in datasets or suite.datasets:
        pair = load_pair(name)
        chosen = choose_methods(methods)
        if missing and ROWS.is_file():
            rows = [row for row in latest_rows(read_rows(ROWS)) if row.dataset == name]
            done = {row.method for row in rows if row.dataset_hash == pair.digest and not row.error}
            chosen = [method for method in chosen if method.name not in done]
        if not chosen:
            continue
        print(f"{name}: {len(pair.test):,} points to cluster; {pair.preparation}", file=sys.stderr)
        plan = Plan(suite.seeds, limits, suite.jobs, ROWS)
        rows = compare_methods(pair, chosen, plan, Progress(len(chosen)))
        print(format_comparison(summarise_rows(rows)))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run"])
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--dataset", action="append", default=[])
    parser.add_argument("--methods", help="names, separated by commas (default: all)")
    parser.add_argument("--missing", action="store_true", help="only methods without a result")
    args = parser.parse_args(arguments)
    methods = args.methods.split(",") if args.methods else None
    run_suite(read_suite(args.config), args.dataset, methods, args.missing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
