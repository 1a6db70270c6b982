"""The command line: builds the parsers, runs one command, turns errors into exit codes.

Exit codes: 0 success, 1 a defect of the program, 2 wrong input or an output that cannot be written,
130 stopped by Ctrl-C, 143 stopped by SIGTERM.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any, NoReturn

from hilander import __version__
from hilander.cli import (
    backup,
    cluster,
    compare,
    convert,
    demo,
    doubts,
    embed,
    explore,
    group,
    info,
    report,
    score,
    train,
    update,
)
from hilander.cli.old_names import rename_old_names
from hilander.errors import HiLanderError
from hilander.io.digests import skip_verification

COMMANDS: tuple[ModuleType, ...] = (
    group, embed, train, cluster, update, score, doubts, compare, explore, backup, report, info,
    convert, demo,
)  # fmt: skip
EXIT_DEFECT, EXIT_WRONG, EXIT_STOPPED, EXIT_TERMINATED = 1, 2, 130, 143


class Terminated(KeyboardInterrupt):
    """SIGTERM was received. What handles Ctrl-C handles it too: work is kept, files are closed."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, as all errors of this program are."""

    def error(self, message: str) -> NoReturn:
        """Print the error and how to list the options, and exit."""
        _print_error(f"{message}; see `{self.prog} --help`")
        raise SystemExit(EXIT_WRONG)


def make_parser() -> argparse.ArgumentParser:
    """Build the parser, with one sub-parser for each command."""
    parser = Parser(
        prog="hilander",
        description="Group embeddings by identity. The pretrained model needs no labels; a model "
        "trained on labelled embeddings groups identities that it was not trained on.",
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
            "--debug", action="store_true", help="print the full traceback of an error"
        )
        chosen.add_argument(
            "--no-verify",
            action="store_true",
            help="read models and runs without checking the digests of their files",
        )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    code : int
        The exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files may not be UTF-8
            stream.reconfigure(errors="backslashreplace")
    try:
        args = make_parser().parse_args(arguments)
    except SystemExit as end:  # argparse exits by this, after --help too
        return end.code if isinstance(end.code, int) else EXIT_WRONG
    try:
        with raise_on_sigterm(), warnings.catch_warnings(), skip_verification(args.no_verify):
            warnings.showwarning = _ignore if getattr(args, "quiet", False) else _print_warning
            rename_old_names(args)
            code: int = args.run(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as stop:
        _print_error(str(stop) or "stopped", "hilander")
        return EXIT_TERMINATED if isinstance(stop, Terminated) else EXIT_STOPPED
    except BrokenPipeError:
        # The reader, such as `head`, stopped reading. Python would print an error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if args.debug:
            raise
        return _explain(error)


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Raise `Terminated` when SIGTERM arrives; the former handler is put back at the end."""
    if threading.current_thread() is not threading.main_thread():  # Python forbids handlers there
        yield
        return
    former = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _terminate(_: int, __: FrameType | None) -> NoReturn:
    raise Terminated


def _explain(error: Exception) -> int:
    """Print an error in one line and give its exit code."""
    if isinstance(error, HiLanderError):
        _print_error(str(error))
        return EXIT_WRONG
    if isinstance(error, MemoryError):
        _print_error("memory is exhausted; give fewer embeddings or use a larger machine")
        return EXIT_WRONG
    if isinstance(error, OSError):
        _print_error(f"{error}; check the path and the disk")
        return EXIT_WRONG
    kind = type(error).__name__
    _print_error(f"unexpected {kind}: {error}; run again with --debug and report the traceback")
    return EXIT_DEFECT


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _print_error(str(message), "hilander: warning")


def _ignore(*_: Any, **__: Any) -> None:
    """Print nothing."""


def _print_error(message: str, prefix: str = "hilander: error") -> None:
    print(f"{prefix}: {' '.join(message.split())}", file=sys.stderr)
