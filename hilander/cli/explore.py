"""``hilander explore``: explore and review a run in the browser."""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from pathlib import Path
from typing import Any

from hilander.cli.run_items import add_run_items, read_attachments
from hilander.errors import FileFormatError, HiLanderError, MissingFileError, SettingError

DEFAULT_PORT = 8765
TOKEN_VARIABLE = "HILANDER_TOKEN"
# Slow computations start after this time, so that the first page loads without delay.
_FIRST_PAGE_SECONDS = 1.0


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "explore",
        help="explore and review a run in the browser",
        description="Show a run in the browser: clusters, hierarchy, a map, and a review whose "
        "corrections can be exported. The review is stored next to the run, in RUN.explorer. Stop "
        "with Ctrl-C.",
        allow_abbrev=False,
    )
    add_run_items(parser)
    parser.add_argument(
        "--compare",
        metavar="RUN2",
        type=Path,
        action="append",
        default=[],
        help="another run of the same items to compare with; can be repeated",
    )
    parser.add_argument(
        "--reviews",
        metavar="DIR",
        type=Path,
        help="import the review of another run, from its .explorer folder",
    )
    parser.add_argument(
        "--state", metavar="DIR", type=Path, help="folder of the review (default: RUN.explorer)"
    )
    add_serving(parser)
    parser.set_defaults(run=run)


def add_serving(parser: argparse.ArgumentParser) -> None:
    """Add where the explorer listens, and who may reach it."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on (default: 127.0.0.1, this machine only)",
    )
    parser.add_argument(
        "--port",
        type=int,
        help=f"port to listen on (default: {DEFAULT_PORT}, or a free one if it is taken)",
    )
    parser.add_argument(
        "--token",
        help="access token; required if --host is reachable from other machines (default: "
        f"${TOKEN_VARIABLE})",
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="another host name under which browsers reach the server; can be repeated",
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="print the address, do not open a browser"
    )


def run(args: argparse.Namespace) -> int:
    """Open the run and serve it until stopped."""
    try:
        from hilander.explorer.api.app import create_app
    except ImportError as error:
        raise SettingError(
            f"the explorer needs {error.name}: pip install 'hilander[explore]'"
        ) from error
    from hilander.explorer.api.listening import bind, make_url, serve
    from hilander.explorer.api.safety import make_guard
    from hilander.explorer.review_log.backup import Checkpoints

    if not args.folder.exists():
        raise MissingFileError(
            f"{args.folder} does not exist, expected a run folder; check the path"
        )
    if args.folder.is_file():
        raise FileFormatError(
            f"{args.folder} is a file, expected a run folder; cluster it first: "
            f"hilander cluster {args.folder} -o run"
        )
    if args.port is not None and not 0 <= args.port < 65536:
        raise SettingError(f"--port {args.port} is not a port; use 0 to 65535")
    guard = make_guard(args.host, args.token or os.environ.get(TOKEN_VARIABLE), args.allow_host)
    explorer, problem = open_or_explain(args)
    port = DEFAULT_PORT if args.port is None else args.port
    listening = bind(args.host, port, exact=args.port is not None)
    address = make_url(args.host, listening, guard.access_token)
    if explorer is not None:
        explorer.start_precomputing(delay=_FIRST_PAGE_SECONDS)

    def ready() -> None:
        print(f"explorer: {address}  (Ctrl-C stops it)", flush=True)
        if not args.no_browser and sys.stdout.isatty():
            webbrowser.open(address)

    def stopping() -> None:
        if explorer is not None:
            explorer.stopping.set()

    checkpoints = Checkpoints(explorer.store) if explorer is not None else None
    try:
        serve(create_app(explorer, guard, problem), listening, ready, stopping)
    finally:
        if checkpoints is not None:
            checkpoints.stop()
    return 0


def open_or_explain(args: argparse.Namespace) -> tuple[Any, str | None]:
    """Open the run. For a damaged or foreign folder, print why, and give that text for the page."""
    from hilander.explorer.review_log.store import REVIEW_FILE, ReviewStore
    from hilander.explorer.session.opening import open_explorer

    try:
        explorer = open_explorer(args.folder, read_attachments(args), args.state, args.compare)
    except FileFormatError as error:
        print(f"hilander explore: {error}", file=sys.stderr)
        return None, str(error)
    if args.reviews is not None:
        path = args.reviews / REVIEW_FILE if args.reviews.is_dir() else args.reviews
        if not path.is_file():
            raise MissingFileError(f"{path} does not exist, expected the review of another run")
        other = ReviewStore(path)
        try:
            carried = explorer.import_review(other)
        except HiLanderError:
            explorer.store.close()
            raise
        finally:
            other.close()
        print(f"imported {len(carried.events)} decisions, {len(carried.conflicts)} conflicts")
    return explorer, None
