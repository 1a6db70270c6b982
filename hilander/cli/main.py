"""The command line: puts the commands' parsers together, runs one, turns errors into exit codes.

Exit codes: 0 done, 1 a defect of the program itself, 2 wrong input or an output that cannot be
written, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

from hilander import __version__
from hilander.cli import (
    cluster,
    compare,
    convert,
    demo,
    doubts,
    explore,
    info,
    report,
    score,
    train,
)
from hilander.errors import HiLanderError

COMMANDS: tuple[ModuleType, ...] = (
    train, cluster, score, doubts, compare, explore, report, info, convert, demo
)  # fmt: skip
EXIT_DEFECT, EXIT_WRONG, EXIT_STOPPED = 1, 2, 130


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all errors of this program are."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where the options are listed."""
        _complain(f"{message}; see `{self.prog} --help`")
        raise SystemExit(EXIT_WRONG)


def make_parser() -> argparse.ArgumentParser:
    """Put the parser together, with one sub-parser for each command."""
    parser = Parser(
        prog="hilander",
        description="Learn from labelled embeddings how to cluster, then cluster embeddings of "
        "identities never seen.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hilander {__version__}")
    subparsers = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", required=True
    )
    for command in COMMANDS:
        command.add_parser(subparsers)
    for chosen in subparsers.choices.values():
        chosen.add_argument(
            "--debug", action="store_true", help="show the full traceback of an error"
        )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    code : int
        The exit code.
    """
    try:
        args = make_parser().parse_args(arguments)
    except SystemExit as end:  # argparse leaves by this, after --help too
        return end.code if isinstance(end.code, int) else EXIT_WRONG
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _ignore if getattr(args, "quiet", False) else _warn
            code: int = args.run(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        _complain("stopped", "hilander")
        return EXIT_STOPPED
    except BrokenPipeError:
        # The reader, such as `head`, has had enough. Python would complain again at its own end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if args.debug:
            raise
        return _explain(error)


def _explain(error: Exception) -> int:
    if isinstance(error, HiLanderError):
        _complain(str(error))
        return EXIT_WRONG
    if isinstance(error, MemoryError):
        _complain("memory is exhausted; give fewer embeddings or use a larger machine")
        return EXIT_WRONG
    if isinstance(error, OSError):
        _complain(f"{error}; check the path and the disk")
        return EXIT_WRONG
    kind = type(error).__name__
    _complain(f"unexpected {kind}: {error}; run again with --debug and report what it shows")
    return EXIT_DEFECT


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    _complain(str(message), "hilander: warning")


def _ignore(*_: Any, **__: Any) -> None:
    """Nothing is said."""


def _complain(message: str, prefix: str = "hilander: error") -> None:
    print(f"{prefix}: {' '.join(message.split())}", file=sys.stderr)
